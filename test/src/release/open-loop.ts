// Calls and writes at a fixed rate, whether earlier ones were answered or not, and their outcome.
import { Agent, request } from 'node:http';

/** What became of the requests. */
export interface LoadReport {
  sent: number;
  /** Requests that were not answered with success: when they were sent, for how long they waited, and the whole answer or the error. */
  failed: string[];
  /** Requests on a connection that the server had just closed, sent again as HTTP clients do. */
  repeated: number;
  /** The longest time from a request to its answer, ms, and that request. */
  longestMs: number;
  longest: string;
  /** The longest time without an answer to any request, s. */
  longestPauseS: number;
  /** Activations that were accepted (202). */
  accepted: string[];
  /** Blocking calls that a stopping server has answered with their ids (202); `accepted` has them, too. */
  withIds: number;
  /** Entities whose write was acknowledged. */
  written: string[];
}

interface Load {
  report: LoadReport;
  /** Sends no more; resolves once every request has an outcome. */
  stop(): Promise<LoadReport>;
}

const answerMs = 30_000;

/**
 * Sends `ratePerS` requests a second in turns: a blocking call of `action`, one without waiting, and the creation of an action.
 * `auth`: UUID:KEY.
 */
export function openLoop(url: string, auth: string, action: string, ratePerS: number): Load {
  const agent = new Agent({ keepAlive: true });
  const headers = {
    authorization: `Basic ${Buffer.from(auth).toString('base64')}`,
    'content-type': 'application/json',
  };
  const report: LoadReport = {
    sent: 0,
    failed: [],
    repeated: 0,
    longestMs: 0,
    longest: '',
    longestPauseS: 0,
    accepted: [],
    withIds: 0,
    written: [],
  };
  let answeredMs = performance.now();
  const open = new Set<Promise<void>>();

  const send = (method: string, path: string, body: string): Promise<{ status: number; text: string }> =>
    new Promise((resolve, reject) => {
      const outgoing = request(`${url}/api/v1/namespaces/_/${path}`, { method, headers, agent, timeout: answerMs });
      outgoing.on('timeout', () => outgoing.destroy(new Error('no answer in time')));
      outgoing.on('error', (error: NodeJS.ErrnoException) => {
        if (!outgoing.reusedSocket || !['ECONNRESET', 'EPIPE'].includes(String(error.code))) return reject(error);
        report.repeated += 1;
        send(method, path, body).then(resolve, reject);
      });
      outgoing.on('response', (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (part: string) => (text += part));
        response.on('error', reject).on('end', () => resolve({ status: response.statusCode ?? 0, text }));
      });
      outgoing.end(body);
    });

  const one = async (number: number): Promise<void> => {
    const name = `written${number}`;
    const code = JSON.stringify({
      exec: { kind: 'nodejs:default', code: `exports.main = () => ({ number: ${number} })` },
    });
    const calls = [
      ['POST', `actions/${action}?blocking=true`, '{}', [200, 202]],
      ['POST', `actions/${action}`, '{}', [202]],
      ['PUT', `actions/${name}`, code, [200]],
    ] as const;
    const [method, path, body, expected] = calls[number % calls.length] ?? calls[0];
    const sentAt = new Date().toISOString();
    const beganMs = performance.now();
    const told = (): string => `${sentAt} ${method} ${path}, after ${Math.round(performance.now() - beganMs)} ms`;
    try {
      const { status, text } = await send(method, path, body);
      if (!expected.some((one) => one === status)) report.failed.push(`${told()}: ${status} ${text}`);
      else if (status === 202) {
        report.accepted.push((JSON.parse(text) as { activationId: string }).activationId);
        if (expected.length > 1) report.withIds += 1;
      } else if (method === 'PUT') report.written.push(name);
    } catch (error) {
      report.failed.push(`${told()}: ${String(error)}`);
    }
    const endedMs = performance.now();
    report.longestPauseS = Math.max(report.longestPauseS, (endedMs - answeredMs) / 1000);
    answeredMs = endedMs;
    if (endedMs - beganMs <= report.longestMs) return;
    report.longestMs = endedMs - beganMs;
    report.longest = told();
  };

  const beganMs = performance.now();
  const timer = setInterval(() => {
    const due = Math.floor(((performance.now() - beganMs) / 1000) * ratePerS);
    while (report.sent < due) {
      const sent = one(report.sent).finally(() => open.delete(sent));
      open.add(sent);
      report.sent += 1;
    }
  }, 5);
  return {
    report,
    async stop() {
      clearInterval(timer);
      await Promise.all(open);
      agent.destroy();
      return report;
    },
  };
}

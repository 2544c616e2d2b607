import { Agent, request } from 'node:http';

/** Requests that are sent at a fixed rate, independent of the answers. */
export interface OfferedLoad {
  baseUrl: string;
  /** Paths, used in turns. */
  paths: readonly string[];
  headers: Readonly<Record<string, string>>;
  body: string;
  perS: number;
  /** Ends the load. */
  signal: AbortSignal;
  /** Called for each 202 with its activation. */
  onAccepted: (activationId: string) => void;
}

/** Result of a load. */
export interface OfferedResult {
  sent: number;
  accepted: number;
  /** Answers by status, without 202. */
  refused: ReadonlyMap<number, number>;
  /** Requests without an answer. */
  failed: number;
  /** Requests that were not sent, because the maximum number of requests was open. */
  heldBack: number;
}

const tickMs = 10;
const maxOpen = 2000;
const sockets = 64;
const timeoutMs = 60_000;

/** Sends `perS` requests a second until the signal; resolves when all are answered. */
export async function offer(load: OfferedLoad): Promise<OfferedResult> {
  const agent = new Agent({ keepAlive: true, maxSockets: sockets });
  const open = new Set<Promise<void>>();
  const refused = new Map<number, number>();
  const counts = { sent: 0, accepted: 0, failed: 0, heldBack: 0 };
  const beganMs = performance.now();
  let due = 0;
  const sendOne = async (): Promise<void> => {
    const path = load.paths[due % load.paths.length] as string;
    counts.sent += 1;
    try {
      const { status, text } = await post(agent, load, path);
      if (status === 202) {
        counts.accepted += 1;
        load.onAccepted((JSON.parse(text) as { activationId: string }).activationId);
      } else refused.set(status, (refused.get(status) ?? 0) + 1);
    } catch {
      counts.failed += 1;
    }
  };
  while (!load.signal.aborted) {
    const owed = Math.floor(((performance.now() - beganMs) / 1000) * load.perS);
    for (; due < owed; due += 1) {
      if (open.size >= maxOpen) {
        counts.heldBack += 1;
        continue;
      }
      const sent = sendOne();
      open.add(sent);
      void sent.then(() => open.delete(sent));
    }
    await new Promise((resolve) => setTimeout(resolve, tickMs));
  }
  await Promise.all(open);
  agent.destroy();
  return { ...counts, refused };
}

function post(agent: Agent, load: OfferedLoad, path: string): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const headers = { ...load.headers, 'content-length': Buffer.byteLength(load.body) };
    const options = { agent, method: 'POST', headers, timeout: timeoutMs };
    const outgoing = request(new URL(path, load.baseUrl), options, (incoming) => {
      let text = '';
      incoming.setEncoding('utf8').on('data', (part: string) => (text += part));
      incoming.once('error', reject);
      incoming.once('end', () => resolve({ status: incoming.statusCode ?? 0, text }));
    });
    outgoing.once('timeout', () => outgoing.destroy(new Error('no answer')));
    outgoing.once('error', reject);
    outgoing.end(load.body);
  });
}

import { Agent, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { guestHeaders, invokePath } from '../api.js';

/** An invocation as its caller saw it. Times in ms. */
export interface PlayedJob {
  /** From when it was due to be sent to its answer. */
  jctMs: number;
  /** On the caller's clock, from the start of the trace. */
  finishedMs: number;
  /** From its acceptance to its placement, as its record says. */
  queueMs: number;
  /** `cold`, `warm`, … */
  start: string;
  /** What is neither that wait nor its computing: the start, and the way through the platform. */
  startMs: number;
}

/** The part of an activation's record that is looked at. */
interface Answered {
  response: { result: { ms: number } };
  annotations: { key: string; value: unknown }[];
}

const timeoutMs = 600_000;

/** Sends invocations to the platform at `url`, any number at a time, each over a connection that is kept. */
export interface Player {
  /** A blocking invocation. Rejects unless it succeeds. */
  invoke(action: string, parameters: object): Promise<Answered>;
  close(): void;
}

/** A player for the guest. */
export function newPlayer(url: string): Player {
  const agent = new Agent({ keepAlive: true });
  const post = (path: string, body: string): Promise<{ status: number; text: string }> =>
    new Promise((resolve, reject) => {
      const headers = { ...guestHeaders, 'content-length': Buffer.byteLength(body) };
      const outgoing = request(new URL(path, url), { agent, method: 'POST', headers, timeout: timeoutMs }, (answer) => {
        const chunks: Buffer[] = [];
        answer.on('data', (chunk: Buffer) => chunks.push(chunk));
        answer.once('error', reject);
        answer.once('end', () => resolve({ status: answer.statusCode ?? 0, text: Buffer.concat(chunks).toString() }));
      });
      outgoing.once('timeout', () => outgoing.destroy(new Error(`${path}: no answer in ${timeoutMs} ms`)));
      outgoing.once('error', reject);
      outgoing.end(body);
    });
  return {
    async invoke(action, parameters) {
      const { status, text } = await post(invokePath(action, true), JSON.stringify(parameters));
      if (status !== 200) throw new Error(`invoking ${action} gave ${status}: ${text.slice(0, 500)}`);
      return JSON.parse(text) as Answered;
    },
    close: () => agent.destroy(),
  };
}

/** Sends each job when it is due and waits for all of them. Rejects where one fails. */
export async function play(player: Player, jobs: readonly { action: string; atMs: number }[]): Promise<PlayedJob[]> {
  const startedMs = performance.now();
  const now = (): number => performance.now() - startedMs;
  return Promise.all(
    jobs.map(async ({ action, atMs }) => {
      await sleep(Math.max(0, atMs - now()));
      const record = await player.invoke(action, {});
      const finishedMs = now();
      const [jctMs, gpu] = [finishedMs - atMs, gpuOf(record)];
      return { ...gpu, jctMs, finishedMs, startMs: jctMs - gpu.queueMs - record.response.result.ms };
    }),
  );
}

/** What a record says of its GPU. Throws where it says nothing. */
export function gpuOf({ annotations }: Answered): Pick<PlayedJob, 'queueMs' | 'start'> {
  const gpu = annotations.find(({ key }) => key === 'gpu')?.value as Pick<PlayedJob, 'queueMs' | 'start'> | undefined;
  if (gpu === undefined) throw new Error('a record tells of no GPU');
  return { queueMs: gpu.queueMs, start: gpu.start };
}

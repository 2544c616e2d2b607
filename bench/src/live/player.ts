// Invocations as a caller sees them, and their starts.
import { Agent, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { guestHeaders, invokePath } from '../api.js';

/** States of the process that served a run, from the slowest start to the fastest. */
export const startKinds = ['cold', 'prewarmed', 'injected', 'warm'] as const;
export type StartKind = (typeof startKinds)[number];

/** An invocation as measured by its caller. Times in ms. */
export interface PlayedJob {
  /** From the time at which it was due to its answer. */
  jctMs: number;
  /** On the caller's clock, from the start of the trace. */
  finishedMs: number;
  /** From acceptance to placement, from its record. */
  queueMs: number;
  start: StartKind;
  /** The rest: the start, and the way through the platform. */
  startMs: number;
}

/** The fields of an activation's record that are read here. */
export interface Answered {
  response: { result: Record<string, unknown> };
  annotations: { key: string; value: unknown }[];
}

const answerTimeoutMs = 600_000;

/** Sends invocations to the platform at `url`, any number at once, each over a kept-alive connection. */
export interface Player {
  /** A blocking invocation. Rejects unless it succeeds. */
  invoke(action: string, parameters: object): Promise<Answered>;
  /** A blocking invocation, whatever its status. Rejects if nothing is answered. */
  call(action: string, parameters: object): Promise<{ status: number; text: string }>;
  close(): void;
}

/** A player for the guest. */
export function newPlayer(url: string): Player {
  const agent = new Agent({ keepAlive: true });
  const post = (path: string, body: string): Promise<{ status: number; text: string }> =>
    new Promise((resolve, reject) => {
      const headers = { ...guestHeaders, 'content-length': Buffer.byteLength(body) };
      const outgoing = request(
        new URL(path, url),
        { agent, method: 'POST', headers, timeout: answerTimeoutMs },
        (answer) => {
          const chunks: Buffer[] = [];
          answer.on('data', (chunk: Buffer) => chunks.push(chunk));
          answer.once('error', reject);
          answer.once('end', () => resolve({ status: answer.statusCode ?? 0, text: Buffer.concat(chunks).toString() }));
        },
      );
      outgoing.once('timeout', () => outgoing.destroy(new Error(`${path}: no answer in ${answerTimeoutMs} ms`)));
      outgoing.once('error', reject);
      outgoing.end(body);
    });
  const call: Player['call'] = (action, parameters) => post(invokePath(action, true), JSON.stringify(parameters));
  return {
    call,
    async invoke(action, parameters) {
      const { status, text } = await call(action, parameters);
      if (status !== 200)
        throw new Error(
          `invoking ${action} gave ${status}: ${text.slice(0, 500)}${text.length > 500 ? ` … ${text.slice(-500)}` : ''}`,
        );
      return JSON.parse(text) as Answered;
    },
    close: () => agent.destroy(),
  };
}

/** Sends each job when it is due and waits for all answers. Rejects if one fails. */
export async function play(player: Player, jobs: readonly { action: string; atMs: number }[]): Promise<PlayedJob[]> {
  const startedMs = performance.now();
  const now = (): number => performance.now() - startedMs;
  return Promise.all(
    jobs.map(async ({ action, atMs }) => {
      await sleep(Math.max(0, atMs - now()));
      const record = await player.invoke(action, {});
      const finishedMs = now();
      const [jctMs, gpu] = [finishedMs - atMs, gpuOf(record)];
      return { ...gpu, jctMs, finishedMs, startMs: jctMs - gpu.queueMs - runMsOf(record) };
    }),
  );
}

/** GPU data of a record. Throws if the record has none. */
export function gpuOf({ annotations }: Answered): Pick<PlayedJob, 'queueMs' | 'start'> {
  const gpu = annotations.find(({ key }) => key === 'gpu')?.value as Pick<PlayedJob, 'queueMs' | 'start'> | undefined;
  if (gpu === undefined) throw new Error('the record has no annotation of a GPU');
  return { queueMs: gpu.queueMs, start: gpu.start };
}

/** The start of a run without a GPU. */
export function startOf({ annotations }: Answered): StartKind {
  return (annotations.find(({ key }) => key === 'start')?.value as StartKind | undefined) ?? 'warm';
}

/** The function's own time, ms. Throws if its result does not have it. */
export function runMsOf({ response }: Answered): number {
  const { ms } = response.result;
  if (typeof ms !== 'number') throw new Error('the result does not tell how long the run took');
  return ms;
}

/** Values by kind of start. */
export type ByStart<Value> = Record<StartKind, Value>;

/** The times of starts, ms, by kind. */
export function startTimes(runs: readonly { start: StartKind; startMs: number }[]): ByStart<number[]> {
  const times: ByStart<number[]> = { cold: [], prewarmed: [], injected: [], warm: [] };
  for (const { start, startMs } of runs) times[start].push(startMs);
  return times;
}

/** Throws an Error with the counts of starts if no run was injected into a ready process. */
export function expectInjected(starts: readonly StartKind[], name: string): void {
  if (starts.includes('injected')) return;
  const counts = startKinds.map((kind) => `${starts.filter((one) => one === kind).length} ${kind}`);
  throw new Error(`${name}: no function was injected into a ready process (starts: ${counts.join(', ')})`);
}

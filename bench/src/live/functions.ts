import { Agent, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { guestHeaders, invokePath } from '../api.js';
import type { Api } from '../api.js';
import { sloFactor } from '../replay/workloads/catalogue.js';
import type { LiveEntry } from './catalogue.js';

/** Runs `units` inferences or training steps of a model, which is loaded at the first call, and tells what they took. */
const code = `import time

import gpuwhisk_sim

model = None

def main(args):
    global model
    if model is None:
        model = gpuwhisk_sim.Model(args["model"])
    run = model.train_step if args["training"] else model.infer
    began = time.perf_counter()
    for _ in range(args["units"]):
        run(args["batch"])
    return {"ms": (time.perf_counter() - began) * 1000}
`;

const hostMemoryMiB = 128;
const timeoutMs = 300_000;

/** An action for each entry, by its name; a job of it takes `length` units. Inference has an SLO of four times the time alone. */
export async function deploy(api: Api, entries: readonly LiveEntry[], length: number): Promise<void> {
  for (const { name, workload, batch, isTraining, memoryMiB, unitMs, model } of entries) {
    const sloMs = Math.round(unitMs * length * sloFactor);
    // On a chip without GPM nothing measures a fill before runs at several share classes.
    const features = { smUtil: model.saturation };
    const gpu = { memoryMiB, class: isTraining ? 'training' : 'inference', features, ...(!isTraining && { sloMs }) };
    await api.json('PUT', `/api/v1/namespaces/_/actions/${name}?overwrite=true`, {
      exec: { kind: 'python:default', code },
      limits: { memory: hostMemoryMiB, timeout: timeoutMs },
      parameters: Object.entries({ model: workload, training: isTraining, units: length, batch }).map(
        ([key, value]) => ({ key, value }),
      ),
      annotations: [{ key: 'gpu', value: gpu }],
    });
  }
}

/** What runs took beyond the time alone, from sending to the answer, ms, by run. */
interface Overheads {
  cold: number[];
  warm: number[];
}

/** Runs each function alone, cold and then warm, so that the platform knows its time. As many at a time as there are GPUs. */
export async function profile(
  player: Player,
  entries: readonly LiveEntry[],
  length: number,
  lanes: number,
): Promise<Overheads> {
  const left = [...entries];
  const found: Overheads = { warm: [], cold: [] };
  const lane = async (): Promise<void> => {
    for (let entry = left.shift(); entry !== undefined; entry = left.shift()) {
      const { name, unitMs } = entry;
      const run = async (units: number): Promise<{ start: string; overMs: number }> => {
        const sentMs = performance.now();
        const { start } = gpuOf(await player.invoke(name, { units }));
        return { start, overMs: performance.now() - sentMs - units * unitMs };
      };
      found.cold.push((await run(length)).overMs);
      found.warm.push((await warmRun(name, () => run(length))).overMs);
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  return found;
}

/** Its process may have had to make room meanwhile. */
const attempts = 3;

async function warmRun<Run extends { start: string }>(name: string, run: () => Promise<Run>): Promise<Run> {
  for (let attempt = 0; attempt < attempts; attempt += 1) {
    const done = await run();
    if (done.start === 'warm') return done;
  }
  throw new Error(`${name} did not run warm in ${attempts} attempts`);
}

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

const answerTimeoutMs = 600_000;

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
function gpuOf({ annotations }: Answered): Pick<PlayedJob, 'queueMs' | 'start'> {
  const gpu = annotations.find(({ key }) => key === 'gpu')?.value as Pick<PlayedJob, 'queueMs' | 'start'> | undefined;
  if (gpu === undefined) throw new Error('a record tells of no GPU');
  return { queueMs: gpu.queueMs, start: gpu.start };
}

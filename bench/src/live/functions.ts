import { Agent, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { guestHeaders, invokePath } from '../api.js';
import type { Api } from '../api.js';
import { sloFactor } from '../replay/workloads/catalogue.js';
import type { LiveEntry } from './catalogue.js';

/** Runs `units` inferences or training steps of a model and returns their time; the first call loads the model. */
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

/**
 * Creates an action for each entry, by its name; a job of it takes `length` units. Inference gets an SLO of four times
 * its solo time.
 */
export async function deploy(api: Api, entries: readonly LiveEntry[], length: number): Promise<void> {
  for (const { name, workload, batch, isTraining, memoryMiB, unitMs, model } of entries) {
    const sloMs = Math.round(unitMs * length * sloFactor);
    // Chips without GPM report no fill before a function has run at several share classes.
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

/** Time of runs beyond their solo time, from sending to the answer, ms, by run. */
interface Overheads {
  cold: number[];
  warm: number[];
}

/**
 * Runs each function alone, cold and then warm, so that the platform learns its time; as many functions at once as
 * there are GPUs.
 */
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

/** Another function may have evicted the process meanwhile. */
const attempts = 3;

async function warmRun<Run extends { start: string }>(name: string, run: () => Promise<Run>): Promise<Run> {
  for (let attempt = 0; attempt < attempts; attempt += 1) {
    const done = await run();
    if (done.start === 'warm') return done;
  }
  throw new Error(`${name} did not run warm in ${attempts} attempts`);
}

/** An invocation as measured by its caller. Times in ms. */
export interface PlayedJob {
  /** From the time at which it was due to its answer. */
  jctMs: number;
  /** On the caller's clock, from the start of the trace. */
  finishedMs: number;
  /** From acceptance to placement, from its record. */
  queueMs: number;
  /** `cold`, `warm`, … */
  start: string;
  /** The rest: the start, and the way through the platform. */
  startMs: number;
}

/** The fields of an activation's record that are read here. */
interface Answered {
  response: { result: { ms: number } };
  annotations: { key: string; value: unknown }[];
}

const answerTimeoutMs = 600_000;

/** Sends invocations to the platform at `url`, any number at once, each over a kept-alive connection. */
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
      return { ...gpu, jctMs, finishedMs, startMs: jctMs - gpu.queueMs - record.response.result.ms };
    }),
  );
}

/** GPU data of a record. Throws if the record has none. */
function gpuOf({ annotations }: Answered): Pick<PlayedJob, 'queueMs' | 'start'> {
  const gpu = annotations.find(({ key }) => key === 'gpu')?.value as Pick<PlayedJob, 'queueMs' | 'start'> | undefined;
  if (gpu === undefined) throw new Error('the record has no annotation of a GPU');
  return { queueMs: gpu.queueMs, start: gpu.start };
}

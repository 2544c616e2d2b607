// The functions of the traces, and their profiling.
import type { Api } from '../api.js';
import { sloFactor } from '../replay/workloads/catalogue.js';
import type { LiveEntry } from './catalogue.js';
import { gpuOf, type Player, type StartKind } from './player.js';

/** Runs `units` inferences or training steps of a model and returns their time; the first call loads the model. */
export const modelCode = `import time

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

/** Memory of the host that such a function may have, MiB. */
export const hostMemoryMiB = 128;
const timeoutMs = 300_000;

/** Length of a sample's run alone, ms; runs of less than 50 ms overlap too little. */
const sampleMs = 60;

/**
 * Creates an action for each entry, by its name; a job of it takes `length` units. Inference gets an SLO of four times
 * its solo time. With `hasSamples` the platform may run the functions to search for shares.
 */
export async function deploy(
  api: Api,
  entries: readonly LiveEntry[],
  length: number,
  hasSamples: boolean,
): Promise<void> {
  for (const { name, workload, batch, isTraining, memoryMiB, unitMs, model } of entries) {
    const sloMs = Math.round(unitMs * length * sloFactor);
    // Chips without GPM report no fill before a function has run at several share classes.
    const features = { smUtil: model.saturation };
    const gpu = {
      memoryMiB,
      class: isTraining ? 'training' : 'inference',
      features,
      ...(!isTraining && { sloMs }),
      ...(hasSamples && { sample: { units: Math.ceil(sampleMs / unitMs) } }),
    };
    await api.json('PUT', `/api/v1/namespaces/_/actions/${name}?overwrite=true`, {
      exec: { kind: 'python:default', code: modelCode },
      limits: { memory: hostMemoryMiB, timeout: timeoutMs },
      parameters: Object.entries({ model: workload, training: isTraining, units: length, batch }).map(
        ([key, value]) => ({ key, value }),
      ),
      annotations: [{ key: 'gpu', value: gpu }, ...(hasSamples ? [{ key: 'idempotent', value: true }] : [])],
    });
  }
}

/** A run's start, and its time beyond the solo time, from sending to the answer, ms. */
export interface ProfiledRun {
  start: StartKind;
  startMs: number;
}

/**
 * Runs each function alone, in a process without its code and then warm, so that the platform learns its time; as many
 * functions at once as there are GPUs.
 */
export async function profile(
  player: Player,
  entries: readonly LiveEntry[],
  length: number,
  lanes: number,
): Promise<ProfiledRun[]> {
  const left = [...entries];
  const found: ProfiledRun[] = [];
  const lane = async (): Promise<void> => {
    for (let entry = left.shift(); entry !== undefined; entry = left.shift()) {
      const { name, unitMs } = entry;
      const run = async (units: number): Promise<ProfiledRun> => {
        const sentMs = performance.now();
        const { start } = gpuOf(await player.invoke(name, { units }));
        return { start, startMs: performance.now() - sentMs - units * unitMs };
      };
      found.push(await run(length));
      found.push(await warmRun(name, () => run(length)));
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

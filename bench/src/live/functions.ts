import type { Api } from '../api.js';
import { sloFactor } from '../replay/workloads/table-one.js';
import type { LiveEntry } from './catalogue.js';
import { gpuOf, type Player } from './player.js';

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
export interface Overheads {
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

// Samples of the GPU kit (bench/results/gpu-*-samples.jsonl): sets that were measured by this project, one GPU type each.
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { deviceName, readSamples, SampleError } from '@gpuwhisk/bench/gpu/sample-file';
import type { Sample } from '@gpuwhisk/bench/gpu/sample-file';
import { isTraining } from '@gpuwhisk/bench/gpu/workloads';
import { BenchDataError } from '@gpuwhisk/bench/data/csv';
import { Folder, isRatio } from './files.js';
import type { Contents, UnusedFile } from './files.js';
import { workloadKey } from './sets.js';
import type { Alone, Member } from './sets.js';

const source = 'kit';
const whole = 100;

/** Files of samples in a folder, by name; none if there is no such folder. */
async function kitFiles(folder: string): Promise<string[]> {
  try {
    return (await readdir(folder)).filter((name) => /^gpu-.*-samples\.jsonl$/.test(name)).sort();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

/**
 * The sets of all files of samples in a folder. A file that is cut off or has a line that is no sample is named in `unused`.
 * Samples of a simulated device, which say nothing of a real one, and those that failed or lack a time alone are skipped by
 * their place.
 */
export async function readKit(folder: string): Promise<Contents & { unused: UnusedFile[] }> {
  const read: Contents & { unused: UnusedFile[] } = { sets: [], alone: [], skipped: [], unused: [] };
  for (const file of await kitFiles(folder)) {
    const path = join(folder, file);
    try {
      await new Folder(folder).text(file);
      addSamples(read, file, [...(await readSamples(path)).values()]);
    } catch (error) {
      if (!(error instanceof BenchDataError) && !(error instanceof SampleError)) throw error;
      read.unused.push({ file, why: error.message });
    }
  }
  return read;
}

const memberName = (mode: string, gpu: string, workload: string, percent: number): string =>
  `${mode}/${gpu}/${workload}@${percent}`;

function addSamples(contents: Contents, file: string, samples: readonly Sample[]): void {
  const alone = new Map<string, number>();
  for (const { device, mode, members, failed } of samples) {
    const [only] = members;
    if (failed === undefined && members.length === 1 && only !== undefined)
      alone.set(memberName(mode, deviceName(device), only.workload, only.percent), only.medianMs);
  }
  for (const sample of samples) {
    const { id, device, mode, members } = sample;
    const row = `${file}:${id}`;
    const gpu = deviceName(device);
    const skip = (why: string): number => contents.skipped.push({ row, why });
    if (sample.simulated) skip('the device is simulated');
    else if (sample.failed !== undefined) skip(`the sample failed: ${sample.failed}`);
    else {
      const found = members.map(({ workload, percent, medianMs }): Member | string => {
        const full = alone.get(memberName(mode, gpu, workload, whole));
        const here = alone.get(memberName(mode, gpu, workload, percent));
        if (full === undefined || here === undefined)
          return `no time alone of ${workload} at ${full === undefined ? whole : percent} %`;
        const [contention, stretch] = [medianMs / here, here / full];
        if (!isRatio(contention) || !isRatio(stretch)) return `times of ${workload} are no numbers`;
        const key = keyOf(workload);
        return { workload: key, share: percent / whole, stretch, ...(members.length > 1 && { contention }) };
      });
      const fault = found.find((one) => typeof one === 'string');
      if (fault === undefined) contents.sets.push({ source, row, gpu, mode, members: found as Member[] });
      else skip(fault);
      if (fault === undefined && members.length === 1 && members[0]?.percent === whole)
        contents.alone.push(aloneOf(sample, gpu, members[0].workload, members[0].medianMs));
    }
  }
}

/** Key of a workload of the kit, whose name has the size or the batch behind a colon. */
function keyOf(workload: string): string {
  const batch = Number(workload.split(':')[1]);
  const task = isTraining(workload, false) ? 'training' : 'inference';
  return workloadKey({ source, model: workload, variant: '', batch: Number.isFinite(batch) ? batch : 1, task });
}

function aloneOf({ activity }: Sample, gpu: string, workload: string, ms: number): Alone {
  const { smActivity, dramActivity } = activity;
  return {
    ...{ workload: keyOf(workload), source, gpu },
    features: {
      logMs: Math.log(ms),
      ...(smActivity !== undefined && { smActivity }),
      ...(dramActivity !== undefined && { dramActivity }),
    },
  };
}

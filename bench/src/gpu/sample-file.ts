// The file of co-location samples, a line a sample.
import { appendFile, readFile, truncate } from 'node:fs/promises';
import type { Times } from './gpu-worker.js';
import type { Activity, ShareMode } from './machine.js';
import { soloId, type Member } from './plan.js';

/** A process of a sample. `slowdown`: ratio of the median to that alone at 100 % in the same mode. */
export type MeasuredMember = Member & Times & { slowdown?: number };

/** A line of a file of samples: times of each process beside the others. */
export interface Sample {
  id: string;
  device: string;
  mode: ShareMode;
  simulated: boolean;
  members: MeasuredMember[];
  activity: Activity;
  /** Reason if there are no times: a process did not fit or failed. */
  failed?: string;
}

/** A line of a file of samples is no sample; the message names file and line. */
export class SampleError extends Error {}

/** A device's name as part of a file's name. */
export const deviceName = (device: string): string =>
  device
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/-$/, '');

/** Samples of a file by id; empty if the file does not exist. Rejects with SampleError if a line is no sample. */
export async function readSamples(path: string): Promise<Map<string, Sample>> {
  const { whole } = await readWhole(path);
  return parseSamples(whole, path);
}

/** As readSamples; removes an incomplete last line from the file, which an interrupted run left. */
export async function resumeSamples(path: string): Promise<Map<string, Sample>> {
  const { text, whole } = await readWhole(path);
  if (whole.length < text.length) await truncate(path, Buffer.byteLength(whole));
  return parseSamples(whole, path);
}

async function readWhole(path: string): Promise<{ text: string; whole: string }> {
  let text = '';
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
  return { text, whole: text.slice(0, text.lastIndexOf('\n') + 1) };
}

function parseSamples(text: string, path: string): Map<string, Sample> {
  const samples = text.split('\n').flatMap((line, i) => {
    if (line === '') return [];
    const sample = parseLine(line);
    if (sample === undefined) throw new SampleError(`Line ${i + 1} of ${path} is no sample of a GPU.`);
    return [sample];
  });
  return new Map(samples.map((sample) => [sample.id, sample]));
}

function parseLine(line: string): Sample | undefined {
  let sample: Partial<Sample>;
  try {
    sample = JSON.parse(line) as Partial<Sample>;
  } catch {
    return undefined;
  }
  const { id, device, mode, members, activity } = sample;
  const isWhole =
    typeof id === 'string' &&
    typeof device === 'string' &&
    (mode === 'mps' || mode === 'timeslice') &&
    activity !== undefined &&
    Array.isArray(members) &&
    members.every(({ medianMs, percent }) => medianMs > 0 && percent > 0);
  return isWhole ? (sample as Sample) : undefined;
}

/** Adds each process's slowdown against the whole device alone, if that is known. */
export function withSlowdowns(sample: Sample, known: ReadonlyMap<string, Sample>): Sample {
  const members = sample.members.map((member) => {
    const [solo] = known.get(soloId(sample.mode, { workload: member.workload, percent: 100 }))?.members ?? [];
    return solo === undefined ? member : { ...member, slowdown: member.medianMs / solo.medianMs };
  });
  return { ...sample, members };
}

/** Adds a sample to a file, as a line. */
export const addSample = (path: string, sample: Sample): Promise<void> =>
  appendFile(path, `${JSON.stringify(sample)}\n`);

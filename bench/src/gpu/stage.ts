// What a stage of the measurements of a GPU is given, and what it says.
import { setMaxListeners } from 'node:events';
import { deviceName } from './sample-file.js';
import { machineOf, type GpuHome, type GpuMachine } from './machine.js';

/** What a stage is given. */
export interface StageGiven extends Omit<GpuHome, 'signal'> {
  /** Folder of samples. */
  out: string;
  /** The stage ends by itself within this time. */
  budgetMs: number;
  seed: number;
  say(line: string): void;
}

/** What a stage has measured, and a sentence for each assertion that does not hold. */
export interface StageResult {
  metrics: Record<string, number>;
  failures: string[];
}

/** Time for the ends of processes, as a part of the budget, and at most. */
const endPart = 0.2;
const mostEndMs = 5000;

/** The end of a stage: processes are killed when `signal` is aborted, in `leftMs()`. */
export interface StageEnd {
  signal: AbortSignal;
  leftMs(): number;
}

/**
 * Runs `work` on the machine of a stage, and kills its processes shortly before the budget is spent. A machine without a
 * device, and MPS that is not in force, are failures.
 */
export async function runStage(
  given: StageGiven,
  work: (machine: GpuMachine, end: StageEnd, result: StageResult) => Promise<void>,
): Promise<StageResult> {
  const workMs = Math.floor(given.budgetMs - Math.min(endPart * given.budgetMs, mostEndMs)); // A timer takes whole ones.
  const startMs = performance.now();
  const signal = AbortSignal.timeout(workMs);
  setMaxListeners(0, signal); // Each process listens.
  const result: StageResult = { metrics: {}, failures: [] };
  let machine: GpuMachine;
  try {
    machine = await machineOf({ ...given, signal });
  } catch (error) {
    result.failures.push(`There is no device to measure: ${(error as Error).message}.`);
    return result;
  }
  given.say(`${machine.device}: ${machine.sms} SMs, ${machine.memoryMiB} MiB, ${machine.mps ? 'MPS' : 'no MPS'}`);
  if (machine.mpsProblem !== undefined) result.failures.push(`MPS is not in force: ${machine.mpsProblem}.`);
  await work(machine, { signal, leftMs: () => startMs + workMs - performance.now() }, result);
  return result;
}

/** Name of a device's file of samples. */
export const samplesFile = ({ device }: Pick<GpuMachine, 'device'>): string =>
  `gpu-${deviceName(device)}-samples.jsonl`;

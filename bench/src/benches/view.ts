import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Bench, BenchContext, Measurement } from '../bench.js';
import { benchDir } from '../paths.js';
import type { SchedulerLoad, SchedulerUse } from '../scheduler/scheduler-process.js';
import { medianOf } from '../bench.js';

const module = join(benchDir, 'dist/scheduler/scheduler-process.js');
const load = { nodes: 500, devicesPerNode: 8, instancesPerDevice: 3, placementsPerSecond: 50, seconds: 20 };
const rounds = 3;
const slackMs = 60_000;

async function use(policy: string): Promise<SchedulerUse> {
  const given: SchedulerLoad = { ...load, policy };
  const timeout = load.seconds * 1000 + slackMs;
  const { stdout } = await promisify(execFile)(process.execPath, [module, JSON.stringify(given)], { timeout });
  return JSON.parse(stdout) as SchedulerUse;
}

async function measure({ say }: BenchContext): Promise<Measurement[]> {
  const measured: SchedulerUse[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const one = await use('least-loaded');
    say(`  ${one.cores.toFixed(3)} cores, ${one.rssMiB.toFixed(0)} MiB, ${one.placed} placed`);
    measured.push(one);
  }
  return [
    medianOf(
      'view4000Cpu',
      measured.map(({ cores }) => cores),
    ),
    medianOf(
      'view4000MiB',
      measured.map(({ rssMiB }) => rssMiB),
    ),
    medianOf(
      'placed',
      measured.map(({ placed }) => placed),
    ),
  ];
}

/**
 * Processor and memory of a scheduler and its simulated agents: 4,000 devices on 500 nodes with three instances each, a row
 * of each node a second, 50 placements a second, policy least-loaded.
 */
export const view: Bench = {
  summary: 'processor and memory of a scheduler with 4,000 devices',
  parts: [],
  run: measure,
};

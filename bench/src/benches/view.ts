import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { medianOf } from '../bench.js';
import type { Bench, BenchContext, Measurement } from '../bench.js';
import { benchDir } from '../machine.js';
import type { SchedulerLoad, SchedulerUse } from '../scheduler/scheduler-process.js';

const module = join(benchDir, 'dist/scheduler/scheduler-process.js');
const load = { nodes: 500, devicesPerNode: 8, instancesPerDevice: 3, seconds: 20 };
const placementsPerSecond = 50;
const rounds = 3;
const slackMs = 60_000;

async function use(part: Pick<SchedulerLoad, 'hears' | 'placementsPerSecond'>): Promise<SchedulerUse> {
  const given: SchedulerLoad = { ...load, ...part, policy: 'least-loaded' };
  const timeout = load.seconds * 1000 + slackMs;
  const { stdout } = await promisify(execFile)(process.execPath, [module, JSON.stringify(given)], { timeout });
  return JSON.parse(stdout) as SchedulerUse;
}

async function measure({ say }: BenchContext): Promise<Measurement[]> {
  const measured: SchedulerUse[] = [];
  const agents: SchedulerUse[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const one = await use({ hears: true, placementsPerSecond });
    const alone = await use({ hears: false, placementsPerSecond: 0 });
    const cores = `${one.cores.toFixed(3)} cores, of the agents ${alone.cores.toFixed(3)}`;
    say(`  ${cores}, ${one.rssMiB.toFixed(0)} MiB, ${one.placed} placed`);
    measured.push(one);
    agents.push(alone);
  }
  return [
    medianOf(
      'view4000Cpu',
      measured.map(({ cores }) => cores),
    ),
    medianOf(
      'view4000AgentsCpu',
      agents.map(({ cores }) => cores),
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
 * Processor use and memory of a scheduler and its simulated agents: 4,000 devices on 500 nodes with three instances
 * each, one row a second of each node, 50 placements a second, policy least-loaded. `view4000AgentsCpu` is the part of
 * `view4000Cpu` that the simulated agents take to make and write their rows. It is measured with a scheduler that
 * receives no rows.
 */
export const view: Bench = {
  summary: 'processor and memory of a scheduler with 4,000 devices',
  parts: [],
  run: measure,
};

import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Bench, BenchContext, Measurement } from '../bench.js';
import { repositoryDir } from '../machine.js';
import { readTree } from '../processes.js';
import { startPlatform } from '../servers.js';
import type { Server } from '../servers.js';

const deviceCount = 8;
const processCount = 50;
const measuredMs = 60_000;
const settleMs = 10_000;
const answerWithinMs = 60_000;
const standIn = join(repositoryDir, 'native/build/cudasim');

/** Processor time of the GPU agent at rest, with one look a second at 8 devices and 50 processes. */
export const agent: Bench = {
  summary: 'processor time of the GPU agent, against a platform without one',
  parts: ['agent'],
  async run(context) {
    const off = await measure(context, 'off', 'none');
    const on = await measure(context, 'on', `sim:a100-40x${deviceCount}`);
    return [
      { name: 'agentCpu', value: on - off },
      { name: 'withAgentCpu', value: on },
      { name: 'withoutAgentCpu', value: off },
    ] satisfies Measurement[];
  },
};

/** Mean processor use over a minute, in cores, of the server and of the programs it ran to their end. */
async function measure(context: BenchContext, name: string, gpus: string): Promise<number> {
  const dataDir = join(context.temporaryDir, name);
  const environment = { GPUWHISK_GPUS: gpus };
  const platform = await startPlatform(context.cleanup, { dataDir, stemCells: false, environment });
  if (gpus !== 'none') await startProcesses(context, platform, dataDir);
  context.say(`  agent ${name}: settling, then ${measuredMs / 1000} s`);
  await sleep(settleMs);
  const beforeS = ownS(platform.pid);
  const beganMs = performance.now();
  await sleep(measuredMs);
  const cpu = (ownS(platform.pid) - beforeS) / ((performance.now() - beganMs) / 1000);
  if (gpus !== 'none') {
    const seen = (await devicesOf(platform, dataDir)).reduce((sum, { workloads }) => sum + workloads.length, 0);
    if (seen !== processCount) throw new Error(`the agent saw ${seen} processes instead of ${processCount}`);
  }
  await platform.stop();
  return cpu;
}

function ownS(pid: number): number {
  const { root } = readTree(pid);
  return root.cpuS + root.endedChildrenCpuS;
}

/** Starts clients of the devices' MPS daemons; each makes a context and then waits for input. */
async function startProcesses({ cleanup }: BenchContext, platform: Server, dataDir: string): Promise<void> {
  const devices = await devicesOf(platform, dataDir);
  for (let number = 0; number < processCount; number++) {
    const { uuid } = devices[number % devices.length] as { uuid: string };
    const home = createHash('sha256').update(uuid).digest('hex').slice(0, 12);
    const env = {
      CUDA_VISIBLE_DEVICES: uuid,
      CUDA_MPS_PIPE_DIRECTORY: join(dataDir, 'gpus', home, 'pipe'),
      GPUWHISK_SIM_SOCKET: join(dataDir, 'gpus', 'gpus.sock'),
      LD_LIBRARY_PATH: standIn,
    };
    const child = spawn(join(standIn, 'client'), [], { env, stdio: ['pipe', 'pipe', 'inherit'] });
    cleanup.add('client', async () => {
      child.stdin.end();
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    });
    child.stdin.write('context\n');
    const [answer] = (await once(child.stdout, 'data', { signal: AbortSignal.timeout(answerWithinMs) })) as [Buffer];
    if (!answer.toString().startsWith('0 ')) throw new Error(`a client got no context: ${answer.toString().trim()}`);
  }
}

async function devicesOf({ url }: Server, dataDir: string): Promise<{ uuid: string; workloads: unknown[] }[]> {
  const operator = readFileSync(join(dataDir, 'operator.key'), 'utf8').trim();
  const headers = { authorization: `Basic ${Buffer.from(operator).toString('base64')}` };
  const signal = AbortSignal.timeout(answerWithinMs);
  const response = await fetch(`${url}/api/v1/gpu/devices`, { headers, signal });
  if (response.status !== 200) throw new Error(`GET devices gave status ${response.status}`);
  return (await response.json()) as { uuid: string; workloads: unknown[] }[];
}

import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { loadNvml } from '@gpuwhisk/invoker/gpu-agent/drivers/nvml';
import type { NvmlDevice } from '@gpuwhisk/invoker/gpu-agent/drivers/nvml';
import type { DeviceSample } from '@gpuwhisk/invoker/gpu-agent/drivers/gpu-driver';
import { openActivity, openMachine } from '../../gpu/machine.js';
import type { GpuMachine } from '../../gpu/machine.js';
import { repositoryDir } from '../../machine.js';
import { startPlatform } from '../../servers.js';
import { torchFacts } from './python.js';
import { referenceOf } from './reference.js';
import { assert } from './stage.js';
import type { Stage } from './stage.js';

const execute = promisify(execFile);
const commandTimeoutMs = 10_000;
const native = join(repositoryDir, 'native/build');
/** Part of the SMs, and of the memory's bandwidth, that a workload bound by them keeps busy at least. */
const busyAtLeast = 0.5;
/** Time that a known load runs for GPM, s. */
const loadS = 1;

/** What the machine, the driver and the platform's start tell, and whether our view of the device is nvidia-smi's. */
export async function facts(stage: Stage): Promise<void> {
  await stage.check('facts of the system', 10_000, () => systemFacts(stage));
  await stage.check('the platform starts', 15_000, () => startFacts(stage));
  const machine = await openMachine({ ...stage, temporaryDir: stage.work });
  stage.note(`${machine.device}: ${machine.sms} SMs, ${machine.memoryMiB} MiB`);
  stage.note(
    machine.mps ? 'MPS starts, and holds a client of 50 % to half of the SMs.' : `No MPS: ${machine.mpsProblem}`,
  );
  await stage.check('NVML shows what nvidia-smi shows', 15_000, () => compareNvml(stage, machine));
  await stage.check('activity of a known load', 20_000, () => knownLoads(stage, machine));
  if (!stage.simulated) await stage.check('PyTorch sees the device', 60_000, () => noteTorch(stage));
}

const textOf = (path: string): string => {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch (error) {
    return `(${(error as NodeJS.ErrnoException).code})`;
  }
};

async function answerOf(program: string, ...args: string[]): Promise<string> {
  try {
    const { stdout, stderr } = await execute(program, args, { timeout: commandTimeoutMs });
    return (stdout + stderr).trim();
  } catch (error) {
    return `(${(error as Error).message.trim().split('\n').at(-1)})`;
  }
}

async function systemFacts(stage: Stage): Promise<string> {
  const version = textOf('/proc/version');
  stage.note(`kernel: ${version}`);
  // gVisor's kernel calls itself by a fixed version, and says its name in the log.
  const isGvisor = /gvisor/i.test(version) || /gvisor/i.test(await answerOf('dmesg'));
  if (isGvisor) stage.note('This is gVisor: ptrace, namespaces and userfaultfd are its own.');
  stage.note(
    `system: ${/PRETTY_NAME="(.*)"/.exec(textOf('/etc/os-release'))?.[1] ?? 'unknown'}; user ${process.getuid?.()}`,
  );
  stage.note(
    `cgroups: ${await answerOf('stat', '-fc', '%T', '/sys/fs/cgroup')}; ${textOf('/sys/fs/cgroup/cgroup.controllers')}`,
  );
  stage.note(`ptrace scope: ${textOf('/proc/sys/kernel/yama/ptrace_scope')}`);
  stage.note(`security modules: ${textOf('/sys/kernel/security/lsm')}`);
  stage.note(`user namespaces: ${await answerOf('unshare', '-Urmpf', '--mount-proc', 'true')}`);
  stage.note(`LD_LIBRARY_PATH: ${process.env['LD_LIBRARY_PATH'] ?? ''}`);
  const wanted = [
    'nvidia-smi',
    'nvidia-cuda-mps-control',
    'nvidia-cuda-mps-server',
    'nvcc',
    stage.python,
    'cc',
    'g++',
    'nft',
  ];
  const found = await Promise.all(wanted.map(async (name) => `${name}: ${await answerOf('which', name)}`));
  stage.note(`programs: ${found.join('; ')}`);
  if (!stage.simulated) {
    stage.note(`device files: ${await answerOf('sh', '-c', 'ls -l /dev/nvidia* /dev/nvidia-caps 2>&1 | head -40')}`);
    stage.note(`driver: ${await answerOf('nvidia-smi')}`);
  }
  return 'noted';
}

/** Starts the platform without GPUs and notes what it says of isolation. */
async function startFacts(stage: Stage): Promise<string> {
  const { cleanup, work } = stage;
  const server = await startPlatform(cleanup, { dataDir: join(work, 'data'), environment: { GPUWHISK_GPUS: 'none' } });
  stage.metric('readyMs', server.listeningMs);
  for (const line of server
    .output()
    .split('\n')
    .filter((one) => /note:|isolation|sandbox/i.test(one))) {
    stage.note(`at the start: ${line.trim()}`);
  }
  await server.stop();
  return `ready in ${server.listeningMs.toFixed(0)} ms`;
}

/** The first device and a look at it by our binding to NVML. */
async function lookByNvml(machine: GpuMachine): Promise<{ device: NvmlDevice; sample: DeviceSample; driver: string }> {
  const nvml = loadNvml();
  assert(nvml !== undefined, 'The binding to NVML was not built.');
  const library = `${machine.simulated ? join(native, 'cudasim/') : ''}libnvidia-ml.so.1`;
  const { session, driver } = await nvml.open(library, machine.env['GPUWHISK_SIM_SOCKET'] ?? '');
  try {
    const [device] = await nvml.devices(session);
    const [sample] = await nvml.sample(session);
    assert(device !== undefined && sample !== undefined, 'NVML lists no device.');
    return { device, sample, driver };
  } finally {
    await nvml.close(session);
  }
}

async function compareNvml(stage: Stage, machine: GpuMachine): Promise<string> {
  const worker = await machine.start('driver');
  try {
    await worker.load('stream:256');
    const { device, sample, driver } = await lookByNvml(machine);
    const reference = await referenceOf(machine);
    stage.note(`NVML: ${JSON.stringify({ ...device, ...sample, driver })}`);
    stage.note(`reference: ${JSON.stringify(reference)}`);
    const differences = differencesOf({ ...device, ...sample }, reference);
    assert(differences.length === 0, differences.join('; '));
    const ours = sample.processes.find(({ pid }) => pid === worker.pid);
    assert(ours !== undefined, `process ${worker.pid}, which uses the device, is not listed`);
    return `${Object.keys(reference).length} fields equal`;
  } finally {
    await worker.end();
  }
}

/** Values may move between two looks by so much: MiB, degrees, W. */
const tolerances: Readonly<Record<string, number>> = { usedMemoryMiB: 64, memoryMiB: 1, temperatureC: 3, powerW: 60 };

function differencesOf(ours: object, reference: object): string[] {
  const all = ours as Record<string, unknown>;
  return Object.entries(reference).flatMap(([name, value]) => {
    const own = all[name];
    const isClose =
      typeof own === 'number' && typeof value === 'number'
        ? Math.abs(own - value) <= (tolerances[name] ?? 0)
        : own === value;
    return isClose ? [] : [`${name} is ${String(own)}, and ${String(value)} there`];
  });
}

async function knownLoads(stage: Stage, machine: GpuMachine): Promise<string> {
  const meter = await openActivity(machine);
  stage.cleanup.add('management library', () => meter.close());
  const worker = await machine.start('driver');
  stage.cleanup.add('worker', () => worker.end());
  const said: string[] = [];
  for (const [workload, field] of [
    ['matmul:2048', 'smActivity'],
    ['stream:256', 'dramActivity'],
  ] as const) {
    await worker.load(stage.simulated && workload === 'matmul:2048' ? 'matmul:1024' : workload);
    await meter.look();
    await worker.run(loadS);
    const activity = (await meter.look())[field];
    if (activity === undefined) {
      said.push(`${field} is not reported`);
      continue;
    }
    stage.metric(`${field}.${workload.split(':')[0]}`, activity);
    assert(activity >= busyAtLeast, `${field} beside ${workload} is ${activity.toFixed(2)}, below ${busyAtLeast}`);
    said.push(`${field} ${activity.toFixed(2)}`);
  }
  return said.join(', ');
}

async function noteTorch(stage: Stage): Promise<string> {
  const found = await torchFacts(stage);
  stage.note(`PyTorch: ${JSON.stringify(found)}`);
  stage.metric('torchImportMs', found.importMs);
  stage.metric('contextMs', found.contextMs);
  return `torch ${found.torch}, ${found.sms} SMs`;
}

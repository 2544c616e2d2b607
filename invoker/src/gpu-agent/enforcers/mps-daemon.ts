import { createHash } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { mpsClientLimit } from '@gpuwhisk/common/gpu';
import type { Device } from '@gpuwhisk/common/gpu';
import { mpsControl } from './mps-control.js';
import type { MpsControl, MpsDirectories, MpsProgram } from './mps-control.js';
import { ShareError } from './share-enforcer.js';
import type { ShareCeiling } from './share-enforcer.js';

/** A control daemon of MPS that serves a device, a slice of one, or several devices together. */
export interface MpsDaemon {
  /** UUIDs of its devices. */
  devices: readonly string[];
  slice: string | undefined;
  /** What its clients see. */
  visible: string;
  pipe: string;
  control: MpsControl;
  /** Whether it is ours to end. */
  own: boolean;
  clientLimit: number;
  /** What its clients were last held to. */
  ceiling?: ShareCeiling;
}

const longestSocketPath = 107;
/** Processes that were ended leave the daemon's list within moments. */
const emptyWithinMs = 5000;
const pollMs = 50;

/** MPS on an instance takes clients in proportion to its SMs. */
function clientLimitOf(device: Device | undefined, slice: string | undefined): number {
  const part = device?.slices.find(({ uuid }) => uuid === slice);
  return part && device ? Math.max(1, Math.floor((mpsClientLimit * part.smCount) / device.smCount)) : mpsClientLimit;
}

function directoriesOf(folder: string, visible: string): MpsDirectories {
  const home = join(folder, createHash('sha256').update(visible).digest('hex').slice(0, 12));
  return { pipe: join(home, 'pipe'), log: join(home, 'log') };
}

/** A daemon with directories of its own below `folder`, whether it runs or not. Throws ShareError. */
export function ownDaemon(folder: string, program: MpsProgram, devices: readonly Device[], slice?: string): MpsDaemon {
  const uuids = devices.map(({ uuid }) => uuid);
  const visible = slice ?? uuids.join(',');
  const directories = directoriesOf(folder, visible);
  const { pipe } = directories;
  if (Buffer.byteLength(join(pipe, 'control')) > longestSocketPath) {
    throw new ShareError(`MPS cannot be started: the path ${pipe} is too long for a socket.`);
  }
  const control = mpsControl(directories, program);
  return { devices: uuids, slice, visible, pipe, control, own: true, clientLimit: clientLimitOf(devices[0], slice) };
}

/** The daemon that somebody else runs at `pipe`. Rejects with ShareError where there is none. */
export async function foreignDaemon(
  folder: string,
  program: MpsProgram,
  pipe: string,
  device: Device,
  slice?: string,
): Promise<MpsDaemon> {
  const visible = slice ?? device.uuid;
  const control = mpsControl({ pipe, log: directoriesOf(folder, visible).log }, program);
  if (!(await control.answers())) throw new ShareError(`No MPS daemon runs at ${pipe}, and gpu.manage.mps is off.`);
  const clientLimit = clientLimitOf(device, slice);
  return { devices: [device.uuid], slice, visible, pipe, control, own: false, clientLimit };
}

/** Starts one of ours. Rejects with ShareError. */
export async function startDaemon(folder: string, { control, visible }: MpsDaemon): Promise<void> {
  const { pipe, log } = directoriesOf(folder, visible);
  await rm(pipe, { recursive: true, force: true });
  await mkdir(pipe, { recursive: true });
  await mkdir(log, { recursive: true });
  await control.start(visible);
  if (!(await control.answers())) throw new ShareError(`MPS for ${visible} was started and does not answer.`);
}

/** Host pids of a daemon's clients, each with its server. Rejects with ShareError. */
export async function clientsOf({ control }: MpsDaemon): Promise<{ pid: number; server: number }[]> {
  const servers = await control.servers();
  const lists = servers.map(async (server) => (await control.clients(server)).map((pid) => ({ pid, server })));
  return (await Promise.all(lists)).flat();
}

/** Resolves once a daemon has no clients, or does not answer. Rejects with ShareError where some stay. */
export async function untilEmpty(daemon: MpsDaemon): Promise<void> {
  const untilMs = performance.now() + emptyWithinMs;
  while ((await daemon.control.answers()) && (await clientsOf(daemon)).length > 0) {
    if (performance.now() >= untilMs) throw new ShareError(`MPS of ${daemon.visible} has clients.`);
    await sleep(pollMs);
  }
}

import { setTimeout as sleep } from 'node:timers/promises';
import type { Device, Share } from '@gpuwhisk/common/gpu';
import { builtPath } from '../../host/native-programs.js';
import { ProgramError, runProgram } from '../../host/programs.js';
import { GpuDriverError } from '../drivers/gpu-driver.js';
import type { DeviceSample, GpuDriver } from '../drivers/gpu-driver.js';
import type { MpsEnforcer } from './mps-enforcer.js';
import { noEnforcer } from './no-enforcer.js';
import { ShareError } from './share-enforcer.js';
import type { DeviceUse, ShareEnforcer, Sharing } from './share-enforcer.js';

export interface AutoMpsOptions {
  driver: Pick<GpuDriver, 'sample'>;
  /** MPS by daemons that the platform starts, without a change of the compute mode. */
  own: MpsEnforcer;
  /** MPS by the operator's daemon, which comes first; absent: there is none. */
  operators?: ShareEnforcer;
  /** Environment by which the test client finds the driver; default: that of this process. */
  env?: NodeJS.ProcessEnv;
  /** Longest wait until a device is idle, ms; default 3000. The driver's utilisation is of the last second. */
  idleWithinMs?: number;
}

/** How a device is shared, and by which enforcer. */
interface Choice extends Sharing {
  enforcer: ShareEnforcer;
  /** Memory that was in use on the idle device, MiB: the driver's own. */
  idleMiB: number;
}

const lookMs = 250;
/** Memory of an idle device that the driver may hold itself, MiB; a context takes more, NVML leaves out reserved memory. */
const maxIdleMiB = 256;
/** Memory of work that the driver does not list, MiB, from which on it is foreign; a context alone takes about 500 on an H100. */
const foreignMiB = 384;
const probeTimeoutMs = 30_000;
const probePath = builtPath('gpu-probe');
const half: Share = { shareClass: 50, smRequest: 0.5, smLimit: 0.5, memoryMiB: 1024 };

/**
 * MPS where a device admits it, decided once for each device: by the operator's daemon, or by one of the platform's on an
 * idle device where a test client of 50 % sees half of the SMs. Elsewhere processes take turns. The compute mode stays.
 */
export function createAutoMps(options: AutoMpsOptions): ShareEnforcer {
  const { driver, own, operators } = options;
  const turns = noEnforcer();
  const choices = new Map<string, Promise<Choice>>();
  /** The choices that were made. */
  const made = new Map<string, Choice>();

  const inTurns = (how: string): Choice => ({ enforcer: turns, isShared: false, how, idleMiB: 0 });

  const startOwn = async (device: Device, slice: string | undefined): Promise<Choice> => {
    try {
      const isServed = await own.isServed(device, slice);
      // The clients of an earlier daemon may keep the device busy.
      const { problem, usedMiB } = isServed
        ? { problem: undefined, usedMiB: 0 }
        : await idleness(driver, device.uuid, options.idleWithinMs ?? 3000);
      if (problem !== undefined) return inTurns(`${problem}, so that MPS was not started`);
      await own.open(device, slice);
      const why = await refutation(own, device, slice, options.env ?? process.env);
      if (why === undefined) {
        const how = isServed ? 'an earlier MPS daemon is used' : 'MPS was started; the compute mode is as it was';
        return { enforcer: own, isShared: true, how, idleMiB: usedMiB, mayGiveUp: true };
      }
      await own.shut(device.uuid, slice);
      return inTurns(why);
    } catch (error) {
      if (!(error instanceof ShareError || error instanceof GpuDriverError)) throw error;
      return inTurns(error.message.replace(/\.$/, ''));
    }
  };

  const choose = async (device: Device, slice: string | undefined): Promise<Choice> => {
    try {
      await operators?.open(device, slice);
      if (operators)
        return { enforcer: operators, isShared: true, how: "the operator's MPS daemon is used", idleMiB: 0 };
    } catch (error) {
      if (!(error instanceof ShareError)) throw error;
    }
    return startOwn(device, slice);
  };

  const of = (device: string): ShareEnforcer => {
    const choice = made.get(device);
    if (choice === undefined) throw new ShareError(`MPS has not been opened for ${device}.`);
    return choice.enforcer;
  };

  return {
    name: 'mps',
    adjusts: false,
    async open(device, slice) {
      const known = choices.get(device.uuid);
      const choice = known ?? choose(device, slice);
      choices.set(device.uuid, choice);
      try {
        made.set(device.uuid, await choice);
      } catch (error) {
        choices.delete(device.uuid);
        throw error;
      }
      // The choice has opened its first place.
      if (known !== undefined) await of(device.uuid).open(device, slice);
    },
    sharing: (device) => made.get(device),
    async foreignWork(device, { others, unlistedMiB = 0 }: DeviceUse) {
      const choice = made.get(device);
      if (choice?.enforcer !== own) return undefined;
      for (const slice of new Set(others.map((other) => other.slice))) {
        const pids = others.filter((other) => other.slice === slice).map(({ pid }) => pid);
        const [pid] = await own.outsiders(pids, device, slice);
        if (pid !== undefined) return `process ${pid} uses it past MPS`;
      }
      const foreign = unlistedMiB - choice.idleMiB;
      return foreign > foreignMiB
        ? `${foreign} MiB of its memory belong to no process that the driver lists`
        : undefined;
    },
    async giveUp(device, why) {
      if (of(device) !== own) return;
      await own.shut(device);
      made.set(device, inTurns(why));
      choices.set(device, Promise.resolve(inTurns(why)));
    },
    reconsider: (device) => void choices.delete(device),
    settings: async (device, share, slice) => of(device.uuid).settings(device, share, slice),
    async gangSettings(devices, share, partsMiB) {
      const [enforcer, ...more] = new Set(devices.map(({ uuid }) => of(uuid)));
      if (enforcer === undefined || more.length > 0) throw new ShareError('These GPUs are not shared in the same way.');
      return enforcer.gangSettings(devices, share, partsMiB);
    },
    limitClients: async (device, slice, ceiling) => of(device).limitClients?.(device, slice, ceiling),
    confirm: async (client) => of(client.device).confirm(client),
    adjust: async (client, share) => of(client.device).adjust(client, share),
    clients: async (device, slice) => of(device).clients(device, slice),
    terminate: async (client) => of(client.device).terminate(client),
    isFaulted: async (device, slice) => (await of(device).isFaulted?.(device, slice)) ?? false,
    check: async (device, slice) => of(device).check(device, slice),
    shut: async (device, slice) => made.get(device)?.enforcer.shut(device, slice),
    async close() {
      await own.close();
      await operators?.close();
      choices.clear();
      made.clear();
    },
  };
}

/** The reason why a device is not idle, after a wait for its last work to end, and the memory in use there, MiB. */
async function idleness(
  driver: Pick<GpuDriver, 'sample'>,
  device: string,
  withinMs: number,
): Promise<{ problem: string | undefined; usedMiB: number }> {
  const untilMs = performance.now() + withinMs;
  for (;;) {
    const sample = (await driver.sample()).find(({ uuid }) => uuid === device);
    const problem = sample === undefined ? 'the driver does not tell its use' : useOf(sample);
    if (problem === undefined || performance.now() >= untilMs) return { problem, usedMiB: sample?.usedMemoryMiB ?? 0 };
    await sleep(lookMs);
  }
}

function useOf({ usedMemoryMiB, utilisation = 0 }: DeviceSample): string | undefined {
  if (usedMemoryMiB > maxIdleMiB) return `other work holds ${usedMemoryMiB} MiB of its memory`;
  return utilisation > 0 ? `other work computes on it (${Math.round(utilisation * 100)} % of the time)` : undefined;
}

/** Why a test client shows that a daemon does not hold its clients to their share; undefined if it does. */
async function refutation(
  mps: ShareEnforcer,
  device: Device,
  slice: string | undefined,
  env: NodeJS.ProcessEnv,
): Promise<string | undefined> {
  const settings = await mps.settings(device, half, slice);
  const whole = device.slices.find(({ uuid }) => uuid === slice)?.smCount ?? device.smCount;
  try {
    const said = await runProgram(probePath, [], { timeoutMs: probeTimeoutMs, env: { ...env, ...settings.env } });
    const sms = Number(said);
    if (sms > whole * 0.35 && sms < whole * 0.65) return undefined;
    return `MPS gives a client of 50 % ${said.trim()} of ${whole} SMs`;
  } catch (error) {
    if (!(error instanceof ProgramError)) throw error;
    return `MPS was started but served no client: ${error.lastLine}`;
  }
}

// The provider of machines that the configuration names, and the procurement over it.
import { execFile } from 'node:child_process';
import { ConfigError } from '@gpuwhisk/common/config';
import { isApiError } from '@gpuwhisk/common/errors';
import { ProcessRegistry } from '@gpuwhisk/common/state/process-registry';
import type { ArtifactStore } from '@gpuwhisk/common/store/artifact-store';
import { systemNetwork } from '@gpuwhisk/common/system/network';
import type { Retirements } from '@gpuwhisk/controller/cluster/retirements';
import { boundedProvider } from '@gpuwhisk/controller/gpu/procure/bounded-provider';
import { commandProvider } from '@gpuwhisk/controller/gpu/procure/command-provider';
import type { RunCommand } from '@gpuwhisk/controller/gpu/procure/command-provider';
import { emulatedProvider } from '@gpuwhisk/controller/gpu/procure/emulated-provider';
import type { Machines } from '@gpuwhisk/controller/gpu/procure/emulated-provider';
import { Procurement } from '@gpuwhisk/controller/gpu/procure/procurement';
import type { ProcurementParts } from '@gpuwhisk/controller/gpu/procure/procurement';
import type { Provider } from '@gpuwhisk/controller/gpu/procure/provider';
import { webhookProvider } from '@gpuwhisk/controller/gpu/procure/webhook-provider';
import type { Engines } from '../engines/engines.js';

/** Longest output of a program that is read, bytes. */
const maxOutputBytes = 4 * 1024 * 1024;

/** Runs a program of the operator. */
export const runCommand: RunCommand = ([program = '', ...args], { env, timeoutMs }) =>
  new Promise((resolve, reject) => {
    const settings = {
      timeout: timeoutMs,
      killSignal: 'SIGKILL' as const,
      maxBuffer: maxOutputBytes,
      env: { ...process.env, ...env },
    };
    execFile(program, args, settings, (error, stdout, stderr) => {
      if (error === null) return resolve(stdout);
      const said = stderr.trim().split('\n').at(-1) ?? '';
      reject(
        new Error(`${program}: ${error.killed === true ? `no end within ${timeoutMs} ms` : said || error.message}`),
      );
    });
  });

/** Dependencies of openProcurement. */
interface ProcurementOptions
  extends
    Pick<Engines, 'config' | 'store' | 'state' | 'clock' | 'random' | 'logger'>,
    Pick<ProcurementParts, 'table' | 'lease' | 'workloads' | 'retire' | 'booted'> {
  /** Starts machines of an emulated cloud; absent in standalone, where no other invoker can join. */
  machines?: Machines;
}

/**
 * The procurement that the configuration asks for; undefined without a provider. Throws ConfigError in standalone, whose bus
 * no other machine reaches.
 */
export function openProcurement(options: ProcurementOptions): Procurement | undefined {
  const { config, machines, clock, logger } = options;
  const { procure } = config.gpu;
  if (procure.provider === 'none') return undefined;
  if (machines === undefined) {
    throw new ConfigError(
      `gpu.procure.provider '${procure.provider}' needs a cluster: machines join no standalone server`,
    );
  }
  const provider = boundedProvider(chosenProvider(options, machines), { options: procure, clock, logger });
  return new Procurement({ ...options, provider, options: procure });
}

function chosenProvider({ config, clock, logger }: ProcurementOptions, machines: Machines): Provider {
  const { provider, commands, webhook, emulated, timeoutMs } = config.gpu.procure;
  if (provider === 'commands' && commands !== undefined)
    return commandProvider(commands, { run: runCommand, timeoutMs });
  if (provider === 'webhook' && webhook !== undefined) {
    return webhookProvider(webhook, { network: systemNetwork, timeoutMs });
  }
  return emulatedProvider(emulated, { clock, logger, machines });
}

/** Retires the invoker of a machine that was given back. Resolves with false while that is under way or not possible yet. */
export function retireInvoker(
  store: ArtifactStore,
  retirements: Pick<Retirements, 'retire'> | undefined,
): (invoker: string) => Promise<boolean> {
  const registry = new ProcessRegistry(store, 'invokers');
  return async (invoker) => {
    const known = await registry.get(Number(invoker.replace('invoker', '')));
    if (known === undefined || retirements === undefined) return true;
    try {
      return (await retirements.retire('invokers', known.name)).isSettled;
    } catch (error) {
      // 409: it was alive a moment ago. 503: the cluster's state is out of reach.
      if (isApiError(error) && (error.status === 409 || error.status === 503)) return false;
      throw error;
    }
  };
}

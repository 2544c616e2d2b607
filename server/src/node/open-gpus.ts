import { join } from 'node:path';
import { ConfigError } from '@gpuwhisk/common/config';
import type { Config } from '@gpuwhisk/common/config';
import type { Device, Slice } from '@gpuwhisk/common/gpu';
import type { Logger } from '@gpuwhisk/common/logging';
import type { ClusterState } from '@gpuwhisk/common/state/cluster-state';
import type { Clock } from '@gpuwhisk/common/system/clock';
import type { GpuAccess } from '@gpuwhisk/invoker/containers/runtime-launch';
import { ContextSizes } from '@gpuwhisk/invoker/gpu-agent/sampler';
import { GpuDriverError } from '@gpuwhisk/invoker/gpu-agent/drivers/gpu-driver';
import type { GpuDriver } from '@gpuwhisk/invoker/gpu-agent/drivers/gpu-driver';
import { openNvidiaDriver } from '@gpuwhisk/invoker/gpu-agent/drivers/nvidia-driver';
import { loadNvml } from '@gpuwhisk/invoker/gpu-agent/drivers/nvml';
import { createAutoMps } from '@gpuwhisk/invoker/gpu-agent/enforcers/auto-mps';
import { createMpsEnforcer } from '@gpuwhisk/invoker/gpu-agent/enforcers/mps-enforcer';
import { noEnforcer } from '@gpuwhisk/invoker/gpu-agent/enforcers/no-enforcer';
import type { ShareEnforcer } from '@gpuwhisk/invoker/gpu-agent/enforcers/share-enforcer';
import { createTokensEnforcer } from '@gpuwhisk/invoker/gpu-agent/enforcers/tokens-enforcer';
import { whenReady } from '@gpuwhisk/invoker/host/behind';
import { GpuAgent } from '@gpuwhisk/invoker/gpu-agent/gpu-agent';
import { nvidiaAccess } from '@gpuwhisk/invoker/gpu-agent/host/device-files';
import { systemProcesses } from '@gpuwhisk/invoker/gpu-agent/host/host-processes';
import { StandInError, standInFolder, startStandIn } from '@gpuwhisk/invoker/gpu-agent/host/stand-in';
import type { StandIn } from '@gpuwhisk/invoker/gpu-agent/host/stand-in';
import { policyModules } from '@gpuwhisk/gpu/policies/policy-modules';

/** Dependencies of a node's GPUs. */
interface OpenGpusOptions {
  config: Config;
  /** The invoker's topic. */
  invoker: string;
  state: ClusterState;
  clock: Clock;
  logger: Logger;
}

/** The GPUs of this node. */
export interface NodeGpus {
  /** Absent if there are no GPUs. */
  agent?: GpuAgent;
  /** For the start-up: the GPUs, or why there are none. */
  line?: string;
  /** For the start-up: how the GPUs are shared, or why not and what to do. */
  sharing?: string;
  close(): Promise<void>;
}

const none: NodeGpus = { close: () => Promise.resolve() };

/** Opens the GPUs that the configuration asks for. Throws ConfigError if simulated ones cannot be opened. */
export async function openGpus(options: OpenGpusOptions): Promise<NodeGpus> {
  const { gpus } = options.config;
  if (gpus === 'none') return none;
  if (gpus === 'auto') return openReal(options);
  try {
    return await openSimulated(options, gpus.slice('sim:'.length));
  } catch (error) {
    if (error instanceof StandInError) throw new ConfigError(`--gpus ${gpus}: ${error.message}`);
    throw error;
  }
}

async function openSimulated(options: OpenGpusOptions, gpus: string): Promise<NodeGpus> {
  const { config, clock, logger } = options;
  await Promise.all([whenReady('standIn'), whenReady('gpu')]).catch((error: Error) => {
    throw new StandInError(error.message);
  });
  const opened: { agent?: GpuAgent } = {};
  const standIn = await startStandIn({
    gpus,
    folder: join(config.dataDir, 'gpus'),
    clock,
    logger,
    restarted: () => void opened.agent?.driverRestarted(),
  });
  try {
    const nvml = loadNvml();
    if (nvml === undefined) throw new StandInError('There are no simulated GPUs: the binding to NVML was not built.');
    const library = join(standInFolder, 'libnvidia-ml.so.1');
    const driver = await openNvidiaDriver({ nvml, clock, library, simulator: standIn.socket });
    const node = await startAgent(options, driver, () => standInAccess(standIn), standIn.socket);
    if (node.agent) opened.agent = node.agent;
    return { ...node, close: () => node.close().finally(() => standIn.close()) };
  } catch (error) {
    await standIn.close();
    throw error;
  }
}

/**
 * Opens real devices. Has no `line` on a machine without NVML; otherwise `line` gives the reason if there are no GPUs.
 */
async function openReal(options: OpenGpusOptions): Promise<NodeGpus> {
  const nvml = loadNvml();
  if (nvml === undefined) return none;
  const { clock, config, logger } = options;
  try {
    const driver = await openNvidiaDriver({
      nvml,
      clock,
      manage: { mps: config.gpu.manage.mps === true, mig: config.gpu.manage.mig },
    });
    // Only what shares a GPU is still to come: a failure, which was printed, leaves them without it.
    await whenReady('gpu').catch((error: Error) => logger.warn(error.message));
    return await startAgent(options, driver, await nvidiaAccess());
  } catch (error) {
    if (!(error instanceof GpuDriverError)) throw error;
    // An error without a code does not come from the driver: the machine has none.
    const why = error.code === undefined ? 'there is no NVIDIA driver' : error.message;
    return { ...none, line: `No GPU was found: ${why}.` };
  }
}

async function startAgent(
  options: OpenGpusOptions,
  driver: GpuDriver,
  access: (device: string, slice?: Slice) => GpuAccess,
  simulator?: string,
): Promise<NodeGpus> {
  const { invoker, state, clock, logger, config } = options;
  const contexts = new ContextSizes(driver.version.driver);
  const enforcer = await chooseEnforcer(options, driver, contexts, simulator);
  const processes = systemProcesses;
  const { node, workloadUsers } = config.gpu;
  const agent = new GpuAgent({
    invoker,
    driver,
    enforcer,
    state,
    clock,
    logger,
    processes,
    access,
    contexts,
    node,
    workloadUsers,
  });
  const close = async (): Promise<void> => {
    await agent.close();
    await enforcer.close();
    await driver.close();
  };
  try {
    await agent.start();
    const devices = await driver.devices();
    if (devices.length === 0) return { line: 'No GPU was found.', close };
    return { agent, line: describe(devices), sharing: describeSharing(devices, enforcer, agent, config), close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Chooses MPS if it is available, with kernel tokens below it if they are configured. */
async function chooseEnforcer(
  options: OpenGpusOptions,
  driver: GpuDriver,
  contexts: ContextSizes,
  simulator: string | undefined,
): Promise<ShareEnforcer> {
  const { config, logger } = options;
  const under = await chooseMps(options, driver, simulator);
  const { tokens } = config.gpu;
  if (tokens === false) return under;
  return createTokensEnforcer({
    folder: join(config.dataDir, 'gpus', 'tokens'),
    ...(under.name === 'mps' && { under }),
    ...(typeof tokens === 'string' && tokens !== 'dilu' && { policy: { name: tokens, modules: policyModules() } }),
    contextMiB: (device) => contexts.of(device) ?? 0,
    say: (line) => logger.warn({ line }, 'kernel tokens'),
  });
}

/** Chooses MPS as `gpu.manage.mps` says; without a daemon that may be used or started, processes take turns. */
async function chooseMps(
  { config, logger }: OpenGpusOptions,
  driver: GpuDriver,
  simulator: string | undefined,
): Promise<ShareEnforcer> {
  const env: Record<string, string> = simulator === undefined ? {} : { GPUWHISK_SIM_SOCKET: simulator };
  const control = simulator === undefined ? {} : { program: join(standInFolder, 'nvidia-cuda-mps-control'), env };
  const folder = join(config.dataDir, 'gpus');
  const manage = manageOf(config, driver.simulated);
  if (manage === true) return createMpsEnforcer({ driver, folder, manage, control });
  if (manage === 'auto') {
    const own = createMpsEnforcer({ driver, folder, manage: true, setsMode: false, control });
    if (simulator === undefined) {
      return createAutoMps({ driver, own, operators: createMpsEnforcer({ driver, folder, manage: false, control }) });
    }
    return createAutoMps({ driver, own, env: { ...process.env, ...env, LD_LIBRARY_PATH: standInFolder } });
  }
  const [first] = driver.simulated ? [] : await driver.devices();
  if (first === undefined) return noEnforcer();
  const operators = createMpsEnforcer({ driver, folder, manage: false, control });
  try {
    await operators.open(first);
    return operators;
  } catch (error) {
    logger.warn({ error: String(error) }, 'shares of GPUs are not enforced: processes take turns');
    return noEnforcer();
  }
}

function manageOf(config: Config, isSimulated: boolean): boolean | 'auto' {
  return config.gpu.manage.mps ?? (isSimulated ? 'auto' : false);
}

/** For each way in which devices are shared one sentence, and where processes take turns the setting that changes it. */
function describeSharing(devices: readonly Device[], enforcer: ShareEnforcer, agent: GpuAgent, config: Config): string {
  const manage = manageOf(
    config,
    devices.some(({ simulated }) => simulated),
  );
  const { shared, turns, remedy } = sharingTexts[`${manage}`];
  const uuids = new Map<string, string[]>();
  for (const { uuid } of devices) {
    const isShared = enforcer.name.includes('mps') && agent.shown.isShared(uuid);
    const how = enforcer.sharing?.(uuid)?.how ?? (isShared ? shared : turns);
    const text = isShared ? `side by side: ${how}.` : `in turns: ${how}. ${remedy}`;
    uuids.set(text, [...(uuids.get(text) ?? []), uuid]);
  }
  const places = (some: readonly string[]): string => (uuids.size === 1 ? 'the GPUs' : some.join(', '));
  return [...uuids].map(([text, some]) => `Functions use ${places(some)} ${text}`).join(' ');
}

/** By `gpu.manage.mps`. `auto` tells the reasons of each device itself. */
const sharingTexts = {
  true: {
    shared: 'MPS was started in exclusive mode',
    turns: 'MPS could not be started, as the log says',
    remedy: 'Set gpu.manage.mps to false to have functions use them without MPS.',
  },
  auto: {
    shared: 'MPS was started',
    turns: 'MPS was not started',
    remedy:
      'Start gpuwhisk again once the cause is gone, or set gpu.manage.mps to true to have MPS started in exclusive mode.',
  },
  false: {
    shared: "the operator's MPS daemon is used",
    turns: 'gpu.manage.mps is off, and no MPS daemon of an operator is used',
    remedy: 'Set gpu.manage.mps to "auto" to have MPS started on idle GPUs.',
  },
} as const;

/** `GPUs: 2 x NVIDIA H100 80GB HBM3 (simulated)`. */
function describe(devices: readonly Device[]): string {
  const counts = new Map<string, number>();
  for (const { name } of devices) counts.set(name, (counts.get(name) ?? 0) + 1);
  return `GPUs: ${[...counts].map(([name, count]) => `${count} x ${name}`).join(', ')}`;
}

function standInAccess({ socket }: StandIn): GpuAccess {
  const binds = [{ path: socket, mode: 'rw' as const }];
  return { env: { GPUWHISK_SIM_SOCKET: socket }, binds, libraries: [standInFolder], oneUser: false };
}

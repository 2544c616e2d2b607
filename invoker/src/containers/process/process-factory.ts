import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readFile, realpath } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { KeyQueue } from '@gpuwhisk/common/store/key-queue';
import { systemRandom, type Random } from '@gpuwhisk/common/system/random';
import type { Container, ContainerFactory, ContainerSpec, GpuGrant, Match, StartReport } from '../container-factory.js';
import type {
  BackgroundBuild,
  RuntimeCatalog,
  RuntimeLaunch,
  GpuAccess,
  BuildStep,
  SandboxJob,
} from '../runtime-launch.js';
import type { Cgroups } from '../sandbox/cgroups.js';
import type { EgressPolicy } from '../sandbox/egress.js';
import type { Holder, LaunchOptions, SandboxProcess, Parked } from '../sandbox/launcher.js';
import { launcherPath } from '../../host/native-programs.js';
import { ToolTimeoutError } from '../../host/programs.js';
import { removeTree } from '../../host/trees.js';
import { BackgroundBuilds } from '../background-builds.js';
import { BuildCache } from '../build-cache.js';
import { IsolationError, ProvisioningError, bareSpec, matchSpecs } from '../container-factory.js';
import { processBounds } from '../framework-needs.js';
import type { ConnectedContainer } from '../protocol/connected-container.js';
import { LogCollector } from '../protocol/log-collector.js';
import { launchWanted, launchWithGpu } from '../runtime-launch.js';
import { checkpointsFolder, launchForTraining } from '../training-launch.js';
import { adoptCheckpoints, closeCheckpoints, openCheckpoints, refused } from '../sandbox/checkpoints.js';
import { detectCgroups } from '../sandbox/cgroups.js';
import { defaultEgress, nameServers } from '../sandbox/egress.js';
import {
  startHolder,
  sendSpec,
  startBare,
  LauncherPool,
  Slots,
  SpareEndedError,
  removeLeftovers,
} from '../sandbox/launcher.js';
import { prepareHostView } from '../sandbox/host-view.js';
import type { HostView } from '../sandbox/host-view.js';
import {
  canShare,
  frameWords,
  limitNotes,
  noIsolation,
  noNetwork,
  probe,
  probeIsolation,
  probeSlot,
  runtimeEnv,
  sandboxWords,
  unsandboxed,
} from '../sandbox/isolation.js';
import type { Frame, Isolation, SandboxPlan, TrialFrame } from '../sandbox/isolation.js';
import { defaultNetworkRange, maxSlots, openNetwork, Tenancy } from '../sandbox/network.js';
import type { ActionNetwork } from '../sandbox/network.js';
import { hostJobs, runSandboxJob } from '../sandbox/sandbox-job.js';
import { connectRuntime, createProcessContainer, observeState } from './process-container.js';

/** Dependencies and settings of the process factory. */
export interface ProcessFactoryOptions {
  catalog: RuntimeCatalog;
  clock: Clock;
  /** The platform's data folder; sandboxes lie in `sandboxes` below it. */
  dataDir: string;
  /** Whether sandboxes may reach the network. */
  actionNetwork: boolean;
  /** Environment of every runtime, such as `__OW_API_HOST`. */
  runtimeEnv?: Readonly<Record<string, string>>;
  /** Processes of a sandbox, threads included. Default: `processBounds`. */
  pidsLimit?: number;
  /**
   * Listens on an address of the host and resolves with the port; only sandboxes and the host itself may connect. Called
   * once, by start(), and only if sandboxes have a network.
   */
  serveSandboxes?: (address: string) => Promise<number>;
  /** Egress rules of functions; default: defaultEgress. */
  egress?: EgressPolicy;
  /** Which of nft and iptables may set the rules; default: the first of both that is installed. */
  firewallTools?: readonly string[];
  /** IPv4 range of sandboxes' addresses. */
  networkRange?: string;
  /** Path of the sandbox launcher; default: the one that native/build.mjs builds. */
  launcherPath?: string;
  /** Control groups; default: those that the host allows. */
  cgroups?: Cgroups;
  /** The access of a container to its GPU; absent: no container has a GPU. Rejects with ProvisioningError. */
  gpuAccess?: (grant: GpuGrant) => Promise<GpuAccess>;
  random?: Random;
}

/** A factory of containers that are processes of this machine. */
export interface ProcessContainerFactory extends ContainerFactory {
  /** As create, with a launch that the caller gives. */
  launchContainer(spec: ContainerSpec, launch: RuntimeLaunch, options?: LaunchOptions): Promise<Container>;
  /**
   * Starts a holder of a PID namespace that containers can share. Rejects with an Error that names the reason. After
   * start().
   */
  hold(): Promise<Holder>;
  /**
   * Address of the service that `serveSandboxes` opened, as `address:port`; undefined if sandboxes cannot reach it. After
   * start().
   */
  readonly sandboxService: string | undefined;
  /** As Firewall.denyNodes; does nothing if sandboxes have no network. After start(). */
  denyNodes(addresses: readonly string[]): Promise<void>;
}

/** Slot whose user all containers with `sharesUser` have. */
const sharedUserSlot = maxSlots - 1;
/** First host user id of sandboxes, outside systemd's ranges. Each platform has a block of ids. */
const firstOuterId = 1_879_048_192;
const idBlocks = 256;

/** A factory of containers that are processes of this machine, isolated as well as the host allows. */
export function createProcessFactory(options: ProcessFactoryOptions): ProcessContainerFactory {
  return new ProcessFactory(options);
}

class ProcessFactory implements ProcessContainerFactory {
  private readonly containers = new Map<string, ConnectedContainer>();
  // Slot 0 belongs to the probe, the last one to the service.
  private readonly slots = new Slots(1, maxSlots - 1);
  private readonly launcherPath: string;
  private readonly random: Random;
  private readonly builds: BuildCache<BuildStep>;
  private readonly backgroundBuilds: BackgroundBuilds<BuildStep & BackgroundBuild>;
  private isolation: Isolation = noIsolation;
  private network: ActionNetwork | undefined;
  private view: HostView = { words: () => [] };
  private dataDir = '';
  private tag = '';
  private firstId = 0;
  private closed = false;
  /** Result of the probe whether containers can share a PID namespace; made once. */
  private sharing: ReturnType<typeof probe> | undefined;
  private launchers: LauncherPool | undefined;
  /** Launchers of running jobs. */
  private readonly jobs = new Set<SandboxProcess>();
  /** Starts of containers for training jobs with checkpoints, by job. */
  private readonly trainingStarts = new KeyQueue();

  constructor(private readonly options: ProcessFactoryOptions) {
    const { dataDir, clock } = options;
    const start = (step: BuildStep): Promise<Container> => this.createBuilder(step);
    this.builds = new BuildCache(join(resolve(dataDir), 'builds'), clock, start);
    const compiled = join(resolve(dataDir), 'compiled');
    this.backgroundBuilds = new BackgroundBuilds<BuildStep & BackgroundBuild>(compiled, clock, start);
    this.launcherPath = options.launcherPath ?? launcherPath;
    this.random = options.random ?? systemRandom;
  }

  async start(): Promise<StartReport> {
    await mkdir(resolve(this.options.dataDir), { recursive: true });
    this.dataDir = await realpath(resolve(this.options.dataDir));
    const hash = createHash('sha256').update(this.dataDir).digest('hex').slice(0, 12);
    this.tag = `gpuwhisk-${hash}`;
    const block = Number.parseInt(hash.slice(0, 8), 16) % idBlocks;
    this.firstId = process.getuid?.() === 0 ? firstOuterId + block * maxSlots : 0;
    const { clock } = this.options;
    const cgroups = this.options.cgroups ?? (await detectCgroups(this.tag, clock));
    await removeLeftovers({ tag: this.tag, cgroups, sandboxesFolder: this.sandboxFolder(), clock });
    await closeCheckpoints(checkpointsFolder(this.dataDir));
    // Without a private root, functions' users need access to their own folder below this one.
    await mkdir(this.sandboxFolder(), { recursive: true, mode: 0o711 });
    for (const name of ['.root', '.probe']) await mkdir(this.sandboxFolder(name), { mode: 0o700 });
    this.options.catalog.useSandboxes?.((job) => this.runJob(job));
    if (process.platform !== 'linux') {
      this.launchers = this.openLaunchers();
      return {
        weaknesses: [`Functions run without isolation: there is no sandbox for ${process.platform}.`],
        notes: [],
      };
    }
    this.view = await prepareHostView(this.sandboxFolder('.etc'));
    const lacks: string[] = [];
    this.network = await this.openNetwork(hash, lacks);
    const wanted = { cgroups, network: this.network };
    const probed = await probeIsolation(this.launcherPath, this.tag, wanted, this.probeFrame());
    this.isolation = probed.isolation;
    this.launchers = this.openLaunchers();
    this.launchers.refill();
    return {
      weaknesses: [...probed.weaknesses, ...limitNotes(this.isolation, this.firstId > 0)],
      notes: [...lacks, ...probed.notes],
    };
  }

  readonly installsNpm = true;

  get sandboxService(): string | undefined {
    return this.isolation.network?.service;
  }

  async denyNodes(addresses: readonly string[]): Promise<void> {
    await this.network?.denyNodes(addresses);
  }

  supports(kind: string): boolean {
    return this.options.catalog.supports(kind);
  }

  async create(spec: ContainerSpec, ahead = false): Promise<Container> {
    this.openedLaunchers();
    const launch = await this.options.catalog.launch(...launchWanted(spec));
    return this.launchContainer(spec, launch, { ahead });
  }

  async launchContainer(spec: ContainerSpec, launch: RuntimeLaunch, options: LaunchOptions = {}): Promise<Container> {
    const { job, checkpointMiB } = spec.training ?? {};
    if (job === undefined || checkpointMiB === undefined) return this.launchAny(spec, launch, options);
    return this.trainingStarts.run(job, () => this.launchAny(spec, launch, options));
  }

  private async launchAny(spec: ContainerSpec, launch: RuntimeLaunch, options: LaunchOptions): Promise<Container> {
    const launchers = this.openedLaunchers();
    if (launch.protocol === 'http' && !this.isolation.network) {
      throw new ProvisioningError(
        `The kind '${spec.kind}' speaks HTTP, which needs a network between host and sandbox, which this host does not allow.`,
      );
    }
    const completed = await this.withTraining(spec, await this.withGpu(spec, launch));
    // A spare's sandbox has processes and a user of its own.
    const plain = options.shared !== undefined || completed.sharesUser === true;
    const container = await this.launchIn(launchers, { plain }, spec, completed, options);
    launchers.refill();
    return container;
  }

  /** Launches with a spare, and with a new launcher if the spare ended as it was taken. */
  private async launchIn(
    launchers: LauncherPool,
    wanted: { plain?: boolean },
    spec: ContainerSpec,
    launch: RuntimeLaunch,
    options?: LaunchOptions,
  ): Promise<Container> {
    try {
      return await this.launch(launchers.take(wanted), spec, launch, options);
    } catch (error) {
      if (!(error instanceof SpareEndedError)) throw error;
      return this.launch(launchers.take({ ...wanted, isNew: true }), spec, launch, options);
    }
  }

  private async withTraining({ training }: ContainerSpec, launch: RuntimeLaunch): Promise<RuntimeLaunch> {
    if (training === undefined) return launch;
    if (training.checkpointMiB === undefined) return launchForTraining(launch, training, undefined);
    if (this.firstId === 0) throw refused('without root their size cannot be bounded');
    if (!this.isolation.namespaces.has('mount')) throw refused('functions have no private root on this host');
    const folder = join(checkpointsFolder(this.dataDir), training.job);
    await adoptCheckpoints(folder, training.attempt);
    // An earlier run that was thought lost may go on here.
    const earlier = [...this.containers.values()].filter((one) => one.spec.training?.job === training.job);
    await Promise.all(earlier.map((container) => container.destroy()));
    const user = this.outerId(sharedUserSlot);
    return launchForTraining(launch, training, await openCheckpoints(folder, training.checkpointMiB, user));
  }

  private async withGpu({ gpu }: ContainerSpec, launch: RuntimeLaunch): Promise<RuntimeLaunch> {
    if (gpu === undefined) return launch;
    if (!this.options.gpuAccess) throw new ProvisioningError('There is no GPU here.');
    return launchWithGpu(launch, await this.options.gpuAccess(gpu));
  }

  async hold(): Promise<Holder> {
    if (!canShare(this.isolation)) throw new Error('containers are not isolated well enough, or this is not root');
    const holder = await startHolder(this.launcherPath, this.tag, this.outerId(probeSlot));
    this.sharing ??= this.probeSharing(holder);
    const failure = await this.sharing.catch((error: unknown) => error as Error);
    if (failure === undefined) return holder;
    await holder.end();
    throw failure instanceof Error ? failure : new Error(failure.reason);
  }

  private probeSharing({ pidNamespace }: Holder): ReturnType<typeof probe> {
    // Probed without a network link: the link of the previous trial may still exist.
    const isolation = { ...this.isolation, network: undefined };
    return probe(this.launcherPath, this.tag, isolation, { ...this.probeFrame(), pidNamespace });
  }

  private openedLaunchers(): LauncherPool {
    if (!this.launchers || this.closed) throw new ProvisioningError('The container factory is not open.');
    return this.launchers;
  }

  private createBuilder({ launch, memoryMiB }: BuildStep): Promise<Container> {
    return this.launchIn(this.openedLaunchers(), {}, bareSpec('build', memoryMiB), launch);
  }

  /** Runs a job in a sandbox, or as the platform's user on a host without sandboxes. Resolves with what it printed. */
  private async runJob(job: SandboxJob): Promise<string> {
    const launchers = this.openedLaunchers();
    const { isolation, dataDir } = this;
    if (!isolation.namespaces.has('mount')) return hostJobs(this.options.clock)(job);
    const { id, slot, process: launcher } = launchers.take({ plain: true });
    if (launcher === undefined) throw new ProvisioningError('No sandbox could be started.');
    this.jobs.add(launcher);
    try {
      return await runSandboxJob(
        launcher,
        isolation,
        job,
        { id, frame: this.frame(slot), dataDir },
        this.options.clock,
      );
    } finally {
      this.jobs.delete(launcher);
      await isolation.cgroups.remove(id);
      this.slots.release(slot);
    }
  }

  prewarm(spec: ContainerSpec): Promise<Container> {
    return this.create(spec, true);
  }

  match(prewarmed: ContainerSpec, wanted: ContainerSpec): Match {
    return matchSpecs(prewarmed, wanted, this.isolation.cgroups.limitsMemory);
  }

  async close(): Promise<void> {
    this.closed = true;
    this.backgroundBuilds.close();
    const containers = [...this.containers.values()].map((container) => container.destroy());
    for (const job of this.jobs) job.child.kill('SIGTERM');
    await Promise.all([...this.jobs].map(({ closed }) => closed));
    await Promise.all([this.launchers?.close(), ...containers]);
    await closeCheckpoints(checkpointsFolder(this.dataDir));
    await this.isolation.cgroups.close();
    await this.network?.close();
    this.network = undefined;
  }

  private async openNetwork(hash: string, lacks: string[]): Promise<ActionNetwork | undefined> {
    const { actionNetwork, networkRange, serveSandboxes } = this.options;
    // Without a launcher, which the probe reports, there are no sandboxes to connect.
    if (!actionNetwork || !existsSync(this.launcherPath)) return undefined;
    const range = networkRange ?? defaultNetworkRange;
    try {
      const resolvers = nameServers(await readFile(this.sandboxFolder('.etc/resolv.conf'), 'utf8'));
      return await openNetwork({
        hash,
        range,
        launcherPath: this.launcherPath,
        serve: serveSandboxes,
        egress: this.options.egress ?? defaultEgress,
        nameServers: resolvers,
        firewallTools: this.options.firewallTools,
      });
    } catch (error) {
      if (error instanceof ToolTimeoutError) {
        throw new IsolationError(`The network of functions cannot be opened: ${error.message}. Start again.`);
      }
      const reason = (error as Error).message.replace(/^error\nnet\n/, '').split('\n')[0];
      lacks.push(`${noNetwork}: ${reason}.`);
      return undefined;
    }
  }

  private frame(slot: number): Frame {
    return { rootFolder: this.sandboxFolder('.root'), outerId: this.outerId(slot), slot, view: this.view };
  }

  private probeFrame(): TrialFrame {
    return { ...this.frame(probeSlot), probeFolder: this.sandboxFolder('.probe') };
  }

  private sandboxFolder(name = ''): string {
    return join(this.dataDir, 'sandboxes', name);
  }

  private outerId(slot: number): number {
    return this.firstId > 0 ? this.firstId + slot : (process.getuid?.() ?? 0);
  }

  private openLaunchers(): LauncherPool {
    const { isolation, tag, random } = this;
    // Only sandboxes that are made for a job have its checkpoints; one that waits would keep them mounted.
    const forget = ['forget', checkpointsFolder(this.dataDir)];
    return new LauncherPool({
      launcherPath: isolation.launcher ? this.launcherPath : undefined,
      tag,
      cgroups: isolation.cgroups,
      slots: this.slots,
      clock: this.options.clock,
      random,
      frame: isolation.namespaces.has('mount')
        ? (slot) => [...forget, ...frameWords(isolation, this.frame(slot))]
        : undefined,
    });
  }

  private plan(
    parked: Parked,
    spec: ContainerSpec,
    launch: RuntimeLaunch,
    { shared, ahead = false }: LaunchOptions,
  ): SandboxPlan {
    const outerId = this.outerId(launch.sharesUser ? sharedUserSlot : parked.slot);
    const frame = { ...this.frame(parked.slot), outerId, pidNamespace: shared?.pidNamespace };
    return {
      id: parked.id,
      spec,
      launch,
      frame: parked.framed ? undefined : frame,
      outerId,
      actionFolder: this.sandboxFolder(parked.id),
      dataDir: this.dataDir,
      pids: this.options.pidsLimit ?? processBounds(spec).pids,
      givesWay: ahead || spec.training !== undefined,
      env: this.options.runtimeEnv ?? {},
    };
  }

  private async launch(
    parked: Parked,
    spec: ContainerSpec,
    launch: RuntimeLaunch,
    options: LaunchOptions = {},
  ): Promise<Container> {
    const { id, slot } = parked;
    const { clock } = this.options;
    const folder = this.sandboxFolder(id);
    const started = parked.process ?? (await this.startBare(folder, spec, launch));
    started.child.ref();
    if (!launch.servesRuns) started.runs?.destroy();
    const logs = new LogCollector(clock, { sentinels: launch.protocol === 'http' });
    logs.attach(started.stdout, 'stdout');
    logs.attach(started.stderr, 'stderr');
    const tenancy = new Tenancy(
      async (namespace) => this.isolation.network?.bind(slot, namespace),
      (namespace) => namespace in (this.options.egress?.namespaces ?? {}),
    );
    const container = createProcessContainer({
      id,
      spec,
      proxied: launch.traces === true,
      sharedModules: launch.sharedModules,
      msContainer: options.shared?.id,
      process: started,
      hasLauncher: parked.process !== undefined,
      cgroups: this.isolation.cgroups,
      clock,
      load: (request, limits, init) =>
        tenancy.admit(limits.forNamespace, () => {
          if (launch.build) return this.builds.init(launch.build, request, limits, init);
          if (launch.quicken) return this.backgroundBuilds.init(launch.quicken, request, limits, init);
          return init(request);
        }),
      release: async () => {
        this.containers.delete(id);
        await Promise.all([this.isolation.cgroups.remove(id), removeTree(folder), tenancy.end()]);
        this.slots.release(slot);
      },
    });
    this.containers.set(id, container);
    const outcome = connectRuntime({
      container,
      started,
      logs,
      clock,
      protocol: launch.protocol,
      host: this.isolation.network?.veth(slot).inside ?? '',
      hasLauncher: parked.process !== undefined,
    });
    if (parked.process) {
      const { forNamespace } = options;
      if (forNamespace !== undefined) await tenancy.enter(forNamespace).catch(() => container.destroy());
      sendSpec(started, sandboxWords(this.isolation, this.plan(parked, spec, launch, options)));
    }
    const failure = await outcome;
    if (failure === undefined) {
      if (parked.process !== undefined) await observeState(container, clock);
      return container;
    }
    await container.destroy();
    const printed = logs.cut().slice(-20).join('\n');
    const Failure = parked.isSpare && failure.beforeStart ? SpareEndedError : ProvisioningError;
    throw new Failure(`A container for '${spec.kind}' did not start: ${failure.reason}.${printed && `\n${printed}`}`);
  }

  private async startBare(folder: string, spec: ContainerSpec, launch: RuntimeLaunch): Promise<SandboxProcess> {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const seen = unsandboxed(launch);
    const env = runtimeEnv(spec, seen, folder, this.options.runtimeEnv ?? {});
    return startBare(seen.command, folder, env, seen.servesRuns);
  }
}

import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, realpath } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Clock } from '@gpuwhisk/common/system/clock';
import type { Random } from '@gpuwhisk/common/system/random';
import { systemRandom } from '@gpuwhisk/common/system/random';
import type { BuildStep, RuntimeCatalog, RuntimeLaunch } from '../../runtimes/runtime-catalog.js';
import type { Container, ContainerFactory, ContainerSpec, Match } from '../container-factory.js';
import { ProvisioningError, bareSpec } from '../container-factory.js';
import { matchSpecs } from '../match-specs.js';
import { BuildCache } from './build-cache.js';
import { detectCgroups } from './cgroups.js';
import { connectRuntime } from './connect-runtime.js';
import { prepareHostView } from './host-view.js';
import type { HostView } from './host-view.js';
import { limitNotes, noIsolation, probeIsolation } from './isolation.js';
import type { Isolation } from './isolation.js';
import { sendSpec, startBare } from './launcher.js';
import type { SandboxProcess } from './launcher.js';
import { LauncherPool } from './launcher-pool.js';
import type { Parked } from './launcher-pool.js';
import { removeFolder, removeLeftovers } from './leftovers.js';
import { LogCollector } from './log-collector.js';
import { defaultNetworkRange, maxSlots, openNetwork } from './network.js';
import type { ActionNetwork } from './network.js';
import { ProcessContainer } from './process-container.js';
import { runtimeEnv, sandboxWords } from './sandbox-spec.js';
import type { SandboxPlan } from './sandbox-spec.js';
import { Slots } from './slots.js';
import { unsandboxed } from './unsandboxed.js';

const MiB = 1024 * 1024;
const defaultPidsLimit = 1024;
/** Host user ids of sandboxes, which systemd's ranges leave free. Each platform has a block of them. */
const firstOuterId = 1_879_048_192;
const idBlocks = 256;
const launcherPath = fileURLToPath(new URL('../../../../native/build/sandbox', import.meta.url));

/** What the process factory is made with. */
export interface ProcessFactoryOptions {
  catalog: RuntimeCatalog;
  clock: Clock;
  /** The platform's data folder; sandboxes lie in `sandboxes` below it. */
  dataDir: string;
  /** Whether sandboxes may reach the network. */
  actionNetwork: boolean;
  /** Environment of every runtime, such as `__OW_API_HOST`. */
  runtimeEnv?: Readonly<Record<string, string>>;
  /** Processes of a sandbox, threads included. Default 1024, as OpenWhisk's `--pids-limit`. */
  pidsLimit?: number;
  /**
   * Listens on an address of the host that only sandboxes and the host itself are let through to, and resolves with
   * the port. Called once, by start(), and only where sandboxes have a network.
   */
  serveSandboxes?: (address: string) => Promise<number>;
  /** IPv4 range that sandboxes' addresses are taken from. */
  networkRange?: string;
  /** Path of the sandbox launcher; default: the one that native/build.mjs builds. */
  launcherPath?: string;
  random?: Random;
}

/** A factory of containers that are processes of this machine. */
export interface ProcessContainerFactory extends ContainerFactory {
  /** Where sandboxes reach what `serveSandboxes` serves, as `address:port`; undefined if they cannot. After start(). */
  readonly sandboxService: string | undefined;
}

/** Makes containers of processes of this machine, isolated as well as the host allows. */
export function createProcessFactory(options: ProcessFactoryOptions): ProcessContainerFactory {
  return new ProcessFactory(options);
}

class ProcessFactory implements ProcessContainerFactory {
  private readonly containers = new Map<string, ProcessContainer>();
  // Slot 0 is the probe's, the last one the service's.
  private readonly slots = new Slots(1, maxSlots - 1);
  private readonly launcherPath: string;
  private readonly random: Random;
  private readonly builds: BuildCache;
  private isolation: Isolation = noIsolation;
  private network: ActionNetwork | undefined;
  private view: HostView = { words: () => [] };
  private dataDir = '';
  private tag = '';
  private firstId = 0;
  private closed = false;
  private launchers: LauncherPool | undefined;

  constructor(private readonly options: ProcessFactoryOptions) {
    const { dataDir, clock } = options;
    this.builds = new BuildCache(join(resolve(dataDir), 'builds'), clock, (step) => this.createBuilder(step));
    this.launcherPath = options.launcherPath ?? launcherPath;
    this.random = options.random ?? systemRandom;
  }

  async start(): Promise<string[]> {
    await mkdir(resolve(this.options.dataDir), { recursive: true });
    this.dataDir = await realpath(resolve(this.options.dataDir));
    const hash = createHash('sha256').update(this.dataDir).digest('hex').slice(0, 12);
    this.tag = `gpuwhisk-${hash}`;
    const block = Number.parseInt(hash.slice(0, 8), 16) % idBlocks;
    this.firstId = process.getuid?.() === 0 ? firstOuterId + block * maxSlots : 0;
    const { clock } = this.options;
    const cgroups = await detectCgroups(this.tag, clock);
    await removeLeftovers({ tag: this.tag, cgroups, sandboxesFolder: this.sandboxFolder(), clock });
    // Where there is no private root the functions' users must get through to their own folder.
    await mkdir(this.sandboxFolder(), { recursive: true, mode: 0o711 });
    for (const name of ['.root', '.probe']) await mkdir(this.sandboxFolder(name), { mode: 0o700 });
    const notes: string[] = [];
    if (process.platform !== 'linux') {
      this.launchers = this.openLaunchers();
      return [`Functions run without isolation: there is no sandbox for ${process.platform}.`];
    }
    this.view = await prepareHostView(this.sandboxFolder('.etc'));
    this.network = await this.openNetwork(hash, notes);
    const frame = {
      rootFolder: this.sandboxFolder('.root'),
      actionFolder: this.sandboxFolder('.probe'),
      outerId: this.outerId(0),
      tmpBytes: MiB,
      view: this.view,
    };
    const probed = await probeIsolation(this.launcherPath, this.tag, { cgroups, network: this.network }, frame);
    this.isolation = probed.isolation;
    notes.push(...probed.notes);
    notes.push(...limitNotes(this.isolation, this.firstId > 0));
    this.launchers = this.openLaunchers();
    this.launchers.refill();
    return notes;
  }

  get sandboxService(): string | undefined {
    return this.isolation.network?.service;
  }

  supports(kind: string): boolean {
    return this.options.catalog.supports(kind);
  }

  async create(spec: ContainerSpec): Promise<Container> {
    const { launchers } = this;
    if (!launchers || this.closed) throw new ProvisioningError('The container factory is not open.');
    const launch = await this.options.catalog.launch(spec.kind, spec.requirements, spec.memoryMiB);
    if (this.closed) throw new ProvisioningError('The container factory was closed.');
    if (launch.protocol === 'http' && !this.isolation.network) {
      throw new ProvisioningError(
        `The kind '${spec.kind}' speaks HTTP, which needs a network between host and sandbox, which this host does not allow.`,
      );
    }
    const container = await this.launch(launchers.take(), spec, launch);
    launchers.refill();
    return container;
  }

  private createBuilder({ launch, memoryMiB }: BuildStep): Promise<Container> {
    if (!this.launchers || this.closed) throw new ProvisioningError('The container factory is not open.');
    return this.launch(this.launchers.take(), bareSpec('build', memoryMiB), launch);
  }

  prewarm(spec: ContainerSpec): Promise<Container> {
    return this.create(spec);
  }

  match(prewarmed: ContainerSpec, wanted: ContainerSpec): Match {
    return matchSpecs(prewarmed, wanted);
  }

  async close(): Promise<void> {
    this.closed = true;
    const containers = [...this.containers.values()].map((container) => container.destroy());
    await Promise.all([this.launchers?.close(), ...containers]);
    await this.isolation.cgroups.close();
    await this.network?.close();
    this.network = undefined;
  }

  private async openNetwork(hash: string, notes: string[]): Promise<ActionNetwork | undefined> {
    const { actionNetwork, networkRange, serveSandboxes } = this.options;
    // Without the launcher, which the probe reports, there are no sandboxes to connect.
    if (!actionNetwork || !existsSync(this.launcherPath)) return undefined;
    const range = networkRange ?? defaultNetworkRange;
    try {
      return await openNetwork({ hash, range, launcherPath: this.launcherPath, serve: serveSandboxes });
    } catch (error) {
      const reason = (error as Error).message.replace(/^error\nnet\n/, '').split('\n')[0];
      notes.push(`Functions reach neither the network nor the platform's API: ${reason}.`);
      return undefined;
    }
  }

  private sandboxFolder(name = ''): string {
    return join(this.dataDir, 'sandboxes', name);
  }

  private outerId(slot: number): number {
    return this.firstId > 0 ? this.firstId + slot : (process.getuid?.() ?? 0);
  }

  private openLaunchers(): LauncherPool {
    const { isolation, tag, random } = this;
    return new LauncherPool({
      launcherPath: isolation.launcher ? this.launcherPath : undefined,
      tag,
      cgroups: isolation.cgroups,
      slots: this.slots,
      clock: this.options.clock,
      random,
    });
  }

  private plan(parked: Parked, spec: ContainerSpec, launch: RuntimeLaunch, folder: string): SandboxPlan {
    return {
      id: parked.id,
      spec,
      launch,
      frame: {
        rootFolder: this.sandboxFolder('.root'),
        actionFolder: folder,
        outerId: this.outerId(parked.slot),
        slot: parked.slot,
        view: this.view,
      },
      dataDir: this.dataDir,
      pids: this.options.pidsLimit ?? defaultPidsLimit,
      env: this.options.runtimeEnv ?? {},
    };
  }

  private async launch(parked: Parked, spec: ContainerSpec, launch: RuntimeLaunch): Promise<Container> {
    const { id, slot } = parked;
    const { clock } = this.options;
    const folder = this.sandboxFolder(id);
    const started = parked.process ?? (await this.startBare(folder, spec, launch));
    started.child.ref();
    const logs = new LogCollector(clock, { sentinels: launch.protocol === 'http' });
    logs.attach(started.stdout, 'stdout');
    logs.attach(started.stderr, 'stderr');
    const container = new ProcessContainer({
      id,
      spec,
      process: started,
      hasLauncher: parked.process !== undefined,
      cgroups: this.isolation.cgroups,
      clock,
      load: (request, limits, init) =>
        launch.build ? this.builds.init(launch.build, request, limits, init) : init(request),
      release: async () => {
        this.containers.delete(id);
        await Promise.all([this.isolation.cgroups.remove(id), removeFolder(folder)]);
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
    if (parked.process) sendSpec(started, sandboxWords(this.isolation, this.plan(parked, spec, launch, folder)));
    const failure = await outcome;
    if (failure === undefined) return container;
    await container.destroy();
    const printed = logs.cut().slice(-20).join('\n');
    throw new ProvisioningError(
      `A container for '${spec.kind}' did not start: ${failure}.${printed && `\n${printed}`}`,
    );
  }

  private async startBare(folder: string, spec: ContainerSpec, launch: RuntimeLaunch): Promise<SandboxProcess> {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const seen = unsandboxed(launch);
    return startBare(seen.command, folder, runtimeEnv(spec, seen, folder, this.options.runtimeEnv ?? {}));
  }
}

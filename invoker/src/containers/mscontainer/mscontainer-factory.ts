import { systemRandom } from '@gpuwhisk/common/system/random';
import type { Random } from '@gpuwhisk/common/system/random';
import { ProvisioningError } from '../container-factory.js';
import type { Container, ContainerFactory, ContainerSpec, SnapshotWanted } from '../container-factory.js';
import type { ProcessContainerFactory } from '../process/process-factory.js';
import { launchWanted } from '../runtime-launch.js';
import type { RuntimeCatalog, RuntimeLaunch } from '../runtime-launch.js';
import type { Holder, SharedNamespace } from '../sandbox/launcher.js';
import type { FunctionSnapshots } from './function-snapshots.js';
import type { PairTemplates } from './pair-templates.js';

/** Dependencies of the mscontainer factory. */
interface MsContainerFactoryOptions {
  /** The factory that makes every container; started and closed with this factory. */
  processes: ProcessContainerFactory;
  catalog: RuntimeCatalog;
  /** Templates that pairs are copied from; absent: all pairs import their modules. Started and closed with this factory. */
  templates?: PairTemplates;
  /** Makes snapshots of loaded functions; absent: there are none. Started and closed with this factory. */
  snapshots?: FunctionSnapshots;
  logger?: { info(message: string): void; warn(message: string): void };
  random?: Random;
}

/**
 * A factory whose prewarmed containers are pairs that functions are injected into. Several pairs share the PID namespace of
 * an MSContainer if the host allows this, else each has its own. A container that an activation waits for is a plain
 * process, which starts fastest, unless functions of its kind run in pairs only, or its set of modules has a template, or gets
 * one and is declared.
 */
export function createMsContainerFactory(options: MsContainerFactoryOptions): ContainerFactory {
  const { processes, catalog, templates, snapshots, logger, random = systemRandom } = options;
  const msContainers = new MsContainers(() => processes.hold(), random);
  let sharing = false;

  const launchOf = (spec: ContainerSpec): Promise<RuntimeLaunch> => catalog.launch(...launchWanted(spec));

  const startPair = (spec: ContainerSpec, launch: RuntimeLaunch, ahead: boolean): Promise<Container> =>
    sharing && spec.gpu === undefined // Containers with a GPU may all run as one user and could signal each other.
      ? msContainers.add((shared) => processes.launchContainer(spec, launch, { shared, ahead }))
      : processes.launchContainer(spec, launch, { ahead });

  /** A pair that is a copy of its set's template, or that makes the template; undefined if it would be neither. */
  const startWithTemplate = async (spec: ContainerSpec, launch: RuntimeLaunch, ahead: boolean) =>
    (await templates?.copy(spec, launch, ahead)) ?? templates?.make(spec, launch, ahead);

  return {
    async start() {
      const report = await processes.start();
      await templates?.start(report.weaknesses);
      await snapshots?.start(report.weaknesses);
      try {
        await msContainers.start();
        sharing = true;
      } catch (error) {
        logger?.info(`Each container has a PID namespace of its own. ${(error as Error).message}`);
      }
      return report;
    },
    supports: (kind) => processes.supports(kind),
    installsNpm: true,
    async create(spec, ahead = false) {
      const launch = await launchOf(spec);
      if (launch.traces) return startPair(spec, launch, ahead);
      const pair = launch.pair && (await startWithTemplate(spec, launch.pair, ahead));
      return pair ?? processes.launchContainer(spec, launch, { ahead });
    },
    async copy(spec, ahead = false) {
      if (templates?.anyStands() !== true) return undefined;
      const { pair } = await launchOf(spec);
      return pair && templates.stands(spec, pair) ? templates.copy(spec, pair, ahead) : undefined;
    },
    async prewarm(spec) {
      const launch = await launchOf(spec);
      if (launch.traces) return startPair(spec, launch, true);
      // A pair runs one function at a time.
      if (spec.concurrency > 1 || !launch.pair) return processes.launchContainer(spec, launch, { ahead: true });
      try {
        return (await startWithTemplate(spec, launch.pair, true)) ?? (await startPair(spec, launch.pair, true));
      } catch (error) {
        // A plain process would import learned modules no sooner than their function does.
        if (!(error instanceof ProvisioningError) || spec.learned !== undefined) throw error;
        logger?.warn(`A plain process is made ready instead of a pair. ${error.message}`);
        return processes.launchContainer(spec, launch, { ahead: true });
      }
    },
    match: (prewarmed, wanted) => processes.match(prewarmed, wanted),
    ...(snapshots && {
      async snapshot(wanted: SnapshotWanted) {
        const { pair } = await launchOf(wanted.spec);
        if (!pair?.traces || !wanted.spec.kind.startsWith('python:')) throw new Error('Its kind has no snapshots.');
        return snapshots.make(wanted, pair);
      },
    }),
    async close() {
      await processes.close();
      await Promise.all([msContainers.close(), templates?.close(), snapshots?.close()]);
    },
  };
}

/** Pairs of one MSContainer, at most. */
export const maxPairs = 16;

/** Several pairs in one PID namespace, which a holder process keeps. */
class MsContainer {
  readonly shared: SharedNamespace;
  private readonly pairs = new Map<string, Container>();
  /** Places reserved for pairs that are being made. */
  private reserved = 0;
  private isAlive = true;

  constructor(
    id: string,
    private readonly holder: Holder,
  ) {
    this.shared = { id, pidNamespace: holder.pidNamespace };
    void holder.exited.then(() => (this.isAlive = false));
  }

  /** Whether the holder lives: the namespace has no processes without its holder, and none can be started. */
  get alive(): boolean {
    return this.isAlive;
  }

  /** Resolves when the holder has ended; the pairs end with it. */
  get exited(): Promise<void> {
    return this.holder.exited;
  }

  /** Reserves a place for a pair, which `add` fills; false if all places are taken. */
  reserve(): boolean {
    if (!this.isAlive || this.pairs.size + this.reserved >= maxPairs) return false;
    this.reserved++;
    return true;
  }

  get isEmpty(): boolean {
    return this.pairs.size + this.reserved === 0;
  }

  /** Makes a pair in a reserved place by `make`; calls `left` once the pair has ended or could not be made. */
  async add(make: (shared: SharedNamespace) => Promise<Container>, left: () => void): Promise<Container> {
    let pair: Container;
    try {
      pair = await make(this.shared);
    } catch (error) {
      this.reserved--;
      left();
      throw error;
    }
    this.reserved--;
    this.pairs.set(pair.id, pair);
    void pair.exited.then(() => {
      this.pairs.delete(pair.id);
      left();
    });
    return pair;
  }

  /** Ends the holder, and with it all processes in the namespace. */
  end(): Promise<void> {
    this.isAlive = false;
    return this.holder.end();
  }
}

/** The MSContainers of one platform: as many as its pairs need, and at most one empty one. */
export class MsContainers {
  private readonly all = new Set<MsContainer>();
  private opening: Promise<MsContainer> | undefined;
  private readonly endings = new Set<Promise<void>>();
  private closed = false;

  constructor(
    private readonly hold: () => Promise<Holder>,
    private readonly random: Random,
  ) {}

  /** Opens the first MSContainer. Rejects with an Error that says why MSContainers are not possible. */
  async start(): Promise<void> {
    await this.open();
  }

  /** Makes a pair by `make` in an MSContainer with a free place; retries once if that MSContainer ended meanwhile. */
  async add(make: (shared: SharedNamespace) => Promise<Container>): Promise<Container> {
    const first = await this.reserve();
    try {
      return await first.add(make, () => this.trim());
    } catch (error) {
      if (first.alive || this.closed) throw error;
    }
    const second = await this.reserve();
    return second.add(make, () => this.trim());
  }

  /** Ends all MSContainers with their pairs. */
  async close(): Promise<void> {
    this.closed = true;
    await this.opening?.catch(() => undefined);
    await Promise.all([...this.endings, ...[...this.all].map((one) => one.end())]);
  }

  /** An MSContainer with a place reserved. */
  private async reserve(): Promise<MsContainer> {
    for (;;) {
      if (this.closed) throw new ProvisioningError('The container factory was closed.');
      for (const one of this.all) if (one.reserve()) return one;
      this.opening ??= this.open().finally(() => (this.opening = undefined));
      await this.opening;
    }
  }

  private async open(): Promise<MsContainer> {
    const id = this.random.hex(4);
    let holder: Holder;
    try {
      holder = await this.hold();
    } catch (error) {
      throw new ProvisioningError(`No MSContainer could be started: ${(error as Error).message}.`);
    }
    const made = new MsContainer(id, holder);
    this.all.add(made);
    void made.exited.then(() => this.all.delete(made));
    return made;
  }

  /** Ends all empty MSContainers but one. */
  private trim(): void {
    if (this.closed) return;
    const empty = [...this.all].filter((one) => one.alive && one.isEmpty);
    for (const one of empty.slice(1)) {
      this.all.delete(one);
      const ending = one.end().finally(() => this.endings.delete(ending));
      this.endings.add(ending);
    }
  }
}

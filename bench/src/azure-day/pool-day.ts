// A day of the pool: its own code, with what is learned of imports, on simulated containers in virtual time.
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createLogger } from '@gpuwhisk/common/logging';
import type { ActivationMessage } from '@gpuwhisk/common/messages';
import { createMetrics } from '@gpuwhisk/common/metrics';
import type { RunnableAction } from '@gpuwhisk/invoker/activation/action-loader';
import { containerWanted, runRequest } from '@gpuwhisk/invoker/activation/container-requests';
import { LearnedImports } from '@gpuwhisk/invoker/activation/learned-imports';
import { LearnedStarts } from '@gpuwhisk/invoker/activation/learned-starts';
import { bareSpec } from '@gpuwhisk/invoker/containers/container-factory';
import type { PoolJob } from '@gpuwhisk/invoker/pool/action-queue';
import { ContainerPool } from '@gpuwhisk/invoker/pool/container-pool';
import type { PoolOptions } from '@gpuwhisk/invoker/pool/container-pool';
import { SimulatedClock } from '@gpuwhisk/test/simulation/simulated-clock';
import { dayMs } from './arrivals.js';
import type { DayFunction } from './arrivals.js';
import type { SetCosts } from './costs.js';
import { DayContainers, kinds, moduleOf } from './day-containers.js';
import type { Folders } from './day-containers.js';
import type { DayUse } from './keep-alive.js';

/** The machine, and what it has to do. */
export interface PoolDay {
  functions: readonly DayFunction[];
  costs: readonly SetCosts[];
  /** Time of a rollback, ms. */
  rollbackMs: number;
  /** Memory of the pool, MiB. */
  memoryMiB: number;
  /** Namespaces to which the functions belong in turn. */
  namespaces: number;
  /** A folder for the modules' files. */
  folder: string;
  /** Settings other than the platform's defaults. */
  settings?: Partial<PoolOptions>;
  /** Whether imports are learned. */
  learns: boolean;
  /** Length of the day, ms; default: 24 hours. */
  lastsMs?: number;
}

/** What the pool's day took. */
export interface PoolUse extends DayUse {
  /** Loads into a container that had the modules, and into one that had not; and calls of loaded functions. */
  met: number;
  unmet: number;
  warm: number;
}

const logger = createLogger({ level: 'silent' });
const limits = { timeoutMs: dayMs, logLimitBytes: 0, maxResultBytes: 1024, truncationBytes: 1024 };
/** Of the platform's configuration (common/src/config-schema.ts) and manifest (runtimes/runtimes.json). */
const defaults = {
  maxStarting: 8,
  pauseGraceMs: 10_000,
  idleContainerMs: 600_000,
  reusesLearned: true,
  stemCellsOnDemand: true,
  stemCells: [
    { spec: bareSpec(kinds.nodejs, 256), initialCount: 2 },
    { spec: bareSpec(kinds.python, 256), initialCount: 1 },
  ],
};
const learnedPart = 8;

/** Runs the day. Rejects if a call got no container. */
export async function runPoolDay(day: PoolDay): Promise<PoolUse> {
  const clock = new SimulatedClock();
  const file = { read: () => Promise.resolve([]), write: () => Promise.resolve() };
  const imports = await LearnedImports.open({ file, clock, logger });
  return new PoolDayRun(day, clock, imports, await writeModules(day)).play();
}

/** Files by which the names that functions report are checked. */
async function writeModules({ folder, costs }: PoolDay): Promise<Folders> {
  const folders = { python: join(folder, 'python'), nodejs: join(folder, 'node_modules') };
  await mkdir(folders.python, { recursive: true });
  for (const [set, { language }] of costs.entries()) {
    const module = join(folders[language], moduleOf(set));
    if (language === 'python') await writeFile(`${module}.py`, '');
    else {
      await mkdir(module, { recursive: true });
      await writeFile(join(module, 'package.json'), '{}');
    }
  }
  return folders;
}

/** A call of a function, as a job of the pool. */
type DayJob = PoolJob<object>;

class PoolDayRun {
  private readonly containers: DayContainers;
  private readonly pool: ContainerPool<DayJob>;
  private readonly learned: LearnedStarts;
  /** Checks of names by files, which take no virtual time. */
  private readonly learning = new Set<Promise<void>>();
  private readonly use = { waitedMs: 0, met: 0, unmet: 0, warm: 0 };
  private underWay = 0;
  private failure: Error | undefined;

  constructor(
    private readonly day: PoolDay,
    private readonly clock: SimulatedClock,
    imports: LearnedImports,
    folders: Folders,
  ) {
    const { costs, rollbackMs, memoryMiB } = day;
    this.containers = new DayContainers({ clock, costs, rollbackMs, folders });
    const options = { ...defaults, memoryMiB, learnedMiB: memoryMiB / learnedPart, ...day.settings };
    this.pool = new ContainerPool(this.containers.factory, clock, options, logger);
    this.learned = new LearnedStarts(imports, createMetrics().registry, (spec) => this.pool.foresee(spec));
    const learn = imports.learn.bind(imports);
    imports.learn = (...given) => {
      const work = learn(...given).finally(() => this.learning.delete(work));
      this.learning.add(work);
      return work;
    };
  }

  async play(): Promise<PoolUse> {
    const { functions, namespaces } = this.day;
    await this.containers.factory.start();
    void this.pool.prewarm();
    const calls = functions.flatMap((one, index) => {
      const call = { one, ...this.actionOf(one, `namespace${index % namespaces}`) };
      return one.callsMs.map((atMs) => ({ ...call, atMs }));
    });
    for (const { atMs, one, action, message } of calls.sort((first, second) => first.atMs - second.atMs)) {
      await this.advance(atMs);
      this.underWay++;
      this.pool.submit(this.job(one, action, message));
    }
    await this.advance(this.day.lastsMs ?? dayMs);
    const gibS = this.containers.memory.mibMs() / 1024 / 1000;
    while (this.underWay > 0) await this.advance(this.clock.monotonicMs() + 1000);
    await this.clock.runUntil(this.pool.close());
    const { waitedMs, ...counts } = this.use;
    return { waitedS: waitedMs / 1000, gibS, ...counts };
  }

  /** Lets time pass. */
  private async advance(untilMs: number): Promise<void> {
    while (await this.clock.step(untilMs)) while (this.learning.size > 0) await Promise.all(this.learning);
    await this.clock.runFor(untilMs - this.clock.monotonicMs());
    if (this.failure !== undefined) throw this.failure;
  }

  private actionOf({ name, set }: DayFunction, namespace: string) {
    const { language, limitMiB } = this.containers.costsOf(set);
    const kind = kinds[language];
    const action: RunnableAction = {
      ...{ namespace: 'guest', name, version: '0.0.1', revision: '1-a', kind, runtime: kind, main: 'main' },
      ...{ annotations: [], requirements: [], warm: { imports: [], cuda: false }, leadingImports: [moduleOf(set)] },
      limits: { timeout: dayMs, memory: limitMiB, logs: 1, concurrency: 1 },
      code: () => Promise.reject(new Error('functions of the day have no code')),
      isCurrent: () => Promise.resolve(true),
    };
    const user = { subject: namespace, namespace: { name: namespace, uuid: namespace }, rights: [], limits: {} };
    const message: ActivationMessage = {
      ...{ transid: ['tid', 0], action: { path: 'guest', name }, revision: '1-a', activationId: name, blocking: true },
      user: { ...user, authkey: { api_key: '' } },
      rootControllerIndex: { asString: '0', instanceType: 'controller' },
      ...{ content: {}, initArgs: [], lockedArgs: {} },
    };
    return { action, message };
  }

  private job({ name, set, durationMs }: DayFunction, action: RunnableAction, message: ActivationMessage): DayJob {
    const sentMs = this.clock.monotonicMs();
    const { use, containers } = this;
    const learned = this.day.learns ? this.learned : undefined;
    const wanted = containerWanted(message, action, learned);
    const fail = (error: Error): void => {
      this.failure ??= error;
      this.underWay--;
    };
    return {
      ...wanted,
      slackMs: () => Infinity,
      readiesAhead: false,
      ready: () => Promise.resolve('it is not readied ahead'),
      fail,
      run: async (member, onInitialized) => {
        const { container } = member;
        member.used = true;
        if (member.initialized) use.warm++;
        else {
          const isMet = containers.has(container, set);
          use[isMet ? 'met' : 'unmet']++;
          const beganMs = this.clock.monotonicMs();
          const env = { SET: String(set) };
          await container.init({ name, main: 'main', binary: false, env }, limits).outcome;
          member.initialized = true;
          member.loadMs = this.clock.monotonicMs() - beganMs;
          const { importedMs, processMs } = containers.costsOf(set);
          const imported = { name: moduleOf(set), ms: importedMs - processMs };
          learned?.loaded(wanted, action, container, isMet ? [] : [imported]);
          onInitialized();
        }
        use.waitedMs += this.clock.monotonicMs() - sentMs;
        const request = runRequest(action, message, { ms: durationMs }, dayMs);
        const outcome = await container.run(request, limits).outcome;
        if (outcome.type !== 'result') fail(new Error(`a call ended with ${outcome.type}`));
        else this.underWay--;
        return 'keep';
      },
    };
  }
}

import { createLogger } from '@gpuwhisk/common/logging';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { bareSpec, problemOf } from '@gpuwhisk/invoker/containers/container-factory';
import type { ContainerFactory, ContainerSpec } from '@gpuwhisk/invoker/containers/container-factory';
import type { Disposition, LoadingStart } from '@gpuwhisk/invoker/pool/pool-member';
import { createSimulatedFactory } from '@gpuwhisk/invoker/containers/simulated-factory';
import type {
  SimulatedGuest,
  SimulatedFactory,
  SimulatedFactoryOptions,
} from '@gpuwhisk/invoker/containers/simulated-factory';
import type { PoolJob } from '@gpuwhisk/invoker/pool/action-queue';
import { ContainerPool } from '@gpuwhisk/invoker/pool/container-pool';
import type { PoolOptions } from '@gpuwhisk/invoker/pool/container-pool';
import { SimulatedClock } from '../simulation/simulated-clock.js';

export const kind = 'nodejs:20';
/** Times that a container takes to start and to load code, ms. */
export const startMs = 100;
export const initMs = 10;

const logger = createLogger({ level: 'silent' });
const limits = { timeoutMs: 60_000, logLimitBytes: 0, maxResultBytes: 1000, truncationBytes: 1000 };

/** The end of a job. */
export interface Ended {
  container?: string;
  start?: LoadingStart | 'warm';
  failure?: string;
  /** How many jobs ran in the container when this one began, itself included. */
  beside?: number;
  /** How many jobs ran as one batch with this one, itself included. */
  batch?: number;
  endedMs: number;
}

export interface JobOptions extends Partial<ContainerSpec> {
  /** How long its code takes to load, as the job tells. */
  loadMs?: number;
  /** How long the job runs. */
  ms?: number;
  /** The run's answer about the container. Default `keep`. */
  disposition?: Disposition;
  /** Default: each action has a namespace of its own. */
  namespace?: string;
  /** Namespace that owns the code. Default: the job's namespace. */
  codeOf?: string;
  readiesAhead?: boolean;
  /** Most idle containers with a GPU that its namespace may have. Default: no limit. */
  keepsWarm?: number;
  /** Most jobs that may run as one batch. Default 1. */
  batch?: number;
}

/** A job of the tests, which learns how it ended. */
interface TestJob extends PoolJob<TestJob> {
  settle(ended: Ended): void;
}

/** A pool over simulated containers, and jobs that run on them. */
export class PoolHarness {
  readonly clock = new SimulatedClock();
  readonly factory: SimulatedFactory;
  readonly pool: ContainerPool<TestJob>;
  /** Largest sum of memory of all containers seen when a job began, MiB. */
  mostMiB = 0;
  /** By container: the namespace that it runs code for, and the owner of that code. */
  private readonly provenances = new Map<string, string>();

  private constructor(
    options: Partial<PoolOptions>,
    factoryOptions: Partial<SimulatedFactoryOptions>,
    wrap: (factory: ContainerFactory) => ContainerFactory,
    guest: Partial<SimulatedGuest>,
  ) {
    this.factory = createSimulatedFactory({
      clock: this.clock,
      random: seededRandom(1),
      kinds: [kind],
      startMs: [startMs, startMs],
      unloading: 'none',
      guest: {
        init: ({ env }, _, container) => {
          const provenance = `${env.__OW_NAMESPACE} with code of ${env.codeOf}`;
          const had = this.provenances.get(container) ?? provenance;
          if (had !== provenance) throw new Error(`a container of ${had} is loaded for ${provenance}`);
          this.provenances.set(container, provenance);
          return { afterMs: initMs, then: { do: 'result', value: {} } };
        },
        run: ({ value }) => ({
          afterMs: Array.isArray(value) ? 0 : Number(value.ms),
          then: { do: 'result', value: {} },
        }),
        ...guest,
      },
      ...factoryOptions,
    });
    this.pool = new ContainerPool(
      wrap(this.factory),
      this.clock,
      {
        memoryMiB: 1024,
        maxStarting: 8,
        pauseGraceMs: 10_000,
        idleContainerMs: 600_000,
        stemCells: [],
        stemCellsOnDemand: false,
        ...options,
      },
      logger,
    );
  }

  static async open(
    options: Partial<PoolOptions> = {},
    factoryOptions: Partial<SimulatedFactoryOptions> = {},
    wrap: (factory: ContainerFactory) => ContainerFactory = (factory) => factory,
    guest: Partial<SimulatedGuest> = {},
  ): Promise<PoolHarness> {
    const harness = new PoolHarness(options, factoryOptions, wrap, guest);
    await harness.factory.start();
    return harness;
  }

  /** Submits a job of the action `key`. */
  submit(key: string, options: JobOptions = {}): Promise<Ended> {
    const { ms = 1, disposition = 'keep', memoryMiB = 128, concurrency = 1, namespace = key } = options;
    const { codeOf = namespace } = options;
    const env = { __OW_NAMESPACE: namespace, codeOf };
    const gpu = options.gpu && { gpu: options.gpu };
    const learned = options.learned && { learned: options.learned };
    const { imports = [] } = options;
    const spec = { ...bareSpec(options.kind ?? kind, memoryMiB), concurrency, imports, ...learned, ...gpu };
    return new Promise((resolve, reject) => {
      const job: TestJob = {
        settle: resolve,
        key,
        namespace,
        codeOf,
        spec,
        batch: options.batch ?? 1,
        slackMs: () => Infinity,
        readiesAhead: options.readiesAhead ?? false,
        keepsWarm: options.keepsWarm,
        ready: async ({ container }) => {
          const init = { name: key, main: 'main', binary: false, env };
          return problemOf(await container.init(init, limits).outcome);
        },
        fail: (error) => resolve({ failure: error.message, endedMs: this.clock.monotonicMs() }),
        run: async (member, onInitialized, others) => {
          const { active: beside, container } = member;
          const start = member.initialized && member.used ? 'warm' : member.origin;
          member.used = true;
          this.mostMiB = Math.max(this.mostMiB, this.liveMiB());
          try {
            if (!member.initialized) {
              await container.init({ name: key, main: 'main', binary: false, env }, limits).outcome;
              member.initialized = true;
              member.loadMs = options.loadMs ?? initMs;
              onInitialized();
            }
            await container.run(runRequest(ms), limits).outcome;
          } catch (error) {
            reject(error as Error);
            return 'discard';
          }
          const ended: Ended = { container: container.id, start, beside, endedMs: this.clock.monotonicMs() };
          const batch = 1 + others.length;
          resolve({ ...ended, batch });
          for (const other of others) other.settle({ ...ended, batch });
          return disposition;
        },
      };
      this.pool.submit(job);
    });
  }

  /** Submits a job and lets time pass until it has ended. */
  run(key: string, options: JobOptions = {}): Promise<Ended> {
    return this.clock.runUntil(this.submit(key, options));
  }

  /** Submits jobs at once and lets time pass until all have ended. */
  runAll(jobs: readonly [key: string, options?: JobOptions][]): Promise<Ended[]> {
    return this.clock.runUntil(Promise.all(jobs.map(([key, options]) => this.submit(key, options))));
  }

  liveMiB(): number {
    return this.factory.live.reduce((sum, { spec }) => sum + spec.memoryMiB, 0);
  }
}

/** A run of the guest that lasts for `ms`. */
export function runRequest(ms: number): Parameters<SimulatedFactory['live'][number]['run']>[0] {
  return {
    value: { ms },
    namespace: 'guest',
    action_name: '/guest/action',
    action_version: '0.0.1',
    activation_id: 'a',
    transaction_id: 't',
    deadline: '0',
  };
}

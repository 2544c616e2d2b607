import type { Logger } from '@gpuwhisk/common/logging';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { problemOf } from '../containers/container-factory.js';
import type { Container, ContainerFactory, ContainerSpec, Match } from '../containers/container-factory.js';
import type { PoolJob } from './action-queue.js';
import type { StoreServices, ContainerStore, ContainerRemovals } from './container-store.js';
import type { Measure } from './memory-budget.js';
import { resumeMember } from './pool-member.js';
import type { PoolMember } from './pool-member.js';

/** Namespace and owner of the code that a container has run; see PoolJob. */
export type Provenance = Pick<PoolJob<unknown>, 'namespace' | 'codeOf'>;

interface UnloadedContainer extends Provenance {
  container: Container;
  /** Time of its unload, monotonic ms. */
  sinceMs: number;
}

const maxPerNamespace = 8;
const maxInAll = 32;

/**
 * Containers whose action was unloaded. Each serves only actions of the same provenance: invoked by the same namespace, with
 * code of the same owner. Their number is bounded for each namespace and in total; the longest waiting one is destroyed for
 * a new one.
 */
export class UnloadedContainers implements ContainerStore {
  /** The containers, the longest waiting first. */
  private entries: UnloadedContainer[] = [];

  constructor(
    private readonly factory: ContainerFactory,
    private readonly clock: Clock,
    private readonly services: StoreServices,
  ) {}

  /** Adds an unloaded container, with its memory. */
  put(container: Container, { namespace, codeOf }: Provenance): void {
    this.entries.push({ container, namespace, codeOf, sinceMs: this.clock.monotonicMs() });
    this.services.watch.set(container, () => {
      if (this.has(container)) this.replace(container);
    });
    const ofNamespace = this.entries.filter((entry) => entry.namespace === namespace);
    if (ofNamespace.length > maxPerNamespace) this.replaceFirst(ofNamespace);
    if (this.entries.length > maxInAll) this.replaceFirst(this.entries);
  }

  /** Whether the namespace's bound allows another container besides `coming` further ones. */
  hasRoom(namespace: string, coming: number): boolean {
    return this.entries.filter((entry) => entry.namespace === namespace).length + coming < maxPerNamespace;
  }

  /** The most recently unloaded container of the provenance with this match; passes to the caller with its memory. */
  take({ namespace, codeOf }: Provenance, wanted: ContainerSpec, match: Exclude<Match, 'none'>): Container | undefined {
    const found = this.entries.findLast(
      (entry) =>
        entry.namespace === namespace &&
        entry.codeOf === codeOf &&
        this.factory.match(entry.container.spec, wanted) === match &&
        this.services.fits(entry.container, wanted),
    );
    if (found !== undefined) this.drop(found.container);
    return found?.container;
  }

  list(): Container[] {
    return this.entries.map(({ container }) => container);
  }

  /** The namespace's containers with a GPU, the longest waiting first. */
  withGpu(namespace: string): Container[] {
    const own = this.entries.filter((entry) => entry.namespace === namespace && entry.container.spec.gpu !== undefined);
    return own.map(({ container }) => container);
  }

  has(container: Container): boolean {
    return this.entries.some((entry) => entry.container === container);
  }

  /** Destroys a container without a replacement. */
  replace(container: Container): void {
    this.drop(container);
    this.services.removals.remove(container);
  }

  heldMiB(memoryOf: Measure): number {
    return this.entries.reduce((sum, { container }) => sum + memoryOf(container.spec), 0);
  }

  /** Destroys the longest waiting containers with a total of `memoryMiB`, if there are enough; returns their memory, MiB. */
  giveUp(memoryMiB: number, memoryOf: Measure): number {
    let freedMiB = 0;
    for (const { container } of [...this.entries]) {
      if (freedMiB >= memoryMiB) break;
      const ownMiB = memoryOf(container.spec);
      if (ownMiB === 0) continue;
      freedMiB += ownMiB;
      this.replace(container);
    }
    return freedMiB;
  }

  /** Destroys the containers that have waited for `ms` or longer. */
  expire(ms: number): void {
    const untilMs = this.clock.monotonicMs() - ms;
    for (const { container, sinceMs } of [...this.entries]) if (sinceMs <= untilMs) this.replace(container);
  }

  close(): void {
    for (const { container } of [...this.entries]) this.replace(container);
  }

  /** Destroys the first of the containers. */
  private replaceFirst([first]: readonly UnloadedContainer[]): void {
    if (first !== undefined) this.replace(first.container);
  }

  private drop(container: Container): void {
    this.entries = this.entries.filter((entry) => entry.container !== container);
  }
}

const limits = { timeoutMs: 5000, logLimitBytes: 0, maxResultBytes: 1024, truncationBytes: 1024 };

/** Containers whose action is being unloaded. A container that does not unload within 5 s is destroyed. */
export class Unloading {
  private readonly namespaces = new Map<Container, string>();

  constructor(
    private readonly removals: ContainerRemovals,
    private readonly logger: Logger,
  ) {}

  /** Number of the namespace's containers that are being unloaded. */
  count(namespace: string): number {
    return [...this.namespaces.values()].filter((each) => each === namespace).length;
  }

  /**
   * Unloads the action of a container that has left it. `done` gets true if the container passes to the caller, or false if
   * it is being destroyed. `done` is not called after close().
   */
  begin(member: PoolMember, namespace: string, thorough: boolean, done: (isUnloaded: boolean) => void): void {
    const { container } = member;
    this.namespaces.set(container, namespace);
    void unload(member, thorough)
      .catch((error: unknown) => String(error))
      .then((problem) => {
        if (!this.namespaces.delete(container)) return;
        if (problem !== undefined) {
          this.logger.warn(
            { container: container.id, kind: container.spec.kind, problem },
            'an action was not unloaded',
          );
          this.removals.remove(container);
        }
        done(problem === undefined);
      });
  }

  /** Destroys the containers that are being unloaded. */
  close(): void {
    for (const container of this.namespaces.keys()) this.removals.remove(container);
    this.namespaces.clear();
  }
}

/** Unloads a container. Resolves with the problem, or undefined. */
async function unload(member: PoolMember, thorough: boolean): Promise<string | undefined> {
  await resumeMember(member);
  const { outcome, logs } = member.container.unload(thorough, limits);
  const problem = problemOf(await outcome);
  // By then the old action's output has been cut off from the logs.
  await logs;
  return problem;
}

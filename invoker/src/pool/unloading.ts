import type { Logger } from '@gpuwhisk/common/logging';
import { problemOf } from '../containers/container-factory.js';
import type { Container } from '../containers/container-factory.js';
import { resumeMember } from './freezing.js';
import type { PoolMember } from './pool-member.js';
import type { Removals } from './removals.js';

const limits = { timeoutMs: 5000, logLimitBytes: 0, maxResultBytes: 1024, truncationBytes: 1024 };

/** Containers whose action is being unloaded. One that cannot be unloaded within 5 s is destroyed. */
export class Unloading {
  private readonly namespaces = new Map<Container, string>();

  constructor(
    private readonly removals: Removals,
    private readonly logger: Logger,
  ) {}

  /** How many of the namespace are on their way. */
  count(namespace: string): number {
    return [...this.namespaces.values()].filter((each) => each === namespace).length;
  }

  /**
   * Unloads the action of a container that has left it. `done` gets whether the container is the caller's to use now;
   * else it is being destroyed. It is not called once this is closed.
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

  /** Destroys those under way. */
  close(): void {
    for (const container of this.namespaces.keys()) this.removals.remove(container);
    this.namespaces.clear();
  }
}

/** Resolves with what went wrong, if something did. */
async function unload(member: PoolMember, thorough: boolean): Promise<string | undefined> {
  await resumeMember(member);
  const { outcome, logs } = member.container.unload(thorough, limits);
  const problem = problemOf(await outcome);
  // What the old action printed is cut off by then.
  await logs;
  return problem;
}

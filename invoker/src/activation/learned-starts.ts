import type { SavedStart } from '@gpuwhisk/common/prewarmer';
import { Counter } from 'prom-client';
import type { Registry } from 'prom-client';
import type { Container, ContainerSpec, ImportedModule } from '../containers/container-factory.js';
import type { RunnableAction } from './action-loader.js';
import type { LearnedImports, LearnedWish } from './learned-imports.js';

/** Starts of actions by learned imports: what they saved, and what to have ready for the next ones. */
export class LearnedStarts {
  private readonly starts: Counter<'outcome'>;
  private readonly saved: Counter;
  private readonly failures: Counter;

  constructor(
    private readonly imports: LearnedImports,
    registry: Registry,
    /** Has a container made ahead for the next start with this spec, if there is none. */
    private readonly foresee: (spec: ContainerSpec) => void,
  ) {
    const counter = <Label extends string>(name: string, help: string, labelNames: Label[]): Counter<Label> => {
      // The invokers of one process share the counters.
      const known = registry.getSingleMetric(name) as Counter<Label> | undefined;
      return known ?? new Counter({ name, help, labelNames, registers: [registry] });
    };
    const outcomes = 'Starts of actions with learned imports: hit, where a container had some of them loaded, or miss';
    this.starts = counter('gpuwhisk_learned_starts_total', outcomes, ['outcome']);
    const saved = 'Time of imports that starts did not wait for, since the modules were loaded';
    this.saved = counter('gpuwhisk_learned_saved_seconds_total', saved, []);
    const failures = 'Containers that could not be made ahead with learned imports';
    this.failures = counter('gpuwhisk_learned_containers_failed_total', failures, []);
  }

  get changes(): number {
    return this.imports.changes;
  }

  wanted(namespace: string, action: RunnableAction): LearnedWish | undefined {
    return this.imports.wanted(namespace, action);
  }

  /**
   * Notes that an action was loaded into a container, and learns from it in the background. Returns what learned imports
   * saved, or undefined if nothing.
   */
  loaded(
    { namespace, spec }: { namespace: string; spec: ContainerSpec },
    action: RunnableAction,
    container: Container,
    reported: readonly ImportedModule[] = [],
  ): SavedStart | undefined {
    const had = new Set(container.spec.learned === undefined ? [] : container.spec.imports);
    const found = spec.learned === undefined ? [] : spec.imports.filter((name) => had.has(name));
    const savedMs = this.imports.savedMs(namespace, action, found);
    if (spec.learned !== undefined) this.starts.inc({ outcome: found.length > 0 ? 'hit' : 'miss' });
    this.saved.inc(savedMs / 1000);
    void this.learn(namespace, spec, action, container, reported, found);
    if (found.length === 0) return undefined;
    const isReused = (container.unloads ?? 0) > 0;
    return { savedMs, savedBy: isReused ? 'rolled back' : container.isCopy === true ? 'restored' : 'learned' };
  }

  /** Notes that a container could not be made ahead. */
  failedAhead(spec: ContainerSpec, error: unknown): void {
    if (spec.learned === undefined) return;
    this.failures.inc();
    this.imports.failedFor(spec, error);
  }

  private async learn(
    namespace: string,
    spec: ContainerSpec,
    action: RunnableAction,
    container: Container,
    reported: readonly ImportedModule[],
    found: readonly string[],
  ): Promise<void> {
    if (reported.length === 0) return;
    await this.imports.learn(namespace, action, container, reported, found);
    const wish = this.imports.wanted(namespace, action);
    if (wish !== undefined && spec.training === undefined) this.foresee({ ...spec, ...wish });
  }
}

import type { Clock } from '@gpuwhisk/common/system/clock';
import type { Logger } from '@gpuwhisk/common/logging';
import type { Container, ContainerFactory, ContainerSpec } from '../containers/container-factory.js';
import { ContainerWatch } from './container-watch.js';
import { HealthChecks } from './health-checks.js';
import { MemoryBudget } from './memory-budget.js';
import type { DeviceBudget } from './memory-budget.js';
import { Removals } from './removals.js';
import { ReturnedPairs } from './returned-pairs.js';
import type { Provenance } from './returned-pairs.js';
import { StemCells } from './stem-cells.js';
import type { StemCellOptions } from './stem-cells.js';
import { Unloading } from './unloading.js';
import type { Keeping } from './waiting-pairs.js';

/** The containers of a pool that belong to no action, and the memory of all. */
export class Stocks implements Keeping {
  readonly memory: MemoryBudget;
  readonly removals: Removals;
  readonly watch = new ContainerWatch();
  readonly stemCells: StemCells;
  readonly returned: ReturnedPairs;
  readonly unloading: Unloading;
  private readonly checks: HealthChecks;

  constructor(
    factory: ContainerFactory,
    clock: Clock,
    options: StemCellOptions & { memoryMiB: number; devices?: DeviceBudget },
    logger: Logger,
    /** Called when memory has become free. */
    freed: () => void,
  ) {
    this.memory = new MemoryBudget(options.memoryMiB, options.devices, freed);
    this.removals = new Removals(this.memory, logger);
    this.stemCells = new StemCells(factory, clock, options, this, logger);
    this.returned = new ReturnedPairs(factory, clock, this);
    this.unloading = new Unloading(this.removals, logger);
    this.checks = new HealthChecks(clock, logger, [this.stemCells, this.returned]);
  }

  /** A container that waits for an action like this one, the caller's from now on with its memory. */
  take(provenance: Provenance, spec: ContainerSpec): Container | undefined {
    return (
      this.returned.take(provenance, spec, 'exact') ??
      this.stemCells.take(spec) ??
      this.returned.take(provenance, spec, 'subset')
    );
  }

  /** Containers that wait for an action yet to come. */
  list(): Container[] {
    return [...this.stemCells.list(), ...this.returned.list()];
  }

  /** Destroys all; those of `removals` are gone later. */
  async close(): Promise<void> {
    this.checks.close();
    await this.stemCells.close();
    this.unloading.close();
    this.returned.close();
  }
}

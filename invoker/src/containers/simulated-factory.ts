import { sleep } from '@gpuwhisk/common/system/clock';
import type { Random } from '@gpuwhisk/common/system/random';
import { randomFraction } from '@gpuwhisk/common/system/random';
import type { Container, ContainerFactory, ContainerSpec } from './container-factory.js';
import { ProvisioningError } from './container-factory.js';
import { matchSpecs } from './match-specs.js';
import { SimulatedContainer } from './simulated-container.js';
import type { SimulatedContainerOptions } from './simulated-container.js';

/** What a simulated factory is made of. */
export interface SimulatedFactoryOptions extends SimulatedContainerOptions {
  random: Random;
  kinds: readonly string[];
  /** Which containers can unload: default all. */
  unloading?: 'all' | 'prewarmed' | 'none';
  /** Shortest and longest time that a container takes to start, ms. */
  startMs?: readonly [number, number];
  /** Share of the starts that fail, 0 to 1. */
  failing?: number;
}

/** A factory whose containers are objects: deterministic, driven by Clock and Random. */
export interface SimulatedFactory extends ContainerFactory {
  /** Containers that have not ended, oldest first. */
  readonly live: readonly Container[];
  /** Ends a container as if its processes had died. */
  crash(id: string): void;
  /** Ends all at once and forgets them, as the machine does when it stops; the factory can be started again. */
  crashAll(): void;
}

/** Makes a factory of simulated containers. */
export function createSimulatedFactory(options: SimulatedFactoryOptions): SimulatedFactory {
  const containers = new Map<string, SimulatedContainer>();
  const [shortestMs, longestMs] = options.startMs ?? [0, 0];
  let made = 0;
  let open = false;
  let generation = 0;

  async function make(spec: ContainerSpec, canUnload: boolean): Promise<Container> {
    if (!open) throw new ProvisioningError('The container factory is not open.');
    if (!options.kinds.includes(spec.kind)) throw new ProvisioningError(`There is no runtime for '${spec.kind}'.`);
    const born = generation;
    await sleep(options.clock, shortestMs + (longestMs - shortestMs) * randomFraction(options.random));
    if (!open || born !== generation) throw new ProvisioningError('The container factory was closed.');
    if (randomFraction(options.random) < (options.failing ?? 0)) throw new ProvisioningError('It did not start.');
    const id = `simulated-${++made}`;
    const container = new SimulatedContainer(id, spec, canUnload, options, () => containers.delete(id));
    containers.set(id, container);
    return container;
  }

  function endAll(): void {
    for (const container of [...containers.values()]) container.die(false);
  }

  return {
    get live() {
      return [...containers.values()];
    },
    start() {
      endAll();
      open = true;
      return Promise.resolve({ weaknesses: [], notes: [] });
    },
    supports: (kind) => options.kinds.includes(kind),
    create: (spec) => make(spec, (options.unloading ?? 'all') === 'all'),
    prewarm: (spec) => make(spec, options.unloading !== 'none'),
    match: matchSpecs,
    close() {
      open = false;
      generation++;
      endAll();
      return Promise.resolve();
    },
    crash: (id) => containers.get(id)?.die(false),
    crashAll() {
      open = false;
      generation++;
      endAll();
    },
  };
}

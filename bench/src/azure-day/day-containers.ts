// Simulated containers that take the measured times and memory of real ones.
import type { Clock } from '@gpuwhisk/common/system/clock';
import { sleep } from '@gpuwhisk/common/system/clock';
import { seededRandom } from '@gpuwhisk/common/system/random';
import type { Container, ContainerFactory, ContainerSpec } from '@gpuwhisk/invoker/containers/container-factory';
import { createSimulatedFactory } from '@gpuwhisk/invoker/containers/simulated-factory';
import type { SetCosts } from './costs.js';
import { MemoryMeter } from './memory-meter.js';

export const kinds = { python: 'python:3.11', nodejs: 'nodejs:20' } as const;

/** The only module of a set, which stands for all of its. */
export const moduleOf = (set: number): string => `module${set}`;

/** Where modules lie, by language. */
export type Folders = Readonly<Record<SetCosts['language'], string>>;

/** Dependencies of DayContainers. */
export interface DayContainersOptions {
  clock: Clock;
  costs: readonly SetCosts[];
  rollbackMs: number;
  folders: Folders;
}

interface Loaded {
  language: SetCosts['language'];
  /** The set of its modules; undefined without modules. */
  set: number | undefined;
}

/** The containers of a day. */
export class DayContainers {
  readonly factory: ContainerFactory;
  readonly memory: MemoryMeter;
  private readonly loaded = new Map<string, Loaded>();
  /** Namespaces and sets that have a template. */
  private readonly templates = new Set<string>();

  constructor(private readonly options: DayContainersOptions) {
    const { clock, rollbackMs } = options;
    this.memory = new MemoryMeter(() => clock.monotonicMs());
    const ok = { do: 'result', value: {} } as const;
    const simulated = createSimulatedFactory({
      clock,
      random: seededRandom(1),
      kinds: Object.values(kinds),
      // A container that a call waits for is a plain process.
      unloading: 'prewarmed',
      resizes: true,
      guest: {
        init: ({ env }, _, id) => ({ afterMs: this.load(id, Number(env.SET)), then: ok }),
        run: ({ value }) => ({ afterMs: Array.isArray(value) ? 0 : Number(value.ms), then: ok }),
        unload: (id) =>
          this.loaded.get(id)?.language === 'nodejs'
            ? { then: { do: 'error', error: 'its packages cannot be put back' } }
            : { afterMs: rollbackMs, then: ok },
      },
    });
    this.factory = {
      ...simulated,
      create: async (spec) => {
        await sleep(clock, this.bareOf(spec.kind).processMs);
        return this.bare(await simulated.create(spec));
      },
      copy: async (spec) => {
        const { set, template } = learnedOf(spec);
        if (this.costsOf(set).language !== 'python' || !this.templates.has(template)) return undefined;
        await sleep(clock, this.costsOf(set).readyMs);
        return this.withModules(await simulated.prewarm(spec), set, template, true);
      },
      prewarm: async (spec) => {
        if (spec.learned === undefined) {
          await sleep(clock, this.bareOf(spec.kind).processMs);
          return this.bare(await simulated.prewarm(spec));
        }
        const { set, template } = learnedOf(spec);
        const { importedMs, readyMs } = this.costsOf(set);
        const isCopy = this.templates.has(template);
        await sleep(clock, isCopy ? readyMs : importedMs);
        const container = await simulated.prewarm(spec);
        this.templates.add(template);
        return this.withModules(container, set, template, isCopy);
      },
    };
  }

  /** Whether a container has the modules of a set. */
  has({ id }: Container, set: number): boolean {
    return this.loaded.get(id)?.set === set;
  }

  costsOf(set: number): SetCosts {
    const costs = this.options.costs[set];
    if (costs === undefined) throw new RangeError(`there is no set ${set}`);
    return costs;
  }

  /** Loads a function of the set; the time that takes, ms. */
  private load(id: string, set: number): number {
    const { language, importedMs, metMs, processMs, plainMiB, plainSharedMiB } = this.costsOf(set);
    if (this.loaded.get(id)?.set === set) return metMs;
    this.loaded.set(id, { language, set });
    this.memory.hold(id, plainMiB, { of: `plain ${set}`, miB: plainSharedMiB, stays: false });
    return importedMs - processMs;
  }

  /** A process without modules counts as the smallest one with modules. */
  private bareOf(kind: string): SetCosts & { set: number } {
    const alike = this.options.costs
      .map((costs, set) => ({ ...costs, set }))
      .filter(({ language }) => kinds[language] === kind);
    return alike.reduce((least, one) => (one.plainMiB < least.plainMiB ? one : least));
  }

  private bare(container: Container): Container {
    const { language, plainMiB, plainSharedMiB, set } = this.bareOf(container.spec.kind);
    this.memory.hold(container.id, plainMiB, { of: `plain ${set}`, miB: plainSharedMiB, stays: false });
    return this.added(container, { language, set: undefined }, plainMiB + plainSharedMiB);
  }

  /** A process that was made ahead: the first of a set imports its modules, further ones of Python are copies of its template. */
  private withModules(container: Container, set: number, template: string, isCopy: boolean): Container {
    const { language, plainMiB, plainSharedMiB, copyMiB, copySharedMiB } = this.costsOf(set);
    const plain = { of: `plain ${set}`, miB: plainSharedMiB, stays: false };
    const copied = { of: `template ${template}`, miB: copySharedMiB, stays: true };
    if (language === 'nodejs') this.memory.hold(container.id, plainMiB, plain);
    else if (isCopy) this.memory.hold(container.id, copyMiB, copied);
    else this.memory.hold(container.id, plainMiB + plainSharedMiB, copied);
    return this.added(container, { language, set }, isCopy ? copyMiB + copySharedMiB : plainMiB + plainSharedMiB);
  }

  private added(container: Container, loaded: Loaded, realMiB: number): Container {
    const { id, exited } = container;
    this.loaded.set(id, loaded);
    void exited.then(() => {
      this.memory.drop(id);
      this.loaded.delete(id);
    });
    const { language } = loaded;
    const sharedModules = { language, folders: [this.options.folders[language]] };
    return Object.assign(container, { sharedModules, memoryMiB: () => Promise.resolve(realMiB) });
  }
}

/** The set of a spec with learned modules, and the key of its template. */
function learnedOf({ learned, imports }: ContainerSpec): { set: number; template: string } {
  const set = Number(imports[0]?.slice(moduleOf(0).length - 1));
  return { set, template: `${learned?.namespace ?? ''} ${set}` };
}

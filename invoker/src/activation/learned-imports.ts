import { createHash } from 'node:crypto';
import { maxImports } from '@gpuwhisk/common/entities/action-annotations';
import type { Logger } from '@gpuwhisk/common/logging';
import type { Clock, Timer } from '@gpuwhisk/common/system/clock';
import type { Container, ContainerSpec, ImportedModule, LearnedFor } from '../containers/container-factory.js';
import { nodeModulesIn } from '../runtimes/node-modules.js';
import { pythonModulesIn } from '../runtimes/python-modules.js';
import { fullyQualifiedName } from './action-loader.js';
import type { RunnableAction } from './action-loader.js';
import type { LearnedFile, NamespaceRow } from '../runtimes/learned-file.js';

/** Bounds of the memory: namespaces, and of each its modules and actions. The longest unused ones are forgotten. */
export const maxNamespaces = 100;
export const maxModules = 256;
export const maxActions = 100;
/** The names, of those that are given, of modules in folders. */
const modulesIn = { python: pythonModulesIn, nodejs: nodeModulesIn };
/** Time that a start must save, ms: less is not worth a process of its own. */
const worthMs = 20;
/** Failures to load a set of modules ahead after which it is off, and for how long, ms. */
const maxFailures = 3;
const offMs = 3_600_000;
/** Sets of modules that failed, at most. */
const maxFailed = 1000;
const writeAfterMs = 5000;

/** What was learned of the actions of a namespace with one kind and the same requirements. */
interface ModuleSet {
  /** Shortest time of its import, ms, by module, in the order in which they were learned. */
  modules: Map<string, number>;
  /** Modules by action and revision, the last learned one at the end. */
  actions: Map<string, readonly string[]>;
}

/** Modules to load before an action's code comes. */
export interface LearnedWish {
  imports: readonly string[];
  learned: LearnedFor;
}

/** Dependencies of LearnedImports. */
export interface LearnedImportsOptions {
  file: LearnedFile;
  clock: Clock;
  logger: Logger;
}

/**
 * Remembers which modules of shared sets actions import while their code is loaded. Containers that are made ahead load them.
 * What an action reports counts for its namespace only: the report comes from the action's process.
 */
export class LearnedImports {
  private readonly namespaces = new Map<string, Map<string, ModuleSet>>();
  private readonly failed = new Map<string, { count: number; untilMs: number }>();
  private timer: Timer | undefined;
  private closed = false;
  /** Increases with each change of what `wanted` may answer. */
  changes = 0;

  private constructor(private readonly options: LearnedImportsOptions) {}

  /** Opens with what the file holds. Never rejects: without a readable file nothing is known. */
  static async open(options: LearnedImportsOptions): Promise<LearnedImports> {
    const opened = new LearnedImports(options);
    for (const { namespace, sets } of await options.file.read()) {
      const read = sets.map(({ key, modules, actions }): [string, ModuleSet] => {
        return [key, { modules: new Map(modules), actions: new Map(actions) }];
      });
      opened.namespaces.set(namespace, new Map(read));
    }
    return opened;
  }

  /** The modules to load ahead of an action that a namespace invokes; undefined if none are worth it. */
  wanted(namespace: string, action: RunnableAction): LearnedWish | undefined {
    const { warm, leadingImports } = action;
    if (warm.learns === false || warm.imports.length > 0) return undefined;
    const set = this.namespaces.get(namespace)?.get(setKey(action.runtime, action.requirements));
    if (set === undefined) return undefined;
    const own = new Set(set.actions.get(actionKey(action)) ?? leadingImports ?? []);
    const imports = [...set.modules.keys()].filter((name) => own.has(name)).slice(0, maxImports);
    const savesMs = this.savedMs(namespace, action, imports);
    if (savesMs < worthMs || this.isOff(namespace, action, imports)) return undefined;
    return { imports, learned: { namespace, takesMore: leadingImports !== undefined, savesMs } };
  }

  /** Time that an action saves whose modules `imports` are loaded ahead, ms. */
  savedMs(namespace: string, action: RunnableAction, imports: readonly string[]): number {
    const modules = this.namespaces.get(namespace)?.get(setKey(action.runtime, action.requirements))?.modules;
    return imports.reduce((sum, name) => sum + (modules?.get(name) ?? 0), 0);
  }

  /**
   * Learns from the load of an action into `container`. `found`: modules that the action wanted and the container had.
   * Resolves once that is done; never rejects.
   */
  async learn(
    namespace: string,
    action: RunnableAction,
    { sharedModules }: Container,
    reported: readonly ImportedModule[],
    found: readonly string[],
  ): Promise<void> {
    const { warm } = action;
    if (sharedModules === undefined || warm.learns === false || warm.imports.length > 0) return;
    const valid = await modulesIn[sharedModules.language](
      sharedModules.folders,
      reported.map(({ name }) => name),
    );
    const imported = reported.filter(({ name }) => valid.has(name));
    if (this.closed || (imported.length === 0 && found.length === 0)) return;
    const set = this.usedSet(namespace, setKey(action.runtime, action.requirements));
    for (const { name, ms } of imported) set.modules.set(name, Math.min(ms, set.modules.get(name) ?? Infinity));
    const key = actionKey(action);
    set.actions.delete(key);
    set.actions.set(key, [...new Set([...found, ...imported.map(({ name }) => name)])].slice(0, maxImports));
    this.bound(namespace);
    this.changed();
  }

  /** Notes that no container with learned modules could be made; after three failures they are off for an hour. */
  failedFor(spec: ContainerSpec, error: unknown): void {
    if (spec.learned === undefined) return;
    const key = failureKey(spec.learned.namespace, setKey(spec.kind, spec.requirements), spec.imports);
    const count = (this.failed.get(key)?.count ?? 0) + 1;
    const isOff = count >= maxFailures;
    if (this.failed.size >= maxFailed) this.failed.clear();
    this.failed.set(key, {
      count: isOff ? 0 : count,
      untilMs: isOff ? this.options.clock.monotonicMs() + offMs : 0,
    });
    if (!isOff) return;
    this.changes++;
    this.options.clock.setBackgroundTimer(offMs, () => this.changes++);
    this.options.logger.warn(
      { namespace: spec.learned.namespace, kind: spec.kind, imports: spec.imports, error: String(error) },
      'learned imports are not loaded ahead for an hour',
    );
  }

  /** Writes what is not written yet, and learns nothing more. */
  async close(): Promise<void> {
    this.closed = true;
    if (this.timer === undefined) return;
    this.timer.cancel();
    await this.write();
  }

  private isOff(namespace: string, action: RunnableAction, imports: readonly string[]): boolean {
    if (this.failed.size === 0) return false;
    const failure = this.failed.get(failureKey(namespace, setKey(action.runtime, action.requirements), imports));
    return failure !== undefined && failure.untilMs > this.options.clock.monotonicMs();
  }

  /** The set of a namespace, which becomes the one used last. */
  private usedSet(namespace: string, key: string): ModuleSet {
    const sets = this.namespaces.get(namespace) ?? new Map<string, ModuleSet>();
    const set = sets.get(key) ?? { modules: new Map<string, number>(), actions: new Map<string, readonly string[]>() };
    sets.delete(key);
    sets.set(key, set);
    this.namespaces.delete(namespace);
    this.namespaces.set(namespace, sets);
    return set;
  }

  /** Forgets what exceeds the bounds: sets, actions and namespaces that were used longest ago, and the fastest modules. */
  private bound(namespace: string): void {
    const sets = this.namespaces.get(namespace) ?? new Map<string, ModuleSet>();
    const count = (of: (set: ModuleSet) => number): number => [...sets.values()].reduce((sum, set) => sum + of(set), 0);
    while (
      sets.size > 1 &&
      (count((set) => set.actions.size) > maxActions || count((set) => set.modules.size) > maxModules)
    )
      removeFirst(sets);
    for (const { modules, actions } of sets.values()) {
      while (actions.size > maxActions) removeFirst(actions);
      const fastest = [...modules].sort(([, a], [, b]) => a - b);
      for (const [name] of fastest.slice(0, Math.max(0, modules.size - maxModules))) modules.delete(name);
    }
    while (this.namespaces.size > maxNamespaces) removeFirst(this.namespaces);
  }

  private changed(): void {
    this.changes++;
    this.timer ??= this.options.clock.setBackgroundTimer(writeAfterMs, () => void this.write());
  }

  private async write(): Promise<void> {
    this.timer = undefined;
    const rows = [...this.namespaces].map(([namespace, sets]): NamespaceRow => {
      const each = [...sets].map(([key, { modules, actions }]) => ({
        key,
        modules: [...modules],
        actions: [...actions].map(([name, names]): [string, string[]] => [
          name,
          names.filter((one) => modules.has(one)),
        ]),
      }));
      return { namespace, sets: each };
    });
    try {
      await this.options.file.write(rows);
    } catch (error) {
      this.options.logger.warn({ error: String(error) }, 'learned imports could not be written');
    }
  }
}

function removeFirst(map: Map<string, unknown>): void {
  const [first] = map.keys();
  if (first !== undefined) map.delete(first);
}

/** A digest of the requirements: a namespace may have a hundred sets, and 20 kB of requirements in each. */
function setKey(kind: string, requirements: readonly string[]): string {
  if (requirements.length === 0) return `${kind} `;
  return `${kind} ${createHash('sha256').update(requirements.join(' ')).digest('base64url')}`;
}

const actionKey = (action: RunnableAction): string => `${fullyQualifiedName(action)} ${action.revision}`;

const failureKey = (namespace: string, set: string, imports: readonly string[]): string =>
  `${namespace} ${set} ${imports.join(' ')}`;

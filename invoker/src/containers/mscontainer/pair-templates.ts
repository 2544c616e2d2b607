// Templates of pairs: files with the memory of Python pre-warmers that have imported a set of modules, and seen no function
// yet. A further pair of the set is a copy in a sandbox of its own, which takes some tens of milliseconds
// (native/inject/template.h). Without a template, and wherever a copy fails, the pair imports its modules.
import { createHash } from 'node:crypto';
import { chmod, copyFile, mkdir, realpath, rm, stat, statfs, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Registry } from 'prom-client';
import { showMetricsIn } from '@gpuwhisk/common/shown-metrics';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { systemRandom } from '@gpuwhisk/common/system/random';
import type { Random } from '@gpuwhisk/common/system/random';
import type { Container, ContainerSpec } from '../container-factory.js';
import type { ProcessContainerFactory } from '../process/process-factory.js';
import { bindsFor } from '../runtime-launch.js';
import { reserveBytes } from '../sandbox/sandbox-job.js';
import type { Bind, RuntimeLaunch } from '../runtime-launch.js';
import { hasRestorer, restorerPath } from '../../host/native-programs.js';
import { removeTree } from '../../host/trees.js';

const MiB = 1024 * 1024;
/** Sets that are known at most. */
const maxSets = 256;
/** After so many failures in a row a set has no template for a while. */
const [maxFailures, offMs] = [3, 3_600_000];
/** Space on the disk without which no template is made. */
const leastBytes = 64 * MiB;
/** The template's file in a sandbox. */
const inside = '/run/template';

/** Why a pair is imported although its set may have a template. */
const reasons = ['none', 'off', 'failed'] as const;

/** Dependencies and bounds of templates. */
export interface PairTemplatesOptions {
  processes: Pick<ProcessContainerFactory, 'launchContainer'>;
  /** The platform's data folder; templates lie in `templates` below it, which is emptied at the start. */
  dataDir: string;
  /** Bound on the size of all templates, MiB. */
  maxMiB: number;
  clock: Clock;
  random?: Random;
  logger?: { info(message: string): void; warn(message: string): void };
}

/** What is known of a set of modules of one owner. */
interface ModuleSet {
  /** The template's file; absent until it is complete. */
  file?: string;
  bytes: number;
  usedMs: number;
  failures: number;
  offUntilMs: number;
  /** Whether a pair is being started that makes the template. */
  isMade: boolean;
}

/** Whose modules a pair imports: copies share them within one namespace only. Undefined: of no one namespace. */
const ownerOf = ({ installsFor, learned }: ContainerSpec): string | undefined => learned?.namespace ?? installsFor;

/** The templates of one platform. */
export class PairTemplates {
  /** By key, the longest unused first. */
  private readonly sets = new Map<string, ModuleSet>();
  private readonly imported = new Map<string, number>(reasons.map((reason) => [reason, 0]));
  private copied = 0;
  /** Space on the disk that templates being made may take: each is written, and copied. */
  private promisedBytes = 0;
  /** Absent while none are made. */
  private folder: string | undefined;

  constructor(private readonly options: PairTemplatesOptions) {}

  /** Makes the folder. After the start of the factory; `weaknesses`: as that reported them. */
  async start(weaknesses: readonly string[]): Promise<void> {
    const { dataDir, logger } = this.options;
    const folder = join(await realpath(resolve(dataDir)), 'templates');
    await removeTree(folder);
    if (!hasRestorer()) return;
    // Without a user, a root and processes of its own, one sandbox could change another's template.
    if (weaknesses.length > 0) {
      logger?.info('Pairs are not copied, as sandboxes are not isolated in full here.');
      return;
    }
    await mkdir(folder, { mode: 0o700 });
    this.folder = folder;
  }

  /** Whether any set has a template. */
  anyStands(): boolean {
    return this.standing().length > 0;
  }

  /** Whether the set of a pair has a template. */
  stands(spec: ContainerSpec, launch: RuntimeLaunch): boolean {
    return this.mayCopy(spec, launch) && this.sets.get(keyOf(spec, launch))?.file !== undefined;
  }

  /**
   * Makes a pair that is a copy of its set's template. Resolves with undefined where there is none, or the copy fails.
   * `ahead`: as in ContainerFactory.create.
   */
  async copy(spec: ContainerSpec, launch: RuntimeLaunch, ahead: boolean): Promise<Container | undefined> {
    if (!this.mayCopy(spec, launch)) return undefined;
    const { clock, processes } = this.options;
    const set = this.setOf(keyOf(spec, launch));
    if (set.file === undefined) {
      this.count(set.offUntilMs > clock.monotonicMs() ? 'off' : 'none');
      return undefined;
    }
    set.usedMs = clock.monotonicMs();
    const env = { ...launch.env, GPUWHISK_FROM_TEMPLATE: inside, GPUWHISK_RESTORER: restorerPath };
    const binds = [{ source: set.file, target: inside }, ...bindsFor([restorerPath])];
    try {
      const pair = await processes.launchContainer(spec, withMore(launch, env, binds), { ahead });
      set.failures = 0;
      this.copied++;
      pair.isCopy = true;
      return pair;
    } catch (error) {
      this.count('failed');
      await this.fail(set, spec, error);
      return undefined;
    }
  }

  /**
   * Makes a pair that imports its modules, and its set's template on the way. Resolves with undefined where none is to be
   * made, where the disk has little space left, or where the pair does not start so.
   */
  async make(spec: ContainerSpec, launch: RuntimeLaunch, ahead: boolean): Promise<Container | undefined> {
    const { processes, random = systemRandom, clock, maxMiB } = this.options;
    if (this.folder === undefined || !this.mayCopy(spec, launch)) return undefined;
    const set = this.setOf(keyOf(spec, launch));
    if (set.file !== undefined || set.isMade || set.offUntilMs > clock.monotonicMs()) return undefined;
    const { bavail, bsize } = await statfs(this.folder);
    const freeBytes = bavail * bsize - reserveBytes - this.promisedBytes;
    if (freeBytes < 2 * leastBytes || set.isMade) return undefined;
    const mostBytes = Math.min(maxMiB * MiB, Math.floor(freeBytes / 2));
    const file = join(this.folder, random.hex(8));
    const written = `${file}.new`;
    set.isMade = true;
    this.promisedBytes += 2 * mostBytes;
    try {
      await writeFile(written, '');
      await chmod(written, 0o666); // Sandboxes other than this one have no way to it.
      const bounds = { GPUWHISK_TEMPLATE_BYTES: String(mostBytes) };
      const env = { ...launch.env, GPUWHISK_SAVE_TEMPLATE: inside, ...bounds };
      const saving = withMore(launch, env, [{ source: written, target: inside, mode: 'rw' }]);
      const pair = await processes.launchContainer(spec, saving, { ahead });
      if (pair.unfit === undefined) await this.keep(set, spec, written, file);
      else await this.fail(set, spec, new Error(pair.unfit));
      return pair;
    } catch (error) {
      await this.fail(set, spec, error);
      return undefined;
    } finally {
      await rm(written, { force: true });
      set.isMade = false;
      this.promisedBytes -= 2 * mostBytes;
    }
  }

  /** Number and size of the templates, and of how pairs came to be. */
  show(registry: Registry): void {
    const { gauge, counter } = showMetricsIn(registry);
    gauge('gpuwhisk_pair_templates', 'Templates that pairs are copied from', () => this.standing().length);
    gauge('gpuwhisk_pair_templates_bytes', 'Size of the templates of pairs', () => this.size());
    const copies = 'Pairs that are copies of a template';
    counter('gpuwhisk_pair_copies_total', copies, () => this.copied);
    const imports = 'Pairs that imported modules of which templates are made, by the reason';
    const byReason = (): [Record<string, string>, number][] =>
      [...this.imported].map(([reason, count]) => [{ reason }, count]);
    counter('gpuwhisk_pair_imports_total', imports, byReason, ['reason']);
  }

  /** Removes all templates; pairs keep their memory. After the close of the factory. */
  async close(): Promise<void> {
    const { folder } = this;
    this.folder = undefined;
    if (folder !== undefined) await removeTree(folder);
  }

  // Modules of no namespace in particular are imported: copies have the same addresses and hash seeds.
  private mayCopy(spec: ContainerSpec, launch: RuntimeLaunch): boolean {
    const isPlain = spec.concurrency === 1 && spec.gpu === undefined && !spec.cuda && spec.training === undefined;
    const isPython = launch.traces === true && spec.kind.startsWith('python:');
    return this.folder !== undefined && isPlain && isPython && spec.imports.length > 0 && ownerOf(spec) !== undefined;
  }

  private setOf(key: string): ModuleSet {
    const set = this.sets.get(key) ?? { bytes: 0, usedMs: 0, failures: 0, offUntilMs: 0, isMade: false };
    this.sets.delete(key);
    this.sets.set(key, set);
    for (const [other, { file, isMade }] of this.sets) {
      if (this.sets.size <= maxSets) break;
      if (file === undefined && !isMade) this.sets.delete(other);
    }
    return set;
  }

  private count(reason: (typeof reasons)[number]): void {
    this.imported.set(reason, (this.imported.get(reason) ?? 0) + 1);
  }

  private standing(): ModuleSet[] {
    return [...this.sets.values()].filter(({ file }) => file !== undefined);
  }

  private size(): number {
    return this.standing().reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /** The template is a file that no sandbox has had, for writing or at all, and its pages count as the platform's. */
  private async keep(set: ModuleSet, spec: ContainerSpec, written: string, file: string): Promise<void> {
    const { maxMiB } = this.options;
    try {
      const { size } = await stat(written);
      if (size > maxMiB * MiB) throw new Error(`Its template has ${Math.ceil(size / MiB)} MiB of at most ${maxMiB}.`);
      await copyFile(written, file);
      await chmod(file, 0o444);
      Object.assign(set, { file, bytes: size, usedMs: this.options.clock.monotonicMs() });
      await this.trim(set);
    } catch (error) {
      await rm(file, { force: true });
      await this.fail(set, spec, error);
    }
  }

  /** Removes templates that have been unused longest, until the rest is within the bound. */
  private async trim(newest: ModuleSet): Promise<void> {
    const byUse = this.standing().sort((one, other) => one.usedMs - other.usedMs);
    for (const set of byUse.filter((one) => one !== newest)) {
      if (this.size() <= this.options.maxMiB * MiB) return;
      await this.drop(set);
    }
  }

  private async drop(set: ModuleSet): Promise<void> {
    const { file } = set;
    delete set.file;
    if (file !== undefined) await rm(file, { force: true });
  }

  private async fail(set: ModuleSet, { imports }: ContainerSpec, error: unknown): Promise<void> {
    const reason = (error as Error).message;
    this.options.logger?.warn(`Pairs with the modules ${imports.join(', ')} are not copied. ${reason}`);
    await this.drop(set);
    if (++set.failures < maxFailures) return;
    set.failures = 0;
    set.offUntilMs = this.options.clock.monotonicMs() + offMs;
  }
}

/** Everything that a copy's process depends on. */
function keyOf(spec: ContainerSpec, launch: RuntimeLaunch): string {
  const depends = { ...spec, memoryMiB: undefined, learned: spec.learned?.namespace };
  // Specs of one set may differ in the order of their properties.
  const all = [Object.entries(depends).sort(([one], [other]) => (one < other ? -1 : 1)), launch.command, launch.env];
  return createHash('sha256').update(JSON.stringify(all)).digest('hex');
}

function withMore(launch: RuntimeLaunch, env: Record<string, string>, binds: readonly Bind[]): RuntimeLaunch {
  return { ...launch, env, binds: [...launch.binds, ...binds] };
}

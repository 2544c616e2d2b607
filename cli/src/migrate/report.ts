import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import { objectsOf, textOf, valueIn } from './values.js';

/** Types of entities, in the order in which they are copied. */
const entityTypes = [
  'subject',
  'limits',
  'package',
  'action',
  'binding',
  'sequence',
  'trigger',
  'rule',
  'api',
  'activation',
] as const;

/** Type of a copied entity. */
export type EntityType = (typeof entityTypes)[number];

/** In a dry run `created` and `replaced` are intentions. */
type Outcome = 'created' | 'replaced' | 'equal' | 'failed';

interface Remark {
  type: EntityType | 'namespace';
  /** Full name, such as `ns/pkg/action`. */
  name: string;
  reason: string;
}

/** The outcome for every entity that was to be copied. */
export class Report {
  private readonly counts = new Map<EntityType, Record<Outcome, number>>();
  private readonly problems: Remark[] = [];
  private readonly notes: Remark[] = [];
  private stopped: string | undefined;

  constructor(private readonly dryRun: boolean) {}

  /** Number of entities whose outcome is known. */
  done = 0;

  add(type: EntityType, outcome: Exclude<Outcome, 'failed'>, count = 1): void {
    this.countsOf(type)[outcome] += count;
    this.done += count;
  }

  /** Reports an entity that could not be copied. */
  fail(type: EntityType, name: string, reason: string): void {
    this.countsOf(type).failed += 1;
    this.done += 1;
    this.problems.push({ type, name, reason });
  }

  /** Reports a part of a copied entity that could not be copied. */
  lack(type: EntityType, name: string, reason: string): void {
    this.problems.push({ type, name, reason });
  }

  /** A remark that the user must act on or know about. */
  note(type: Remark['type'], name: string, reason: string): void {
    this.notes.push({ type, name, reason });
  }

  /** Notes that the event source of a trigger is not copied. */
  noteFeed(trigger: string, annotations: JsonValue | undefined): void {
    const feed = valueIn(annotations, 'feed');
    if (typeof feed !== 'string') return;
    this.note('trigger', trigger, `its feed ${feed} has to be asked for events anew`);
  }

  /** Notes, once for a namespace, that encrypted parameters are copied unchanged: the target needs the key. */
  noteCiphers(name: string, parameters: JsonValue | undefined): void {
    const [namespace = ''] = name.split('/');
    for (const cipher of new Set(objectsOf(parameters).map(({ encryption }) => textOf(encryption)))) {
      if (cipher === '' || cipher === 'noop') continue;
      const reason = `has parameters encrypted with ${cipher}: the target needs the key (parameterStorage.keys)`;
      const told = this.notes.some((note) => note.name === namespace && note.reason === reason);
      if (!told) this.note('namespace', namespace, reason);
    }
  }

  /** Reports that the migration stopped early. */
  stop(reason: string): void {
    this.stopped = reason;
  }

  /** 0 if the target has everything (in a dry run: would have), else 1. */
  get exitCode(): 0 | 1 {
    return this.problems.length > 0 || this.stopped !== undefined ? 1 : 0;
  }

  toJson(): JsonObject {
    const remarks = (list: readonly Remark[]) => list.map((remark) => ({ ...remark }));
    return {
      dryRun: this.dryRun,
      complete: this.exitCode === 0,
      ...(this.stopped !== undefined && { stopped: this.stopped }),
      counts: Object.fromEntries(this.rows().map(([type, counts]) => [type, { ...counts }])),
      notCarried: remarks(this.problems),
      notes: remarks(this.notes),
    };
  }

  toText(): string {
    const lines = this.rows().map(([type, { created, replaced, equal, failed }]) => {
      const words = [
        [created, this.dryRun ? 'to create' : 'created'],
        [replaced, this.dryRun ? 'to replace' : 'replaced'],
        [equal, 'equal already'],
        [failed, 'not carried'],
      ] as const;
      const told = words.filter(([count]) => count > 0).map(([count, word]) => `${count} ${word}`);
      return `${`${type}:`.padEnd(12)}${told.join(', ')}`;
    });
    if (lines.length === 0)
      lines.push(this.stopped === undefined ? 'There is nothing to carry.' : 'Nothing was carried.');
    const list = (title: string, remarks: readonly Remark[]): void => {
      if (remarks.length > 0) lines.push('', title);
      for (const { type, name, reason } of remarks) lines.push(`  ${type} ${name}: ${reason}`);
    };
    list('Not carried:', this.problems);
    list('Note:', this.notes);
    if (this.stopped !== undefined) lines.push('', `Stopped: ${this.stopped}`, 'Run it again to go on.');
    return `${lines.join('\n')}\n`;
  }

  private rows(): [EntityType, Record<Outcome, number>][] {
    return entityTypes.flatMap((type) => {
      const counts = this.counts.get(type);
      return counts === undefined ? [] : [[type, counts] as [EntityType, Record<Outcome, number>]];
    });
  }

  private countsOf(type: EntityType): Record<Outcome, number> {
    const counts = this.counts.get(type) ?? { created: 0, replaced: 0, equal: 0, failed: 0 };
    this.counts.set(type, counts);
    return counts;
  }
}

const barWidth = 30;
const everyMs = 100;

/** Display of the progress of a long work. */
export interface Progress {
  /** Begins another part of the work, with its number of items (undefined if unknown). */
  begin(part: string, total: number | undefined): void;
  step(count?: number): void;
  /** Removes the display from the terminal. */
  end(): void;
}

/** A progress bar on a terminal; does nothing if `stream` is no terminal. */
export function createProgress(stream: NodeJS.WriteStream): Progress {
  if (stream.isTTY !== true) return { begin: () => undefined, step: () => undefined, end: () => undefined };
  let part = '';
  let total: number | undefined;
  let done = 0;
  let drawnMs = 0;
  const draw = (): void => {
    drawnMs = performance.now();
    const filled = total === undefined ? 0 : Math.round((barWidth * Math.min(done, total)) / Math.max(1, total));
    const bar = total === undefined ? '' : `[${'#'.repeat(filled)}${' '.repeat(barWidth - filled)}] `;
    stream.write(`\r\u001b[K${part.padEnd(12)}${bar}${done}${total === undefined ? '' : `/${total}`}`);
  };
  return {
    begin(name, count) {
      [part, total, done] = [name, count, 0];
      draw();
    },
    step(count = 1) {
      done += count;
      if (performance.now() - drawnMs >= everyMs) draw();
    },
    end: () => void stream.write('\r\u001b[K'),
  };
}

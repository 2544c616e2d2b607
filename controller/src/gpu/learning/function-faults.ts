// Versions of functions whose faults end the runs of others: they run alone for a day.
import { z } from 'zod';
import { keepNewest } from '@gpuwhisk/common/collections';
import type { NodeStatus } from '@gpuwhisk/common/gpu';
import type { SharedFault } from '@gpuwhisk/common/gpu-observations';
import type { Clock } from '@gpuwhisk/common/system/clock';

/** How long a version runs alone after its last fault, ms. */
const aloneForMs = 24 * 3_600_000;
/** Successful runs without other functions that clear a suspect. */
const clearingRuns = 5;
/** Faults of the same versions within so long count as one, ms: runs that are repeated may meet before all know of the fault. */
const sameWithinMs = 10_000;
/** Versions and faults that are remembered. */
const [maxMarks, maxFaults] = [1000, 1000];

/**
 * What faults tell of a version. `suspect`: it was one of several that ran, and MPS does not tell which has faulted. `cleared`: it
 * has run alone without a fault since. `faulting`: it was alone, or one of several for the second time within a day.
 */
const states = ['suspect', 'cleared', 'faulting'] as const;

const markSchema = z.object({
  ...{ function: z.string(), version: z.string(), state: z.enum(states) },
  ...{ at: z.number(), runsAlone: z.number().int().min(0) },
});

/** A version of a function that was there when a fault ended all clients of an MPS server. */
export interface FaultMark extends z.infer<typeof markSchema> {
  /** `/namespace/action`. */
  function: string;
  version: string;
  state: (typeof states)[number];
  /** The last such fault, epoch ms. */
  at: number;
  /** Successful runs without other functions since. */
  runsAlone: number;
}

/** Why a version runs alone, and until when at the latest, epoch ms. */
export interface RunsAlone {
  until: number;
  state: 'suspect' | 'faulting';
}

/** Finds out which versions of functions fault under MPS, by the faults that agents tell and by runs alone. */
export class FunctionFaults {
  private readonly marks = new Map<string, FaultMark>();
  /** Faults that were taken, by place and time. */
  private readonly taken = new Map<string, true>();
  /** The last fault of each set of versions, epoch ms. */
  private readonly lastOfSet = new Map<string, number>();

  /** `onChange`: called when something was learned. */
  constructor(
    private readonly clock: Pick<Clock, 'now'>,
    private readonly onChange: () => void,
  ) {}

  /** Takes the faults of an agent's row. */
  seen({ faults = [] }: Pick<NodeStatus, 'faults'>): void {
    for (const fault of faults) this.take(fault);
  }

  /** Why a version of a function must run alone now; undefined: it need not. */
  alone(name: string, version: string): RunsAlone | undefined {
    const mark = this.marks.get(keyOf(name, version));
    if (mark === undefined || mark.state === 'cleared') return undefined;
    const until = mark.at + aloneForMs;
    return until > this.clock.now() ? { until, state: mark.state } : undefined;
  }

  /** A run of a version beside no other function has succeeded. */
  ranAlone(name: string, version: string): void {
    const mark = this.marks.get(keyOf(name, version));
    if (mark?.state !== 'suspect') return;
    mark.runsAlone += 1;
    if (mark.runsAlone >= clearingRuns) mark.state = 'cleared';
    this.onChange();
  }

  /** The versions that run alone now. */
  all(): (Pick<FaultMark, 'function' | 'version'> & { alone: RunsAlone })[] {
    return [...this.marks.values()].flatMap((mark) => {
      const alone = this.alone(mark.function, mark.version);
      return alone === undefined ? [] : [{ function: mark.function, version: mark.version, alone }];
    });
  }

  /** Forgets a function; returns whether anything was known of it. */
  forget(name: string): boolean {
    const own = [...this.marks].filter(([, mark]) => mark.function === name);
    for (const [key] of own) this.marks.delete(key);
    if (own.length > 0) this.onChange();
    return own.length > 0;
  }

  text(): string {
    return JSON.stringify([...this.marks.values()]);
  }

  /** Takes what `text` gave; of a version that has changed since, the later fault counts. Throws RangeError. */
  restore(text: string): void {
    const parsed = z.array(markSchema).safeParse(JSON.parse(text));
    if (!parsed.success) throw new RangeError('these are no faults of functions');
    for (const mark of parsed.data) {
      const known = this.marks.get(keyOf(mark.function, mark.version));
      if ((known?.at ?? -Infinity) < mark.at) this.keep(mark);
    }
  }

  private take({ at, place, functions }: SharedFault): void {
    const id = `${place} ${at}`;
    if (this.taken.has(id) || at + aloneForMs <= this.clock.now()) return;
    keepNewest(this.taken, id, true, maxFaults);
    const set = functions.map(({ action, version }) => keyOf(action, version)).toSorted();
    const setKey = set.join('\n');
    const before = this.lastOfSet.get(setKey) ?? -Infinity;
    keepNewest(this.lastOfSet, setKey, Math.max(at, before), maxFaults);
    // A restarted controller has the marks, and sees the rows again.
    const isKnown = functions.every(({ action, version }) => (this.markAt(action, version, at)?.at ?? -Infinity) >= at);
    if (isKnown || (functions.length > 1 && Math.abs(at - before) < sameWithinMs)) return;
    const again = functions.filter(({ action, version }) => this.markAt(action, version, at) !== undefined);
    const isProven = functions.length === 1 || again.length > 0;
    // One that was there before explains the fault, so that the others are no suspects.
    for (const { action: name, version } of isProven && again.length > 0 ? again : functions) {
      this.keep({ function: name, version, state: isProven ? 'faulting' : 'suspect', at, runsAlone: 0 });
    }
    this.onChange();
  }

  /** The mark of a version with a fault in the day before `at`. */
  private markAt(name: string, version: string, at: number): FaultMark | undefined {
    const mark = this.marks.get(keyOf(name, version));
    return mark !== undefined && mark.at + aloneForMs > at ? mark : undefined;
  }

  private keep(mark: FaultMark): void {
    keepNewest(this.marks, keyOf(mark.function, mark.version), mark, maxMarks);
  }
}

const keyOf = (name: string, version: string): string => `${name} ${version}`;

// Runs under way on each GPU, and the neighbours that a run had.
import { keepNewest } from '@gpuwhisk/common/collections';
import type { ShareClass } from '@gpuwhisk/common/gpu';
import type { Task, WorkloadState } from '../../view/view.js';
import type { ObservedRun } from '../../view/decision.js';
import { jobId } from '../../share/quota-row.js';
import type { CoLocated, WorkloadFeatures } from '../../predict/slowdown-predictor.js';

/** A run on one GPU, or on several. */
export interface LoggedRun {
  task: Task;
  gpu: ObservedRun['gpu'];
  /** Ids of the other GPUs that it has. */
  alsoOn: readonly string[];
  /** Fraction, 0 < share ≤ 1. */
  share: number;
  /** Epoch ms. */
  startedAt: number;
  /** The same moment, monotonic ms. */
  startMs: number;
  /** Class of its process, percent of the SMs; absent if the run was held to less than its class. */
  shareClass?: ShareClass;
  /** It needed neither injection nor a cold start. */
  isWarm: boolean;
  /** The workloads on its GPU when it began; absent: there were none. */
  workloads?: readonly WorkloadState[];
  /** A process ran on its GPU that this log does not know. */
  hasUnknownNeighbours: boolean;
  /** Its share, or that of a neighbour, was moved while it ran. */
  hasMovedShares?: boolean;
  /** It only measures: neither its time nor its effect on neighbours says anything about requests. */
  isSample?: boolean;
}

/** One that runs. */
interface Entry {
  run: LoggedRun;
  /** By function and share, how long those were beside it that have ended, ms; of several at once their sum. */
  besideMs: Map<string, { task: Task; share: number; ms: number }>;
}

/** Runs that are under way, beyond what one scheduler sends out. */
const maxRunning = 10_000;
/** Functions and shares that are told apart beside one run; a run with more counts as having unknown neighbours. */
const maxKinds = 256;

/** Which runs overlapped on a GPU, and for how long. Memory is bounded by the number of runs under way. */
export class RunLog {
  private readonly running = new Map<string, Entry>();
  private readonly byPlace = new Map<string, Set<Entry>>();

  /** A run begins. Of too many the oldest is forgotten. */
  began(id: string, run: LoggedRun): void {
    this.dropped(id);
    const entry = { run: { ...run }, besideMs: new Map() };
    for (const place of placesOf(run)) {
      const there = this.byPlace.get(place);
      if (there === undefined) this.byPlace.set(place, new Set([entry]));
      else there.add(entry);
    }
    keepNewest(this.running, id, entry, maxRunning, (oldest) => this.lost(oldest));
  }

  get(id: string): LoggedRun | undefined {
    return this.running.get(id)?.run;
  }

  /** What runs on a GPU. */
  on(gpu: string): readonly Pick<LoggedRun, 'task' | 'share'>[] {
    return Array.from(this.byPlace.get(gpu) ?? [], ({ run }) => run);
  }

  /** It never came to run. */
  dropped(id: string): void {
    const entry = this.running.get(id);
    if (entry !== undefined) this.remove(id, entry);
  }

  /** The end of a run is not known, so that it may or may not have overlapped with its neighbours. */
  lost(id: string): void {
    const entry = this.running.get(id);
    if (entry === undefined) return;
    this.remove(id, entry);
    for (const { run } of this.neighbours(entry)) run.hasUnknownNeighbours = true;
  }

  /** Shares are moved on a GPU. */
  moved(gpu: string): void {
    for (const { run } of this.byPlace.get(gpu) ?? []) run.hasMovedShares = true;
  }

  /** Forgets all that runs. */
  clear(): void {
    this.running.clear();
    this.byPlace.clear();
  }

  /** A run has ended: how long it took, and who ran beside it for which part of its time. Undefined: nothing is known of it. */
  end(id: string, endMs: number): (LoggedRun & ObservedRun) | undefined {
    const entry = this.running.get(id);
    if (entry === undefined) return undefined;
    this.remove(id, entry);
    for (const other of this.neighbours(entry)) {
      if (entry.run.isSample) other.run.hasUnknownNeighbours = true;
      if (other.run.isSample) entry.run.hasUnknownNeighbours = true;
      const ms = endMs - Math.max(entry.run.startMs, other.run.startMs);
      note(other, entry, ms);
      note(entry, other, ms);
    }
    const ranMs = endMs - entry.run.startMs;
    const beside = Array.from(entry.besideMs.values(), ({ task, share, ms }) => ({ task, share, part: ms / ranMs }));
    return { ...entry.run, ranMs, endedAt: entry.run.startedAt + ranMs, beside };
  }

  private remove(id: string, entry: Entry): void {
    this.running.delete(id);
    for (const place of placesOf(entry.run)) {
      const there = this.byPlace.get(place);
      there?.delete(entry);
      if (there?.size === 0) this.byPlace.delete(place);
    }
  }

  /** Those that run on a GPU of a run that was removed, each once. */
  private neighbours({ run }: Entry): Set<Entry> {
    return new Set(placesOf(run).flatMap((place) => [...(this.byPlace.get(place) ?? [])]));
  }
}

/** `other` was beside `entry` for so long. */
function note({ run, besideMs }: Entry, { run: { task, share } }: Entry, ms: number): void {
  if (!(ms > 0)) return;
  const kind = `${jobId(task)} ${share}`;
  const known = besideMs.get(kind);
  if (known !== undefined) known.ms += ms;
  else if (besideMs.size < maxKinds) besideMs.set(kind, { task, share, ms });
  else run.hasUnknownNeighbours = true;
}

const placesOf = ({ gpu, alsoOn }: LoggedRun): string[] => [gpu.id, ...alsoOn];

/** A neighbour that was there all the time: one run, or one after the other of the same function at the same share. */
export type Neighbour = Pick<ObservedRun['beside'][number], 'task' | 'share'>;

/** Part of a run in which neighbours may be missing, or others be there, all of them together. */
const tolerance = 0.1;

/** Those who were beside a run from its beginning to its end; undefined where that changed meanwhile. */
export function steadyNeighbours({ beside }: Pick<ObservedRun, 'beside'>): Neighbour[] | undefined {
  const kinds = new Map<string, Neighbour & { parts: number }>();
  for (const { task, share, part } of beside) {
    const kind = `${jobId(task)} ${share}`;
    const known = kinds.get(kind);
    if (known === undefined) kinds.set(kind, { task, share, parts: part });
    else known.parts += part;
  }
  const company: Neighbour[] = [];
  let off = 0;
  for (const { task, share, parts } of kinds.values()) {
    const count = Math.round(parts);
    off += Math.abs(parts - count);
    if (off > tolerance) return undefined;
    for (let one = 0; one < count; one += 1) company.push({ task, share });
  }
  return company;
}

/**
 * Those who were beside a run as if each had been there all the time, using as much less of the GPU as it was there for
 * less: what they used on average. `unseen` stands for functions without a profile.
 */
export function averageNeighbours({ beside }: Pick<ObservedRun, 'beside'>, unseen: WorkloadFeatures): CoLocated[] {
  return beside.flatMap(({ task, share, part }) => {
    const { smUtil, dramUtil, l2Util } = task.features ?? unseen;
    // One entry may be of several at once.
    const count = Math.ceil(part);
    const use = (smUtil > share ? share / smUtil : 1) * (part / count);
    const features = {
      smUtil: smUtil * use,
      ...(dramUtil !== undefined && { dramUtil: dramUtil * use }),
      ...(l2Util !== undefined && { l2Util: l2Util * use }),
    };
    return Array.from({ length: count }, () => ({ features, share: 1 }));
  });
}

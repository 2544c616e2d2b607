// Trials of functions alone, by batch and share class, by which their request and limit are found (Dilu, section 3.2).
import { keepNewest } from '@gpuwhisk/common/collections';
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import type { WhiskAction } from '@gpuwhisk/common/entities/action';
import { maxBatch, readGpuAnnotation } from '@gpuwhisk/common/entities/gpu-annotation';
import { parameterValue } from '@gpuwhisk/common/entities/parameters';
import { shareClasses } from '@gpuwhisk/common/gpu';
import type { GpuAnnotation, GpuKind } from '@gpuwhisk/common/gpu';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import { diluProfiler, mostDiluTrials } from '@gpuwhisk/gpu/algorithms/dilu/profile';
import { timeOf, trialAt } from '@gpuwhisk/gpu/stages/profile/trials';
import type { ProfileGoal, ProfileStep, ShareProfile, Trial, TrialSpace } from '@gpuwhisk/gpu/stages/profile/trials';

/** Trials of a function on a kind of GPU, of one major version of the driver. */
export interface KindTrials extends GpuKind {
  driverMajor: number;
  trials: Trial[];
}

/** A function in one version whose request and limit are wanted. */
export interface WantedFunction {
  /** `/namespace/action`. */
  function: string;
  version: string;
  goal: ProfileGoal;
  /** Requests that may run as one, at most; absent: 1. */
  batch?: number;
}

/** A wanted function with its trials. */
export interface ProfiledFunction extends WantedFunction {
  isCancelled?: boolean;
  /** Why its sample must not be run; absent: it may. */
  problem?: string;
  kinds: KindTrials[];
}

/** A change that every controller carries out; the leader stores the result. */
type TrialChange =
  | { what: 'want'; wanted: WantedFunction; at: number }
  | { what: 'cancel' | 'drop'; function: string }
  | { what: 'problem'; function: string; version: string; problem: string | null }
  | { what: 'trials'; function: string; version: string; kind: KindTrials };

/** Dependencies of FunctionTrials. */
interface FunctionTrialsParts {
  /** Stores a function's trials, or deletes them. */
  keep(name: string, text: (() => string) | undefined): void;
  /** Tells other controllers. */
  tell(change: JsonObject): void;
  /** A version was deployed at `at`, epoch ms. */
  deployed(wanted: WantedFunction, at: number): void;
  /** A search has ended on a kind of GPU, or (undefined) its result is void. */
  found(wanted: WantedFunction, kind: GpuKind, shares: ShareProfile | undefined): void;
}

/** Most functions; beyond this bound the one that was wanted first is removed. */
const maxFunctions = 1000;
/** Most kinds of GPU of a function; beyond this bound the oldest is removed. */
const maxKinds = 16;

/**
 * Batches and shares of a function's trials: batches double up to the largest one that its annotation allows, and shares
 * reach processes by classes. A training is measured by its step, without batches.
 */
function spaceOf({ goal, batch = 1 }: Pick<WantedFunction, 'goal' | 'batch'>): TrialSpace {
  const batches = [1];
  for (let size = 2; goal.sloMs !== undefined && size <= batch; size *= 2) batches.push(size);
  return { batches, shares: shareClasses };
}

/** The most trials that the search for a function's request and limit takes. */
export function mostTrialsOf(wanted: Pick<WantedFunction, 'goal' | 'batch'>): number {
  const most = mostDiluTrials(wanted.goal, spaceOf(wanted));
  return wanted.goal.sloMs === undefined ? most : most + 1;
}

/** What to profile of an action, or why its request and limit are not searched for. */
export function wantedOf({ namespace, name, version, annotations }: WhiskAction): WantedFunction | string {
  const value = parameterValue(annotations, 'gpu');
  if (value === undefined) return 'the action needs no GPU';
  let need: GpuAnnotation;
  try {
    need = readGpuAnnotation(value);
  } catch (error) {
    return `annotation 'gpu' is invalid: ${(error as Error).message}`;
  }
  if (need.sample === undefined) return "annotation 'gpu' has no sample";
  if (need.sloMs === undefined && need.class !== 'training') {
    return "annotation 'gpu' has neither sloMs nor class training";
  }
  if (parameterValue(annotations, 'idempotent') !== true) return "annotation 'idempotent' is not true";
  const goal = need.class === 'training' ? {} : { sloMs: need.sloMs };
  const wanted = { function: `/${namespace}/${name}`, version, goal };
  return need.batch > 1 ? { ...wanted, batch: need.batch } : wanted;
}

/** Keeps trials by function, on every controller, and what they amount to. */
export class FunctionTrials {
  private readonly functions = new Map<string, ProfiledFunction>();
  private stopped: (name: string) => void = () => undefined;

  constructor(private readonly parts: FunctionTrialsParts) {}

  /** Sets the listener for functions whose trials must end at once. */
  whenStopped(stopped: (name: string) => void): void {
    this.stopped = stopped;
  }

  /** An action was written at `at`, epoch ms: its trials begin, or those of its earlier version are dropped. */
  written(action: WhiskAction, at: number): void {
    const wanted = wantedOf(action);
    if (typeof wanted === 'string') this.deleted(`/${action.namespace}/${action.name}`);
    else this.want(wanted, at);
  }

  /** An action was deleted. */
  deleted(name: string): void {
    if (this.functions.has(name)) this.change({ what: 'drop', function: name });
  }

  /** Begins a function's trials, goes on with cancelled ones, and repeats those without a result. */
  want(wanted: WantedFunction, at: number): void {
    this.change({ what: 'want', wanted, at });
  }

  /** Ends a function's trials until they are wanted again. Returns whether there were any. */
  cancel(name: string): boolean {
    const isKnown = this.functions.has(name);
    if (isKnown) this.change({ what: 'cancel', function: name });
    return isKnown;
  }

  /** Notes why a function's sample must not be run, or (undefined) that it may. */
  noteProblem({ function: name, version }: WantedFunction, problem: string | undefined): void {
    if (this.of(name)?.problem !== problem) {
      this.change({ what: 'problem', function: name, version, problem: problem ?? null });
    }
  }

  /** Adds a trial. Trials before an update of the driver to another major version are dropped. */
  add({ function: name, version }: WantedFunction, kind: GpuKind, driverMajor: number, trial: Trial): void {
    const { gpuType, mode } = kind;
    const known = this.of(name)?.kinds.find(isOf(kind));
    const trials = [...trialsWith(known, driverMajor), trial];
    const latest = Math.max(driverMajor, known?.driverMajor ?? 0);
    this.change({ what: 'trials', function: name, version, kind: { gpuType, mode, driverMajor: latest, trials } });
  }

  of(name: string): ProfiledFunction | undefined {
    return this.functions.get(name);
  }

  list(): Iterable<ProfiledFunction> {
    return this.functions.values();
  }

  /** A change from another controller. */
  changedElsewhere(change: JsonValue): void {
    if (changeSchema.safeParse(change).success) this.apply(change as unknown as TrialChange);
  }

  /** Takes stored trials. Throws RangeError. */
  restore(text: string): void {
    const stored = JSON.parse(text) as ProfiledFunction;
    if (!storedSchema.safeParse(stored).success) throw new RangeError('invalid trials of a function');
    const kinds = stored.kinds.map(readKind);
    this.insert({ ...stored, kinds });
    for (const kind of kinds) this.tellResult(stored, kind);
  }

  private change(change: TrialChange): void {
    this.apply(change);
    this.parts.tell(change as unknown as JsonObject);
  }

  private apply(change: TrialChange): void {
    if (change.what === 'want') return this.applyWant(change.wanted, change.at);
    const known = this.functions.get(change.function);
    if (known === undefined || ('version' in change && change.version !== known.version)) return;
    if (change.what === 'drop') {
      this.remove(known.function);
      return;
    }
    if (change.what === 'cancel') known.isCancelled = true;
    else if (change.what === 'problem') {
      if (change.problem === null) delete known.problem;
      else known.problem = change.problem;
    } else if (change.what === 'trials') {
      const kind = readKind(change.kind);
      known.kinds = [...known.kinds.filter((one) => !isOf(kind)(one)), kind].slice(-maxKinds);
      this.tellResult(known, kind);
    }
    this.keep(known);
    if (change.what === 'cancel') this.stopped(known.function);
  }

  private applyWant(wanted: WantedFunction, at: number): void {
    this.parts.deployed(wanted, at);
    const known = this.functions.get(wanted.function);
    const { function: name, version, goal, batch } = wanted;
    const isSame = known?.version === version && isDeepStrictEqual([known.goal, known.batch], [goal, batch]);
    if (known !== undefined && !isSame) this.remove(name);
    const kinds = isSame ? known.kinds.filter(({ trials }) => !('failed' in stepOf(wanted, trials))) : [];
    const fresh = { function: name, version, goal, ...(batch !== undefined && { batch }), kinds };
    this.insert(fresh);
    this.keep(fresh);
  }

  private insert(one: ProfiledFunction): void {
    keepNewest(this.functions, one.function, one, maxFunctions, (oldest) => this.remove(oldest));
  }

  private remove(name: string): void {
    const known = this.functions.get(name);
    if (known === undefined) return;
    this.functions.delete(name);
    for (const kind of known.kinds) this.parts.found(known, kind, undefined);
    this.parts.keep(name, undefined);
    this.stopped(name);
  }

  private keep(one: ProfiledFunction): void {
    this.parts.keep(one.function, () => JSON.stringify(one));
  }

  private tellResult(wanted: WantedFunction, kind: KindTrials): void {
    const step = stepOf(wanted, kind.trials);
    this.parts.found(wanted, kind, 'profile' in step ? step.profile : undefined);
  }
}

/** The next trial of a function on a kind of GPU with a driver, or its result. */
export function nextStep(one: ProfiledFunction, kind: GpuKind, driverMajor: number): ProfileStep {
  return stepOf(one, trialsWith(one.kinds.find(isOf(kind)), driverMajor));
}

/** Trials that count with a driver: nodes may have several drivers, of which the latest does. */
function trialsWith(known: KindTrials | undefined, driverMajor: number): Trial[] {
  return known !== undefined && driverMajor <= known.driverMajor ? known.trials : [];
}

/** The next trial of a function after these, or its result. */
export function stepOf(wanted: Pick<WantedFunction, 'goal' | 'batch'>, trials: readonly Trial[]): ProfileStep {
  const known = steps.get(trials);
  if (known !== undefined) return known;
  const step = withLimit(wanted.goal, diluProfiler(wanted.goal, spaceOf(wanted), trials), trials);
  // Without a trial the step depends on the goal alone.
  if (trials.length > 0) steps.set(trials, step);
  return step;
}

/**
 * The search for request and limit of an SLO does not measure the limit, which is twice the request. One more trial, of the
 * profile's batch at the greatest class up to the limit, tells what an instance serves there.
 */
function withLimit({ sloMs }: ProfileGoal, step: ProfileStep, trials: readonly Trial[]): ProfileStep {
  if (!('profile' in step)) return step;
  const { profile } = step;
  const { request, limit, batch } = profile;
  const share = shareClasses.findLast((one) => one * 10 <= limit) ?? 100;
  const trial = trialAt(trials, { batch, share });
  if (trial === undefined) return sloMs === undefined || share * 10 <= request ? step : { next: { batch, share } };
  const limitMs = timeOf(trial);
  return limitMs === undefined || limitMs === Infinity ? step : { profile: { ...profile, limitMs } };
}

/** Steps by the list of a function's trials, which is replaced by each trial. */
const steps = new WeakMap<readonly Trial[], ProfileStep>();

const isOf =
  ({ gpuType, mode }: GpuKind) =>
  (one: GpuKind): boolean =>
    one.gpuType === gpuType && one.mode === mode;

const text = z.string();
const kindSchema = z.object({
  ...{ gpuType: text, mode: text, driverMajor: z.int() },
  trials: z.array(z.object({ batch: z.int(), share: z.number() })),
});
const wantedSchema = z.object({
  ...{ function: text, version: text, batch: z.int().min(1).max(maxBatch).optional() },
  goal: z.object({ sloMs: z.number().positive().optional() }),
});
const storedSchema = wantedSchema.extend({ kinds: z.array(kindSchema) });
const ofVersion = { function: text, version: text };
const changeSchema = z.discriminatedUnion('what', [
  z.object({ what: z.literal('want'), wanted: wantedSchema, at: z.number() }),
  z.object({ what: z.enum(['cancel', 'drop']), function: text }),
  z.object({ what: z.literal('problem'), ...ofVersion, problem: text.nullable() }),
  z.object({ what: z.literal('trials'), ...ofVersion, kind: kindSchema }),
]);

/** A kind as JSON has it: the time of an overlong trial, Infinity, is null there. */
function readKind({ gpuType, mode, driverMajor, trials }: KindTrials): KindTrials {
  const read = trials.map((trial) => ((trial.ms as unknown) === null ? { ...trial, ms: Infinity } : trial));
  return { gpuType, mode, driverMajor, trials: read };
}

// The stage `profile`: its interface, and the judgement of a function's trials.

/** A size of batch and a share of the SMs, percent, to run a function with, alone on a device. */
export interface TrialPoint {
  batch: number;
  share: number;
}

/** A trial that has ended. */
export interface Trial extends TrialPoint {
  /** Time of a batch, of a training: of a step, ms; Infinity: longer than was waited for. Absent: the trial failed. */
  ms?: number;
  /** Reason of the failure, such as exhausted memory. */
  failure?: string;
  /** Device memory that the process held, MiB; absent: not known. */
  memoryMiB?: number;
}

/** The sizes of batch and the shares that trials can have, each rising; the last share is the greatest. */
export interface TrialSpace {
  batches: readonly number[];
  shares: readonly number[];
}

/** What a profile is to keep: results within `sloMs` after acceptance, or, without it, throughput near that alone. */
export interface ProfileGoal {
  sloMs?: number;
}

/** Request and limit of a function on a kind of GPU, thousandths of the SMs, and the batch that they hold for. */
export interface ShareProfile {
  request: number;
  limit: number;
  batch: number;
  /** Time of a batch with the request, ms. */
  ms: number;
  /** Time of a batch with the limit, or with the greatest share below it that was measured, ms; absent: not measured. */
  limitMs?: number;
  /** Most device memory that a trial held, MiB; absent: not known. */
  memoryMiB?: number;
  /** Whether the request keeps the goal. If it does not, no trial did, and the request is the whole GPU. */
  keepsGoal: boolean;
  /** Why the search ended there, and what was odd about its trials. */
  reason: string;
}

/** The next trial, the finished profile, or why there is none. */
export type ProfileStep = { next: TrialPoint } | { profile: ShareProfile } | { failed: string };

/**
 * A search for a function's profile. Asked after each trial with all trials so far, in any order: equal trials give equal
 * steps, so that a search goes on where a crash has ended it. The number of trials is bounded by the space.
 */
export type Profiler = (goal: ProfileGoal, space: TrialSpace, trials: readonly Trial[]) => ProfileStep;

/** Values that differ by no more are equal. */
export const tolerance = 0.02;
/** Part of the throughput alone that the request of a training keeps; its limit keeps all of it. */
const requestPart = 0.8;
/** Part of the SLO for execution; the rest is for queueing, start and transfer. */
const executionPart = 0.5;
/** Longer than any run may take, ms. */
const mostMs = 7 * 24 * 3_600_000;
/** Times that grow with the share by more than this are named in the reason. */
const oddGrowth = 0.1;

/** The time of a trial, ms; Infinity if it was too long, undefined if it failed. */
export function timeOf({ ms }: Trial): number | undefined {
  if (ms === Infinity) return ms;
  return ms !== undefined && ms > 0 && ms <= mostMs ? ms : undefined;
}

/** Why a trial has no time. */
export function failureOf({ batch, share, ms, failure }: Trial): string {
  const reason = failure ?? (ms === undefined ? 'it ended without a time' : `a time of ${ms} ms`);
  return `the trial with batch ${batch} at ${share} % failed: ${reason}`;
}

/** The trial at a point; the last one where it was repeated. */
export function trialAt(trials: readonly Trial[], { batch, share }: TrialPoint): Trial | undefined {
  return trials.findLast((one) => one.batch === batch && one.share === share);
}

/** Longest execution that keeps an SLO, ms. */
export function executionMs(sloMs: number): number {
  return sloMs * executionPart;
}

/** Throughput for each percent of the SMs, requests per ms (Dilu's throughput efficacy, section 3.2). */
export function efficacyOf({ batch, share }: TrialPoint, ms: number): number {
  return batch / (ms * share);
}

/** A trial with its time and its throughput efficacy. */
export interface RatedTrial extends TrialPoint {
  ms: number;
  efficacy: number;
}

/** The trials that kept an SLO. */
export function ratedTrials(sloMs: number, trials: readonly Trial[]): RatedTrial[] {
  const most = executionMs(sloMs);
  return trials.flatMap((trial) => {
    const { batch, share } = trial;
    const ms = timeOf(trial);
    return ms === undefined || ms > most ? [] : [{ batch, share, ms, efficacy: efficacyOf(trial, ms) }];
  });
}

/** The trial of most efficacy; of equal ones the one with the smaller share. */
export function mostEfficientOf(rated: readonly RatedTrial[]): RatedTrial | undefined {
  const [first, ...others] = rated.toSorted((one, other) => one.share - other.share);
  return first && others.reduce((best, one) => (one.efficacy > best.efficacy ? one : best), first);
}

/** The profile of a function with an SLO: the limit is twice the request, and at most the whole GPU. */
export function latencyProfile(
  sloMs: number,
  chosen: RatedTrial | undefined,
  trials: readonly Trial[],
  reason: string,
): ProfileStep {
  if (chosen !== undefined) {
    const request = chosen.share * 10;
    return profileOf({ ...chosen, request, limit: Math.min(1000, 2 * request) }, trials, true, reason);
  }
  const finite = trials.filter((one) => Number.isFinite(timeOf(one)));
  const fastest = finite.sort((one, other) => (one.ms ?? Infinity) - (other.ms ?? Infinity))[0];
  if (fastest?.ms === undefined) {
    const overlong = trials.some(({ ms }) => ms === Infinity) ? ['the trials took too long'] : [];
    return { failed: [reason, ...overlong, ...failures(trials, reason)].join('; ') };
  }
  const { batch, share, ms } = fastest;
  const closest = `no trial ran within ${executionMs(sloMs)} ms; the fastest took ${ms.toFixed(1)} ms at ${share} %`;
  return profileOf({ request: 1000, limit: 1000, batch, ms }, trials, false, `${reason}; ${closest}`);
}

/** A share of a training, percent, with its time; or the trial that is needed to find it. */
type FoundShare = { next: TrialPoint } | { share: number; ms: number };

/**
 * The profile of a function without an SLO, from a search for the smallest share with at least a part of the throughput
 * at the greatest share.
 */
export function throughputProfile(
  { batches: [batch = 1], shares }: TrialSpace,
  trials: readonly Trial[],
  smallest: (part: number, from: number, wholeMs: number) => FoundShare,
): ProfileStep {
  const whole = { batch, share: shares.at(-1) ?? 100 };
  const trial = trialAt(trials, whole);
  if (trial === undefined) return { next: whole };
  const wholeMs = timeOf(trial);
  if (wholeMs === undefined) return { failed: failureOf(trial) };
  if (wholeMs === Infinity) return { failed: `a step takes too long at ${whole.share} %` };
  const request = smallest(requestPart, 0, wholeMs);
  if ('next' in request) return request;
  const limit = smallest(1, request.share, wholeMs);
  if ('next' in limit) return limit;
  const reason = `${requestPart * 100} % of the throughput at ${request.share} %, all of it at ${limit.share} %`;
  const { share, ms } = request;
  return profileOf({ request: share * 10, limit: limit.share * 10, batch, ms }, trials, true, reason);
}

/** Whether a trial has at least a part of the throughput that takes `wholeMs`; failed trials have none. */
export function keepsPart(trial: Trial, part: number, wholeMs: number): boolean {
  return wholeMs / (timeOf(trial) ?? Infinity) >= part - tolerance;
}

function profileOf(
  { request, limit, batch, ms }: Pick<ShareProfile, 'request' | 'limit' | 'batch' | 'ms'>,
  trials: readonly Trial[],
  keepsGoal: boolean,
  reason: string,
): ProfileStep {
  const memoryMiB = Math.max(...trials.map((trial) => trial.memoryMiB ?? 0));
  const text = [reason, ...failures(trials, reason), ...growths(trials)].join('; ');
  const profile = { request, limit, batch, ms, keepsGoal, reason: text };
  return { profile: { ...profile, ...(memoryMiB > 0 && { memoryMiB }) } };
}

/** The first failure and the number of others; none if `reason` names it already. */
function failures(trials: readonly Trial[], reason: string): string[] {
  const [first, ...others] = trials.filter((trial) => timeOf(trial) === undefined).map(failureOf);
  if (first === undefined || reason.startsWith(first)) return [];
  return [others.length === 0 ? first : `${first} (and ${others.length} more)`];
}

/** Times that grow with the share, in words: the greatest growth of each size of batch. */
function growths(trials: readonly Trial[]): string[] {
  const batches = [...new Set(trials.map(({ batch }) => batch))];
  return batches.flatMap((batch) => {
    const rising = trials
      .filter((one) => one.batch === batch && Number.isFinite(timeOf(one)))
      .sort((one, other) => one.share - other.share);
    const grown = rising.slice(1).flatMap((later, at) => {
      const before = rising[at];
      const [beforeMs, laterMs] = [before?.ms, later.ms];
      if (before === undefined || beforeMs === undefined || laterMs === undefined) return [];
      return [{ before, beforeMs, later, laterMs, growth: laterMs / beforeMs - 1 }];
    });
    const most = grown.sort((one, other) => other.growth - one.growth)[0];
    if (most === undefined || most.growth <= oddGrowth) return [];
    const { before, beforeMs, later, laterMs } = most;
    const text = `${beforeMs.toFixed(1)} ms at ${before.share} %, ${laterMs.toFixed(1)} ms at ${later.share} %`;
    return [`with batch ${batch} the time grows with the share: ${text}`];
  });
}

// A measured world's truth as the simulator asks for it: answers for any number of processes at any share, kept and counted.
import type { GpuTruth, TruthClient } from '@gpuwhisk/gpu/simulate/replay';
import { computeSlicesOf } from '@gpuwhisk/gpu/stages/geometry/mig-profiles';
import { meanOf } from '@gpuwhisk/bench/statistics';
import type { Mode } from '../world/sets.js';
import type { Answer, Asked, Bracket } from '../world/truth.js';

/** How many processes beside others were asked about, and on what the answers rest. */
export interface AnswerCounts {
  asked: number;
  /** Answered by a model. */
  extrapolated: number;
  /** In sets with more processes than any measured one. */
  beyond: number;
  /** With quotas that overlap in part. */
  partial: number;
}

/** Dependencies of a truth. */
export interface WorldTruthParts {
  answers: (members: readonly Asked[], bracket?: Bracket) => Answer[];
  mode: Mode;
  hasQuotas: boolean;
  /** The least share that a workload was measured alone at. */
  leastShareOf(workload: string): number;
  /** Processes of the largest measured set. */
  largest: number;
  noise: number;
  bracket: Bracket;
}

/** Compute slices of a whole A100. */
const allSlices = 7;
/** A share within this factor of the time on the whole device fills what the workload can use. */
const saturated = 1.1;

/** What is known of a set of processes, in the order of its key. */
interface SetAnswer {
  slowdowns: readonly number[];
  extrapolated: number;
}

/**
 * The truth of one draw. The same set has the same answer in any order. Of a set that is larger than any measured one, groups of the largest
 * measured number take turns: each process has the mean slowdown of its groups, times the number of
 * processes over that of a group. A share below the smallest measured one stretches in proportion. Where quotas were not measured
 * beside others, those that add up to at most 1 cost the time alone at the share, and others the greater of that and of the contention
 * with the whole device for each.
 */
export function countedTruth(parts: WorldTruthParts): GpuTruth & { counts: AnswerCounts } {
  const { answers, mode, hasQuotas, leastShareOf, largest, noise, bracket } = parts;
  const counts: AnswerCounts = { asked: 0, extrapolated: 0, beyond: 0, partial: 0 };
  const known = new Map<string, SetAnswer>();
  const alone = new Map<string, { slowdown: number; extrapolated: boolean }>();

  /** Time alone at a share over that on the whole device. */
  function aloneAt(workload: string, share: number): { slowdown: number; extrapolated: boolean } {
    const key = `${workload} ${share}`;
    let found = alone.get(key);
    if (found === undefined) alone.set(key, (found = askAlone(workload, share)));
    return found;
  }

  function askAlone(workload: string, share: number): { slowdown: number; extrapolated: boolean } {
    if (share === 1 || mode === 'unstated' || mode === 'timeslice') return { slowdown: 1, extrapolated: false };
    const least = leastShareOf(workload);
    const asked = Math.max(share, least);
    const [answer] = answers([{ workload, share: asked }]);
    if (answer === undefined) throw new Error('a truth answers each process that it is asked about');
    return {
      slowdown: Math.max(1, answer.slowdown) * (asked / share),
      extrapolated: answer.extrapolated || share < least,
    };
  }

  function ask(members: readonly Asked[]): SetAnswer {
    const sum = members.reduce((total, { share }) => total + share, 0);
    if (mode === 'mig' && sum <= 1 + 1e-9) {
      const each = members.map(({ workload, share }) => aloneAt(workload, share));
      return { slowdowns: each.map(({ slowdown }) => slowdown), extrapolated: members.length };
    }
    if (hasQuotas) {
      const raised = members.map(({ workload, share }) => ({
        workload,
        share: Math.max(share, leastShareOf(workload)),
      }));
      const found = answers(raised, bracket);
      return {
        slowdowns: found.map(({ slowdown }, at) => slowdown * ((raised[at]?.share ?? 1) / (members[at]?.share ?? 1))),
        extrapolated: found.filter(({ extrapolated }) => extrapolated).length,
      };
    }
    const whole = answers(members.map(({ workload }) => ({ workload, share: 1 })));
    return {
      slowdowns: whole.map(({ slowdown }, at) => {
        const { workload = '', share = 1 } = members[at] ?? {};
        return Math.max(slowdown, aloneAt(workload, share).slowdown);
      }),
      extrapolated: whole.filter(({ extrapolated }, at) => extrapolated || (members[at]?.share ?? 1) < 1).length,
    };
  }

  /**
   * Of processes in one slice of a device, which is `part` of its compute slices. Throws RangeError for one that was not measured there, as
   * it did not fit.
   */
  function inSlice(members: readonly Asked[], part: number): SetAnswer {
    const found = answers(members.map(({ workload }) => ({ workload, share: part })));
    return {
      slowdowns: found.map(({ slowdown }) => slowdown),
      extrapolated: found.filter(({ extrapolated }) => extrapolated).length,
    };
  }

  function answerOf(members: readonly Asked[], part: number | undefined): SetAnswer {
    const within = (some: readonly Asked[]): SetAnswer => {
      if (part !== undefined) return inSlice(some, part);
      const [only] = some;
      if (only === undefined || some.length > 1) return ask(some);
      const { slowdown, extrapolated } = aloneAt(only.workload, only.share);
      return { slowdowns: [slowdown], extrapolated: extrapolated ? 1 : 0 };
    };
    if (members.length <= largest) return within(members);
    const slowdowns = members.map((own, at) => {
      const others = members.filter((_, other) => other !== at);
      const groups = others.map((_, from) =>
        Array.from({ length: largest - 1 }, (__, step) => others[(from + step) % others.length] as Asked),
      );
      return (members.length / largest) * meanOf(groups.map((group) => within([own, ...group]).slowdowns[0] as number));
    });
    return { slowdowns, extrapolated: members.length };
  }

  return {
    noise,
    counts,
    used: (clients, gpu) => {
      const part = sliceOf(gpu?.gpuType) ?? 1;
      const sum = clients.reduce((total, { workload, share }) => total + Math.min(share * part, fillOf(workload)), 0);
      return Math.min(1, sum / part);
    },
    slowdowns(clients, gpu) {
      if (clients.length === 0) return new Float64Array();
      const part = sliceOf(gpu?.gpuType);
      const order = clients.map((_, at) => at).sort((a, b) => compare(clients[a], clients[b]));
      const members = order.map((at): Asked => {
        const { workload, share } = clients[at] as TruthClient;
        return { workload, share: Math.min(1, share) };
      });
      const key = `${part ?? ''};${members.map(({ workload, share }) => `${workload}@${share}`).join(';')}`;
      let answer = known.get(key);
      if (answer === undefined) {
        if (known.size >= mostKept) known.clear();
        known.set(key, (answer = answerOf(members, part)));
      }
      if (clients.length > 1) {
        counts.asked += clients.length;
        counts.extrapolated += answer.extrapolated;
        if (clients.length > largest) counts.beyond += clients.length;
        const sum = members.reduce((total, { share }) => total + share, 0);
        if (part === undefined && sum > 1 + 1e-9 && sum < clients.length - 1e-9) counts.partial += clients.length;
      }
      const slowdowns = new Float64Array(clients.length);
      for (const [place, at] of order.entries()) slowdowns[at] = answer.slowdowns[place] as number;
      return slowdowns;
    },
  };

  /** The least share at which a workload is about as fast as on the whole device. */
  function fillOf(workload: string): number {
    if (mode === 'unstated' || mode === 'timeslice') return 1;
    return shareGrid.find((share) => aloneAt(workload, share).slowdown <= saturated) ?? 1;
  }
}

/** Shares that a profile of a workload tries, rising. */
export const shareGrid = [0.1, 0.2, 0.3, 0.5, 0.7, 1] as const;
/** Answers that a truth keeps. */
const mostKept = 100_000;

const compare = (a: TruthClient | undefined, b: TruthClient | undefined): number => {
  const [one, other] = [a, b].map((client) => `${client?.workload ?? ''}@${client?.share ?? 0}`) as [string, string];
  return one < other ? -1 : one > other ? 1 : 0;
};

/** The part of a device's compute slices that a slice's kind has; undefined: it is no slice. */
function sliceOf(gpuType: string | undefined): number | undefined {
  const [, profile] = gpuType?.split(':') ?? [];
  return profile === undefined || profile === '' ? undefined : computeSlicesOf(profile) / allSlices;
}

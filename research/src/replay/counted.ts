import type { Decision } from '@gpuwhisk/gpu/view/decision';
import type { PolicyMaker } from './setting.js';

/** How often a rule decided, by its words. */
export interface RuleCounts {
  decisions: number;
  /** Starts by what gave them their share. */
  starts: Map<string, number>;
  /** Refusals of a GPU to a waiting task, once for each decision. */
  refusals: Map<string, number>;
}

/** No decision has been made. */
export function newRuleCounts(): RuleCounts {
  return { decisions: 0, starts: new Map(), refusals: new Map() };
}

/** A policy that decides the same and adds to `counts` what its decisions say. */
export function countingRules(make: PolicyMaker, counts: RuleCounts): PolicyMaker {
  return (needs, scenario) => {
    const policy = make(needs, scenario);
    return {
      ...policy,
      decide(view, event) {
        const decision = policy.decide(view, event);
        count(decision, counts);
        return decision;
      },
    };
  };
}

function count({ starts, rejected }: Decision, counts: RuleCounts): void {
  counts.decisions += 1;
  for (const { reason } of starts) add(counts.starts, startOf(reason));
  for (const { reason } of rejected) add(counts.refusals, reason);
}

/** `beside 2 others; share: hit` is a start beside others, at a measured share. */
function startOf(reason: string): string {
  const [, others, source] = /^beside (\d+) others; share: (.+)$/.exec(reason) ?? [];
  if (source === undefined) return 'other';
  return others === '0' ? 'alone' : `beside others, share: ${source}`;
}

function add(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

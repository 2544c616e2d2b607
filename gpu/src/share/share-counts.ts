// Counts of share choices, by the answer of the table of measured sets.
import type { Sharing } from '../view/decision.js';

/** Answers of the table; a `miss` is answered by the guardrail. */
export const shareAnswers = ['hit', 'near', 'miss'] as const;
export type ShareAnswer = (typeof shareAnswers)[number];

/** Share choices with one answer. Only choices that put tasks together are counted. */
export interface ShareCount {
  choices: number;
  /** Choices where the answer was taken in place of the shares that the tasks fill. */
  taken: number;
  /** Sum over the choices of the times to the ends of all tasks with the chosen shares, ms; predicted, or measured on a hit. */
  chosenMs: number;
  /** The same with the shares that the tasks fill, ms; the difference is what the answers saved. */
  fillingMs: number;
}

/** Counts by answer. */
export type ShareCounts = Record<ShareAnswer, ShareCount>;

/** Counts of nothing yet. */
export function newShareCounts(): ShareCounts {
  const none = (): ShareCount => ({ choices: 0, taken: 0, chosenMs: 0, fillingMs: 0 });
  return { hit: none(), near: none(), miss: none() };
}

/**
 * The answer that a choice counts under. Undefined where no tasks were put together, the table was not asked, or a time is no
 * finite number of ms.
 */
export function answerOf({ tasks, answer, chosenMs, fillingMs }: Sharing): ShareAnswer | undefined {
  if (tasks < 2 || answer === undefined) return undefined;
  if (![chosenMs, fillingMs].every((ms) => ms >= 0 && ms < Infinity)) return undefined;
  return answer === 'hit' ? 'hit' : answer === 'nearest' ? 'near' : 'miss';
}

/** Adds a choice to its count. */
export function countSharing(counts: ShareCounts, sharing: Sharing): void {
  const answer = answerOf(sharing);
  if (answer === undefined) return;
  const count = counts[answer];
  count.choices += 1;
  if (sharing.source === sharing.answer) count.taken += 1;
  count.chosenMs += sharing.chosenMs;
  count.fillingMs += sharing.fillingMs;
}

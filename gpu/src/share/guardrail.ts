import { shareClasses } from '@gpuwhisk/common/gpu';
import type { SlowdownPredictor } from '../predict/slowdown-predictor.js';
import type { FixedShares, QuotaChoice, QuotaJob } from './quotas.js';

/** Part of a budget that a prediction may take: the rest is for its error. */
const budgetPart = 0.9;

/**
 * The smallest classes with which every job is predicted to keep to nine tenths of its budget (FaaShare's guardrail,
 * section VII-B). Jobs without a budget have an equal part of the GPU. Where a larger share of one slows others down,
 * theirs grow too; none shrinks, so that it ends. A job that was not profiled or has no solo time gets an equal part
 * too and counts as unmet where it has a budget. Who has a fixed share keeps it.
 */
export function guardrail(
  set: readonly QuotaJob[],
  budgetsMs: readonly number[],
  predictor: SlowdownPredictor,
  fixed: FixedShares = [],
): QuotaChoice {
  const fair = shareClasses.findLast((share) => share * set.length <= 100) ?? shareClasses[0];
  const isPredictable = ({ features, soloMs }: QuotaJob, at: number): boolean =>
    fixed[at] === undefined && budgetsMs[at]! < Infinity && features !== undefined && soloMs !== undefined;
  const classes = set.map((job, at) => (isPredictable(job, at) ? 0 : shareClasses.indexOf(fair)));
  const shareOf = (at: number): number => fixed[at] ?? shareClasses[classes[at]!]! / 100;
  const keeps = (at: number): boolean => {
    const { features, soloMs } = set[at]!;
    if (features === undefined || soloMs === undefined) return false;
    const others = set.flatMap((other, place) =>
      place !== at && other.features !== undefined ? [{ features: other.features, share: shareOf(place) }] : [],
    );
    return soloMs * predictor.slowdown({ features, share: shareOf(at) }, others) <= budgetPart * budgetsMs[at]!;
  };
  for (let grew = true; grew;) {
    grew = false;
    for (const [at, job] of set.entries()) {
      if (!isPredictable(job, at) || classes[at]! === shareClasses.length - 1 || keeps(at)) continue;
      classes[at]! += 1;
      grew = true;
    }
  }
  return {
    shares: set.map((_, at) => shareOf(at)),
    source: 'guardrail',
    unmet: [...set.keys()].filter((at) => budgetsMs[at]! < Infinity && !keeps(at)),
  };
}

// The stage `place` by predicted degradation (SMORE, thesis section 3.3), beside any order and share.
import type { FeatureRecord } from '../../predict/slowdown-predictor.js';
import { neededMiB } from '../../ledger/account.js';
import { thousandths } from '../../ledger/occupancy.js';
import type { Task } from '../../view/view.js';
import { deadlineAt } from '../../view/view.js';
import type { degradationScoreDefaults } from '../../stages/place/by-degradation.js';
import { idleInstances } from '../../stages/place/candidate.js';
import { degradationRefusal, mostMemory, neededMs } from '../../stages/place/degradation-refusals.js';
import type { Scores } from '../../stages/place/place.js';
import { costOf } from '../../stages/place/place-costs.js';
import { keyOf } from '../../stages/scale/wanted.js';
import { effectOf, SetEffects } from '../../stages/place/set-effects.js';
import type { ModelOf } from '../../stages/place/set-effects.js';

/**
 * The GPU of least λ·D_train + (1 − λ)·D_func (equation 3.11); refused where a workload or the task would be beyond its bound,
 * or the memory is needed as a reserve (equations 3.9 and 3.10). An idle instance of the function comes first in any case.
 */
export function leastDegradation(modelOf: ModelOf, settings: typeof degradationScoreDefaults): Scores {
  const effects = new SetEffects(modelOf);
  const numberOf = (task: Task, share: number): number => {
    const key = keyOf(task);
    effects.learn(key, task.featureRecord ?? (task.features as FeatureRecord | undefined));
    return effects.newcomer(key, thousandths(share));
  };
  return ({ at, workloads }) => {
    effects.begin(at, workloads);
    return (task, candidate, grant) => {
      const { account, kind, residents } = candidate;
      // Figures are noticed before numbers are given: a new one of a function renews its number.
      for (const one of residents) numberOf(one.task, one.share);
      const share = task.share ?? grant.share;
      const newcomer = numberOf(task, share);
      const functions = residents.map((one) => numberOf(one.task, one.share));
      const effect = effectOf(effects.membersWith(kind, effects.workloadsOn(account), functions), newcomer);
      const isWarm = idleInstances(account.occupants, task).some(({ shareClass }) => shareClass / 100 >= share);
      const refusal = degradationRefusal({
        effect,
        usedMiB: account.capacityMiB - account.availableMiB + neededMiB(task, account),
        mostMiB: mostMemory(account, settings.memoryPart),
        needMs: neededMs(task.soloMs, effect.own, isWarm ? 0 : (task.startMs ?? 0)),
        leftMs: deadlineAt(task) - at,
      });
      return refusal ?? costOf(effect, account.busy, settings);
    };
  };
}

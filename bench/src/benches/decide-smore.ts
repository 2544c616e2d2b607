import type { Random } from '@gpuwhisk/common/system/random';
import { degradationDefaults } from '@gpuwhisk/gpu/algorithms/smore/degradation-plan';
import { placeByDegradation } from '@gpuwhisk/gpu/stages/place/by-degradation';
import { PlaceCosts } from '@gpuwhisk/gpu/stages/place/place-costs';
import { SetEffects } from '@gpuwhisk/gpu/stages/place/set-effects';
import { SmoreDegradation } from '@gpuwhisk/gpu/predict/smore-degradation';
import type { Ledger } from '@gpuwhisk/gpu/ledger/ledger';
import { functionKey } from '@gpuwhisk/gpu/ledger/occupancy';
import type { Task, WorkloadState } from '@gpuwhisk/gpu/view/view';
import { bySmore as degradationsBySmore } from '../replay/smore-degradations.js';
import type { Placing } from './decide.js';

/** Models of training jobs, which differ in the SMs that they fill. */
const models = 16;

/**
 * Placement by SMORE in a cluster where every second device has a training job that may get slower by 30 %: the best of all
 * places, or in fast mode the first of five drawn that will do.
 */
export function bySmore(ledger: Ledger, fit: 'best' | 'first', random: Random): Placing {
  const predictor = new SmoreDegradation();
  const effects = new SetEffects((gpu) => degradationsBySmore(predictor, gpu));
  const workloads = ledger
    .accounts()
    .filter((account) => account.workloads > 0)
    .map(({ id, place }, at): WorkloadState => {
      const model = at % models;
      const features = { smUtil: 0.1 + (0.6 * model) / models };
      return { id: `w${at}`, name: `m${model}`, node: place.node.invoker, device: id, tolerated: 0.3, features };
    });
  const search = {
    effects,
    costs: new PlaceCosts(effects, degradationDefaults),
    settings: degradationDefaults,
    takesFirst: fit === 'first',
    risky: new Set<string>(),
    random,
    ...(fit === 'first' && { draws: degradationDefaults.draws }),
  };
  let decisions = 0;
  return (of, request, limits, stamp) => {
    decisions += 1;
    // A hundred decisions a second, so that what is predicted is renewed as it is live.
    const at = decisions * 10;
    const { smLimit } = request.share;
    const task: Task = {
      ...{
        id: `t${decisions}`,
        function: request.action,
        version: '',
        namespace: request.namespace,
        batch: 1,
        gpus: 1,
      },
      ...{ memoryMiB: request.memoryMiB, soloMs: 100, arrivedAt: at, sloMs: 1000, class: 'inference' },
    };
    effects.begin(at, workloads);
    effects.learn(functionKey(request), { smUtil: smLimit });
    return placeByDegradation(of, task, request, limits, { ...stamp, at }, search);
  };
}

import type { Config } from '@gpuwhisk/common/config';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { guarded } from '@gpuwhisk/gpu/policies/guarded';
import type { FaultyPass } from '@gpuwhisk/gpu/policies/guarded';
import { compositionOf, makePolicy, ruleOf } from '@gpuwhisk/gpu/policies/make-policy';
import type { PolicyChoice, PolicyNeeds } from '@gpuwhisk/gpu/policies/make-policy';
import type { Policy } from '@gpuwhisk/gpu/policies/policy';
import { stagesCan } from '@gpuwhisk/gpu/policies/stages';
import { trainingLast } from '@gpuwhisk/gpu/policies/training-last';
import type { FirstShare } from '@gpuwhisk/gpu/stages/place/first-share';
import { Feedback } from '../learning/feedback.js';
import type { PerformanceData } from '../learning/performance-data.js';
import { liveQuotas } from '../learning/sample-curves.js';

/** A policy as the scheduler runs it, with all that follows from its stages. */
export interface PolicyInForce {
  choice: PolicyChoice;
  /** With the guard around it. */
  policy: Policy;
  feedback: Feedback;
  /** For functions of which nothing is measured; undefined: the policy has none. */
  rule: FirstShare | undefined;
  /** Whether the policy asks for degradations beside workloads, so that they are learned. */
  predictsDegradation: boolean;
  /** Whether the policy goes by slowdowns on slices, so that they are learned. */
  readsSlices: boolean;
  /** Whether an activation that arrives at an empty queue is decided at once. */
  takesAsTheyCome: boolean;
  takesSamples: boolean;
  /** Whether instances get the request and limit of their functions' profiles. */
  givesProfiled: boolean;
  /** Whether the policy puts parts of a function on several devices. */
  spansDevices: boolean;
}

/** Makes a policy that learns from and predicts by the same data as all others. Throws RangeError as `compositionOf` does. */
export function policyInForce(
  choice: PolicyChoice,
  { performanceData, admission }: { performanceData: PerformanceData } & Pick<Config['gpu'], 'admission'>,
  onFault: (policy: string, fault: string, pass?: FaultyPass) => void,
): PolicyInForce {
  const composition = compositionOf(choice);
  const { stages } = composition;
  const { setTrials } = performanceData;
  const needs: PolicyNeeds = {
    predictorOf: (gpu) => performanceData.predictors.predictor(gpu),
    degradationsOf: (gpu) => performanceData.degradations.modelOf(gpu),
    quotas: liveQuotas(performanceData),
    sliceSlowdowns: performanceData.slices,
    setTrials,
    admission,
    random: seededRandom(1),
  };
  const policy = trainingLast(makePolicy(choice, needs), needs.predictorOf);
  const spare = makePolicy('least-loaded', needs);
  const rule = ruleOf(composition, setTrials);
  return {
    choice,
    policy: guarded(policy, spare, (fault, pass) => onFault(policy.name, fault, pass)),
    feedback: new Feedback(performanceData, rule),
    rule,
    predictsDegradation: stagesCan('asksForDegradations', stages),
    readsSlices: stagesCan('learnsSlices', stages),
    takesAsTheyCome: composition.takesAsTheyCome,
    takesSamples: !composition.needsNoProfiles,
    givesProfiled: stagesCan('usesProfiledShares', stages),
    spansDevices: stagesCan('spans', stages),
  };
}

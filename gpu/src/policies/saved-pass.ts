import { kindName, type GpuKind } from '@gpuwhisk/common/gpu';
import type { JsonObject } from '@gpuwhisk/common/json';
import { encodeModel } from '../predict/slowdown-model.js';
import type { SlowdownModel } from '../predict/slowdown-model.js';
import type { QuotaRow } from '../share/quota-row.js';
import type { SavedTrials } from '../share/set-trials.js';
import { toPlain, encodeView } from '../view/saved-view.js';
import { kindsOf } from '../ledger/places.js';
import type { SchedulingEvent, View } from '../view/view.js';
import type { LateTaskHandling, PolicyChoice } from './make-policy.js';

/** What a decision depends on besides its view. */
export interface PassInputs {
  policy: PolicyChoice;
  admission: LateTaskHandling;
  /** Whether training comes last, as `trainingLast` has it. */
  trainingLast?: boolean;
  event: SchedulingEvent;
  /** Of the stages, as `Policy.saved` gives it; undefined: they have none. */
  state: unknown;
  /** Predictors that were learned. */
  models: readonly SlowdownModel[];
  /** Measured shares of sets; absent: the policy goes by none. */
  quotas?: readonly QuotaRow[];
  /** Trials of sets of functions; absent: the policy has seen none, or keeps them itself. */
  trials?: SavedTrials;
}

/**
 * A view and the inputs of a decision on it as JSON. Models and shares of types and modes of GPU that the
 * view lacks are left out.
 */
export function encodePass(view: View, { models, quotas, trials, state, ...inputs }: PassInputs): JsonObject {
  const kinds = new Set(kindsOf(view.ledger.ledger.accounts()).map(kindName));
  const isThere = (gpu: GpuKind): boolean => kinds.has(kindName(gpu));
  return {
    ...encodeView(view),
    ...(toPlain({
      ...{ ...inputs, state, quotas: quotas?.filter(isThere) },
      trials: trials && { ...trials, sets: trials.sets.filter(isThere) },
    }) as JsonObject),
    models: models.filter(isThere).map(encodeModel),
  };
}

/** Parts of each kind in views that are saved within a bound, tried in this order. */
const boundsTried = [100, 30, 10, 3, 0];

/** Parts of a saved view that stay where all others are beyond its bound. */
const headNames: readonly string[] = ['format', 'version', 'at', 'leftOut'];

/**
 * As `encodePass`, in at most `maxBytes` characters of text: `leftOut` tells how many parts of each kind are left out. The state
 * of stages is left out, as it is not what it was before the decision.
 */
export function encodeWithin(
  maxBytes: number,
  view: View,
  { models, quotas = [], trials, ...inputs }: PassInputs,
): JsonObject {
  const { policy, admission, trainingLast: comesLast = false, event } = inputs;
  let saved: JsonObject = {};
  for (const mostEach of boundsTried) {
    const { leftOut, ...body } = encodeView(view, { mostEach });
    saved = {
      ...body,
      policy: toPlain(policy),
      admission,
      trainingLast: comesLast,
      event: toPlain(event),
      models: [],
      leftOut: {
        ...(leftOut as JsonObject),
        ...{ models: models.length, quotas: quotas.length, trials: trials?.sets.length ?? 0, state: 1 },
      },
    };
    if (JSON.stringify(saved).length <= maxBytes) return saved;
  }
  return Object.fromEntries(Object.entries(saved).filter(([name]) => headNames.includes(name)));
}

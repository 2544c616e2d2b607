import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { predictorsOf, encodeModel } from '../predict/slowdown-model.js';
import type { SlowdownModel } from '../predict/slowdown-model.js';
import { readQuotaRow } from '../share/quota-row.js';
import type { QuotaRow } from '../share/quota-row.js';
import { QuotaTable } from '../share/quota-table.js';
import type { Decision } from '../view/decision.js';
import { fromPlain, toPlain, decodeView, encodeView, SavedViewError } from '../view/saved-view.js';
import { savedFault } from '../view/saved-view-schema.js';
import { kindsOf } from '../ledger/places.js';
import type { GpuKind } from '../ledger/places.js';
import type { SchedulingEvent, View } from '../view/view.js';
import { makePolicy } from './make-policy.js';
import type { LateTaskHandling, PolicyChoice } from './make-policy.js';
import type { Policy } from './policy.js';
import { trainingLast } from './training-last.js';

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
}

/** A view with all that a policy decides on. */
export interface SavedPass {
  policy: Policy;
  view: View;
  event: SchedulingEvent;
}

/**
 * A view and the inputs of a decision on it as JSON, for `readPass`. Models and shares of types and modes of GPU that the
 * view lacks are left out.
 */
export function encodePass(view: View, { models, quotas, state, ...inputs }: PassInputs): JsonObject {
  const kinds = new Set(kindsOf(view.ledger.ledger.accounts()).map(keyOf));
  const isThere = ({ gpuType, mode }: Pick<SlowdownModel, 'gpuType' | 'mode'>): boolean =>
    kinds.has(keyOf({ type: gpuType, mode }));
  return {
    ...encodeView(view),
    ...(toPlain({ ...inputs, state, quotas: quotas?.filter(isThere) }) as JsonObject),
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
export function encodeWithin(maxBytes: number, view: View, { models, quotas = [], ...inputs }: PassInputs): JsonObject {
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
      leftOut: { ...(leftOut as JsonObject), models: models.length, quotas: quotas.length, state: 1 },
    };
    if (JSON.stringify(saved).length <= maxBytes) return saved;
  }
  return Object.fromEntries(Object.entries(saved).filter(([name]) => headNames.includes(name)));
}

/** A saved view, and the policy that decided on it in the state that it had. Throws SavedViewError, or as the codecs do. */
export function readPass(saved: JsonValue): SavedPass {
  const view = decodeView(saved);
  const read = fromPlain(saved) as Record<string, unknown>;
  const fault = savedFault('pass', read);
  if (fault !== undefined) throw new SavedViewError(fault);
  const { policy: choice, admission, event, state, models, quotas } = read;
  const predictorOf = predictorsOf(models as string[]);
  const table = new QuotaTable({ predictorOf });
  for (const row of (quotas ?? []) as unknown[]) table.restore(readQuotaRow(row));
  const made = makePolicy(choice as PolicyChoice, {
    predictorOf,
    random: seededRandom(1),
    admission: admission as LateTaskHandling,
    ...(quotas !== undefined && { quotas: table }),
  });
  const policy = read.trainingLast === true ? trainingLast(made, predictorOf) : made;
  if (state !== undefined) policy.restore?.(state);
  return { policy, view, event: event as unknown as SchedulingEvent };
}

/** The decision of the policy of a saved view, on that view. Throws as `readPass` does. */
export function decideAgain(saved: JsonValue): Decision {
  const { policy, view, event } = readPass(saved);
  return policy.decide(view, event);
}

function keyOf({ type, mode }: GpuKind): string {
  return `${type} ${mode}`;
}

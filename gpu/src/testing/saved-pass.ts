// Decisions that are taken again on saved views: by tests, and on the file of a report.
import { isJsonObject } from '@gpuwhisk/common/json';
import type { JsonValue } from '@gpuwhisk/common/json';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { Ledger } from '../ledger/ledger.js';
import type { OpenLedger } from '../ledger/used-places.js';
import { makePolicy } from '../policies/make-policy.js';
import type { LateTaskHandling, PolicyChoice } from '../policies/make-policy.js';
import type { Policy } from '../policies/policy.js';
import { trainingLast } from '../policies/training-last.js';
import { predictorsOf } from '../predict/slowdown-model.js';
import { readQuotaRow } from '../share/quota-row.js';
import { QuotaTable } from '../share/quota-table.js';
import { SetTrials } from '../share/set-trials.js';
import type { SavedTrials } from '../share/set-trials.js';
import type { Decision } from '../view/decision.js';
import { countedMinutes, countedSeconds } from '../view/function-log.js';
import { fromPlain, viewFormat, viewVersion } from '../view/saved-view.js';
import type { Counts, SavedBody, SavedFunction, SavedLedger, SavedRun } from '../view/saved-view.js';
import type { FunctionState, SchedulingEvent, View } from '../view/view.js';
import { savedFault } from './saved-view-schema.js';

/** Thrown for JSON that is no saved view, or one of another version. */
class SavedViewError extends Error {
  override name = 'SavedViewError';

  constructor(reason: string) {
    super(`This is no usable view: ${reason}.`);
  }
}

/** The view that `encodeView` was given. Throws SavedViewError. */
export function decodeView(saved: JsonValue): View {
  if (!isJsonObject(saved) || saved['format'] !== viewFormat)
    throw new SavedViewError(`its format is not '${viewFormat}'`);
  const { version } = saved;
  if (version !== viewVersion) {
    throw new SavedViewError(`its format has version ${JSON.stringify(version)} instead of ${viewVersion}`);
  }
  const body = fromPlain(saved) as SavedBody;
  const fault = savedFault('view', body);
  if (fault !== undefined) throw new SavedViewError(fault);
  const { at, waiting, ledger, runs, functions, instances, nodes, devices, workloads, procurement } = body;
  const known = new Map<string, SavedRun[1]>(runs);
  return {
    ...{ at, ledger: openLedger(ledger), runs: (activationId) => known.get(activationId) },
    waiting,
    ...(functions && { functions: functions.map(functionState) }),
    ...(instances && { instances }),
    ...(nodes && { nodes }),
    ...(devices && { devices }),
    ...(workloads && { workloads }),
    ...(procurement && { procurement }),
  };
}

function openLedger({ epoch, rows, open, held, byLoad }: SavedLedger): OpenLedger {
  const nodes = new Set(open);
  return { ledger: Ledger.of(rows, held, byLoad), isOpen: (invoker) => nodes.has(invoker), epoch };
}

/** Its arrivals are those of the time of the view, whatever time they are asked for. */
function functionState({ bySecond, byMinute, ...known }: SavedFunction): FunctionState {
  return {
    ...known,
    arrivals: {
      bySecond: () => arrayOf(bySecond, countedSeconds),
      byMinute: () => arrayOf(byMinute, countedMinutes),
    },
  };
}

function arrayOf(counts: Counts, length: number): Uint32Array {
  const array = new Uint32Array(length);
  for (const [at, count] of counts) array[at] = count;
  return array;
}

/** A view with all that a policy decides on. */
interface SavedPass {
  policy: Policy;
  view: View;
  event: SchedulingEvent;
}

/** A saved view, and the policy that decided on it in the state that it had. Throws SavedViewError, or as the codecs do. */
export function readPass(saved: JsonValue): SavedPass {
  const view = decodeView(saved);
  const read = fromPlain(saved) as Record<string, unknown>;
  const fault = savedFault('pass', read);
  if (fault !== undefined) throw new SavedViewError(fault);
  const { policy: choice, admission, event, state, models, quotas, trials } = read;
  const predictorOf = predictorsOf(models as string[]);
  const table = new QuotaTable({ predictorOf });
  for (const row of (quotas ?? []) as unknown[]) table.restore(readQuotaRow(row));
  const setTrials = new SetTrials();
  if (trials !== undefined) setTrials.restore(trials as SavedTrials);
  const made = makePolicy(choice as PolicyChoice, {
    predictorOf,
    random: seededRandom(1),
    admission: admission as LateTaskHandling,
    setTrials,
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

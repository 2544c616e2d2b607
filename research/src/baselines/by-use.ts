// Placement by the use of the SMs beside workloads, with a bound (EDF-util of SMORE's comparison, thesis section 5.5.1).
import type { PlaceAccount, PlacementChoice, PlacementRequest } from '@gpuwhisk/gpu/ledger/account';
import type { Ledger } from '@gpuwhisk/gpu/ledger/ledger';
import {
  accountsFor,
  alike,
  alternativesOf,
  candidateAt,
  choiceOf,
  compare,
  instanceFor,
  placementOf,
  rejectionsOf,
} from '@gpuwhisk/gpu/stages/place/candidate';
import type { Candidate, PlacementLimits, PlacementStamp } from '@gpuwhisk/gpu/stages/place/candidate';
import type { Refusal } from '@gpuwhisk/gpu/stages/place/fact-filters';

/** The use of the SMs, as fractions. */
export interface UseBound {
  /** By place: of its workloads. A place that is not in it has none, and no bound. */
  used: ReadonlyMap<string, number>;
  /** Of the task. */
  use: number;
  mostUse: number;
}

/** The least loaded of the places where the use of the workloads and of the task together is within the bound. */
export function placeByUse(
  ledger: Ledger,
  request: PlacementRequest,
  limits: PlacementLimits,
  stamp: PlacementStamp,
  bound: UseBound,
): PlacementChoice {
  const warm = request.gpus === 1 ? ledger.withInstances(request, request.batch === 1) : undefined;
  const able: Candidate[] = [];
  for (const account of accountsFor(ledger, limits)) {
    if (refusalOf(account, bound) !== undefined) continue;
    const joined = warm?.has(account) === true ? instanceFor(account.occupants, request) : undefined;
    const candidate = candidateAt(account, request, limits, joined);
    if (candidate !== undefined) able.push(candidate);
  }
  able.sort(compare);
  const chosen = request.gpus > 1 ? alike(able, request.gpus) : able[0] && [able[0]];
  const alternatives = alternativesOf(ledger, request, limits, chosen);
  return choiceOf(chosen && placementOf(chosen, request, stamp), chosen?.[0]?.joined?.id, alternatives, (passed) =>
    rejectionsOf(passed, request, {
      refuses: (one) => refusalOf(one, bound),
      why: ({ account: { load } }) => ({
        reason: 'the chosen one has less given away, or was found first',
        numbers: { load },
      }),
    }),
  );
}

function refusalOf({ id }: Pick<PlaceAccount, 'id'>, { used, use, mostUse }: UseBound): Refusal | undefined {
  const workloads = used.get(id);
  if (workloads === undefined || workloads + use <= mostUse) return undefined;
  return { reason: 'its workloads and the task would use more than the bound', numbers: { workloads, use, mostUse } };
}

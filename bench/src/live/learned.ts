// What a platform learns for its GPU policy: the runs that it learns from, and the result as the simulator takes it.
import { setTimeout as sleep } from 'node:timers/promises';
import type { JsonObject } from '@gpuwhisk/common/json';
import { predictorsOf } from '@gpuwhisk/gpu/predict/slowdown-model';
import type { WorkloadFeatures } from '@gpuwhisk/gpu/predict/slowdown-predictor';
import type { PolicyNeeds } from '@gpuwhisk/gpu/policies/make-policy';
import { readQuotaRow } from '@gpuwhisk/gpu/share/quota-row';
import { QuotaTable } from '@gpuwhisk/gpu/share/quota-table';
import { fromPlain } from '@gpuwhisk/gpu/view/saved-view';
import type { Api } from '../api.js';
import { play, type Player } from './player.js';
import type { LivePlatform } from './platform.js';

/** Data that a policy goes by. */
export interface Learned extends Pick<PolicyNeeds, 'predictorOf' | 'quotas'> {
  /** Measured features by function, `/namespace/action`; absent for those that were not measured. */
  features: ReadonlyMap<string, WorkloadFeatures>;
}

/** The platform's learned data at this moment. */
export async function learnedOf({ api, operator }: Pick<LivePlatform, 'api' | 'operator'>): Promise<Learned> {
  const view = (await operator.json('GET', '/api/v1/gpu/view')) as JsonObject;
  const { models, quotas } = fromPlain(view) as { models: string[]; quotas?: unknown[] };
  const predictorOf = predictorsOf(models);
  const table = new QuotaTable({ predictorOf });
  for (const row of quotas ?? []) table.restore(readQuotaRow(row));
  const functions = (await api.json('GET', '/api/v1/gpu/functions')) as {
    function: string;
    features?: Partial<WorkloadFeatures>;
  }[];
  const features = functions.flatMap(({ function: name, features: { smUtil, ...others } = {} }) =>
    smUtil === undefined ? [] : [[name, { smUtil, ...others }] as const],
  );
  return { predictorOf, features: new Map(features), ...(quotas !== undefined && { quotas: table }) };
}

/** Choices of shares for functions that are put together. */
interface ShareChoices {
  choices: number;
  /** Choices where the table's answer replaced the shares that the functions fill. */
  taken: number;
}

/** What `wsk gpu policy` shows of the learned data. */
export interface PolicyState {
  shareChoices: Record<'hit' | 'near' | 'miss', ShareChoices>;
  /** Sets in the table of measured sets. */
  sharedSets: number;
  /** `version` 0: the capacity model. `error`: median relative error of its predictions. */
  models: { version: number; sampleCount: number; error?: number }[];
}

/** The state of the policy and its learned data. */
export async function policyState(api: Api): Promise<PolicyState> {
  return (await api.json('GET', '/api/v1/gpu/policy')) as PolicyState;
}

/** Evidence that learned data decided placements. */
export interface LearnedUse {
  /** Choices of shares that put functions together, and the parts of them that the table hit, and where it was taken. */
  choices: number;
  hits: number;
  taken: number;
  /** Version and training samples of the predictor in force, and its median relative error. */
  modelVersion: number;
  modelSamples: number;
  modelError: number;
}

/** The use of learned data between two states. */
export function learnedUse(before: PolicyState, after: PolicyState): LearnedUse {
  const made = (answer: keyof PolicyState['shareChoices'], what: keyof ShareChoices): number =>
    after.shareChoices[answer][what] - before.shareChoices[answer][what];
  const choices = made('hit', 'choices') + made('near', 'choices') + made('miss', 'choices');
  const [model] = before.models;
  const part = (count: number): number => (choices === 0 ? 0 : count / choices);
  return {
    choices,
    hits: part(made('hit', 'choices')),
    taken: part(made('hit', 'taken')),
    modelVersion: model?.version ?? 0,
    modelSamples: model?.sampleCount ?? 0,
    modelError: after.models[0]?.error ?? NaN,
  };
}

/** Throws an Error unless a trained model was in force and the table of measured sets was hit. */
export function expectLearnedUse({ choices, hits, modelVersion }: LearnedUse, name: string): void {
  if (modelVersion < 1) throw new Error(`${name}: the predictor in force was not trained`);
  if (hits > 0) return;
  throw new Error(`${name}: none of ${choices} choices of shares hit the table of measured sets`);
}

/** Settings under which a platform searches soon for every set that it forms. */
export const eagerSearches = { GPUWHISK_GPU__SEARCH__IDLE_MS: '1000', GPUWHISK_GPU__SEARCH__MIN_ASKED: '1' };

/** How a platform is trained. */
export interface TrainingPlan {
  /** Calls of a round of training, in which sets are formed. */
  round(at: number): readonly { action: string; atMs: number }[];
  mostRounds: number;
  /** Longest time for the searches after a round, ms. */
  searchesWithinMs: number;
  say(line: string): void;
}

/** Hits among the choices of a round from which on training ends. */
const enoughHits = 0.5;

/**
 * Plays rounds of calls, each followed by searches on the idle GPUs, until a trained predictor is in force and half of the
 * choices of a round hit the table, or for `mostRounds`. Rejects if a call fails.
 */
export async function train(
  { api, player }: { api: Api; player: Player },
  { round, mostRounds, searchesWithinMs, say }: TrainingPlan,
): Promise<void> {
  for (let at = 0; at < mostRounds; at += 1) {
    const before = await policyState(api);
    await play(player, round(at));
    const played = await policyState(api);
    const searchedMs = await searched(api, searchesWithinMs);
    const after = await policyState(api);
    const { hits } = learnedUse(before, played);
    const [{ version, sampleCount } = { version: 0, sampleCount: 0 }] = after.models;
    say(
      `live: training round ${at + 1}: ${(100 * hits).toFixed(0)} % hits; after ${(searchedMs / 1000).toFixed(0)} s` +
        ` of searches ${after.sharedSets} measured sets, model ${version} of ${sampleCount} samples`,
    );
    if (version > 0 && hits >= enoughHits) return;
  }
}

const searchLookMs = 1000;
/** A platform looks for idle GPUs each second; without a search for so many looks none is to come. */
const quietLooks = 4;

/** Waits until no set is searched or waits for a search, but at most `withinMs`. Returns the time that it waited, ms. */
async function searched(api: Api, withinMs: number): Promise<number> {
  const startedMs = performance.now();
  const untilMs = startedMs + withinMs;
  for (let quiet = 0; quiet < quietLooks && performance.now() < untilMs;) {
    await sleep(searchLookMs);
    const sets = (await api.json('GET', '/api/v1/gpu/quotas')) as { search: { stage: string } }[];
    quiet = sets.some(({ search }) => ['asked', 'waiting', 'running'].includes(search.stage)) ? 0 : quiet + 1;
  }
  return performance.now() - startedMs;
}

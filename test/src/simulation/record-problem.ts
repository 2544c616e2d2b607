import { isDeepStrictEqual } from 'node:util';
import { readActivation } from '@gpuwhisk/common/entities/activation';
import type { WhiskActivation } from '@gpuwhisk/common/entities/activation';
import { parameterValue } from '@gpuwhisk/common/entities/parameters';
import type { StoredDocument } from '@gpuwhisk/common/store/artifact-store';
import type { Call, Run } from './ledger-entries.js';

/** Observations of an activation before its record. */
export interface Seen {
  call: Call;
  /** The activation's runs in the life that recorded it. */
  runs: readonly Run[];
  /** Whether it got a start mark before the last restart. */
  markedEarlier: boolean;
}

/** Time by which a record's duration may exceed the limits of init and run together, ms. */
const limitSlackMs = 100;

/** The reason if a record cannot be true; undefined if it can. */
export function recordProblem(document: StoredDocument, { call, runs, markedEarlier }: Seen): string | undefined {
  const record = readActivation(document);
  const { action, namespace } = call;
  if (document._id !== `${namespace}/${record.activationId}`) return `has the id ${document._id}`;
  if (record.namespace !== namespace || record.name !== action.name) return `names ${record.namespace}/${record.name}`;
  if (record.version !== action.version) return `names version ${record.version}`;
  return timesProblem(record, action.limits.timeout) ?? responseProblem(record, runs, markedEarlier);
}

function timesProblem({ start, end, duration, annotations }: WhiskActivation, limitMs: number): string | undefined {
  if (duration !== end - start) return `has a duration of ${duration} ms from ${start} to ${end}`;
  if (duration < 0) return `has a duration of ${duration} ms`;
  if (duration > 2 * limitMs + limitSlackMs) return `has a duration of ${duration} ms, with a limit of ${limitMs} ms`;
  const timedOut = parameterValue(annotations, 'timeout') === true;
  if (timedOut && duration < limitMs) return `timed out after ${duration} ms, with a limit of ${limitMs} ms`;
  return undefined;
}

function responseProblem(record: WhiskActivation, runs: readonly Run[], markedEarlier: boolean): string | undefined {
  const { statusCode, result } = record.response;
  const error = errorOf(record);
  if (error === 'The invoker stopped while the action ran.') {
    if (statusCode !== 3) return `has status ${statusCode} and: ${error}`;
    return markedEarlier ? undefined : 'says that the action ran, and it was not marked';
  }
  const ended = runs.at(-1)?.outcome;
  // The agent of the GPUs ends containers when their device fails, and gives the reason.
  if (
    ended?.type === 'lost' &&
    statusCode >= 2 &&
    /^(The GPU('s sharing failed|.* while the action ran|.* was lost)|GPU \S+ reported an error|A function's fault on GPU)/.test(
      error,
    )
  ) {
    return undefined;
  }
  if (ended?.type === 'lost' && runs.at(-1)?.cutShort) return `blames the action for the platform's end: ${error}`;
  if (statusCode <= 1) {
    const answered = runs.some(
      ({ outcome }) =>
        outcome?.type === 'result' &&
        (statusCode === 1 ? 'error' in outcome.result : isDeepStrictEqual(outcome.result, result)),
    );
    return answered ? undefined : `has a result that no run gave: ${JSON.stringify(result)}`;
  }
  if (statusCode === 2 && error.includes('exceeded its time limits') !== isTimeout(record)) {
    return `has the annotation timeout ${isTimeout(record)} and: ${error}`;
  }
  if (ended?.type === 'result') return `has status ${statusCode} though its run gave a result: ${error}`;
  if (ended?.type === 'timeout' && !isTimeout(record)) return `hides that its run timed out: ${error}`;
  if (statusCode === 2 && ended?.type === 'lost' && ended.oomKilled !== error.includes('exhausted its memory')) {
    return `hides how its container ended: ${error}`;
  }
  return undefined;
}

function isTimeout(record: WhiskActivation): boolean {
  return parameterValue(record.annotations, 'timeout') === true;
}

function errorOf({ response: { result } }: WhiskActivation): string {
  return typeof result === 'object' && result !== null && 'error' in result ? String(result.error) : '';
}

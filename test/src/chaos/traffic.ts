import type { JsonObject } from '@gpuwhisk/common/json';
import type { ApiClient } from '../support/api-client.js';
import { until } from '../support/running-platform.js';

const waitMs = 60_000;
const pauseMs = 50;

/** Callers that each submit one activation after the other. */
export interface Traffic {
  accepted: readonly string[];
  /** Statuses of all answers so far. */
  statuses: ReadonlySet<number>;
  /** Resolves once `count` more activations have been accepted. */
  more(count: number): Promise<void>;
  /** Stops the callers; resolves with all accepted activation ids once each caller has its answer. */
  end(): Promise<readonly string[]>;
}

/**
 * Starts one caller for each of `clients`. It pauses for `everyMs` after each submission, and longer after a refusal.
 */
export function startTraffic(clients: readonly ApiClient[], action: string, payload: JsonObject, everyMs = 0): Traffic {
  const accepted: string[] = [];
  const statuses = new Set<number>();
  let isOver = false;
  const call = async (client: ApiClient): Promise<void> => {
    while (!isOver) {
      const answer = await client
        .request<{ activationId: string }>('POST', `_/actions/${action}`, payload)
        .catch(() => undefined);
      if (answer !== undefined) statuses.add(answer.status);
      const isAccepted = answer?.status === 202;
      if (isAccepted) accepted.push(answer.body.activationId);
      const waitMs = isAccepted ? everyMs : Math.max(everyMs, pauseMs);
      if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
    }
  };
  const calls = Promise.all(clients.map(call));
  return {
    ...{ accepted, statuses },
    async more(count) {
      const enough = accepted.length + count;
      await until(`${count} more are accepted`, () => accepted.length >= enough, waitMs);
    },
    async end() {
      isOver = true;
      await calls;
      return accepted;
    },
  };
}

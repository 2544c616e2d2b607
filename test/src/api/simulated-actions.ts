// Actions that run inside the test process, as components of sequences and compositions.
import type { WhiskActivation } from '@gpuwhisk/common/entities/activation';
import { isJsonObject } from '@gpuwhisk/common/json';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import type { InvokeOutcome, InvokeRequest } from '@gpuwhisk/controller/invoke/invoke-service';

/** Code of a component: returns a result, returns 'timeout' if it never ends, or throws if it cannot be invoked. */
export type SimulatedCode = (payload: JsonObject | JsonValue[]) => JsonValue | 'timeout';

/** Duration of each run, ms. */
export const runMs = 7;

/** Answers invocations of components as an invoker does, with ids that count from 1. */
export function simulatedActions(code: Record<string, SimulatedCode>): {
  answer: (request: InvokeRequest) => InvokeOutcome;
  /** The n-th activation's id, from 1. */
  id: (serial: number) => string;
} {
  let serial = 0;
  const id = (number: number): string => String(number).padStart(32, '0');
  const answer = (request: InvokeRequest): InvokeOutcome => {
    const { action, identity, payload, cause } = request;
    const activationId = id(++serial);
    const merged = Array.isArray(payload)
      ? payload
      : { ...Object.fromEntries(action.parameters.map(({ key, value }) => [key, value])), ...payload };
    const run = code[action.name];
    if (run === undefined) throw new Error(`no code for ${action.name}`);
    const result = run(merged);
    if (result === 'timeout') return { type: 'accepted', activationId };
    const failed = isJsonObject(result) && result.error !== undefined;
    const activation: WhiskActivation = {
      namespace: identity.namespace.name,
      name: action.name,
      version: action.version,
      subject: identity.subject,
      activationId,
      start: 1000,
      end: 1000 + runMs,
      duration: runMs,
      ...(cause !== undefined && { cause }),
      response: { statusCode: failed ? 1 : 0, result },
      logs: [],
      publish: false,
      annotations: [{ key: 'limits', value: { ...action.limits } }],
    };
    return { type: 'completed', activation };
  };
  return { answer, id };
}

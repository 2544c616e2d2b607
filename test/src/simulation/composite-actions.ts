import type { WhiskAction } from '@gpuwhisk/common/entities/action';
import type { Identity } from '@gpuwhisk/common/entities/identity';

/** Identity of the caller. */
export const identity: Identity = {
  subject: 'alpha',
  namespace: { name: 'alpha', uuid: 'alpha-uuid' },
  authkey: { api_key: 'alpha-uuid:key' },
  rights: [],
  limits: {},
};

/** An action of that caller; a sequence if `components` names its actions. */
export function whiskAction(name: string, components?: readonly string[], conductor = false): WhiskAction {
  return {
    namespace: 'alpha',
    name,
    exec:
      components === undefined
        ? { kind: 'nodejs:20', code: '', binary: false }
        : { kind: 'sequence', components: components.map((one) => `/alpha/${one}`) },
    parameters: [],
    limits: { timeout: 1000, memory: 256, logs: 10, concurrency: 1 },
    version: '0.0.1',
    publish: false,
    annotations: [{ key: 'conductor', value: conductor }],
    updated: 0,
    revision: '1-a',
  };
}

/** Two sequences, one of them within the other, a sequence that fails, a conductor, and a sequence around it. */
export function composites(): Map<string, WhiskAction> {
  return new Map(
    [
      whiskAction('two', ['add', 'add']),
      whiskAction('nested', ['add', 'two']),
      whiskAction('failing', ['add', 'fail', 'add']),
      whiskAction('conductor', undefined, true),
      whiskAction('around', ['conductor', 'add']),
    ].map((one) => [one.name, one]),
  );
}

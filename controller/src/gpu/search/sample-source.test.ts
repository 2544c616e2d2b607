// Functions that a search may run, and their samples.
import { expect, test } from '@jest/globals';
import type { WhiskAction } from '@gpuwhisk/common/entities/action';
import { noSuchEntity } from '@gpuwhisk/common/errors';
import type { Identity } from '@gpuwhisk/common/entities/identity';
import type { JsonObject } from '@gpuwhisk/common/json';
import { SampleSource } from './sample-runner.js';

const identity: Identity = {
  subject: 'alice',
  namespace: { name: 'alice', uuid: 'u' },
  authkey: { api_key: 'u:k' },
  rights: [],
  limits: {},
};
const job = { function: '/alice/f', version: '0.0.1', batch: 1 };

/** A source with these actions of alice, by name. */
function sourceOf(actions: Record<string, WhiskAction>): SampleSource {
  return new SampleSource(
    { ofNamespace: (name) => (name === 'alice' ? Promise.resolve(identity) : Promise.reject(noSuchEntity())) },
    {
      resolve: (_, { namespace, packageName, name }) => {
        const action = actions[packageName === undefined ? name : `${packageName}/${name}`];
        return namespace === 'alice' && action ? Promise.resolve({ action }) : Promise.reject(noSuchEntity());
      },
    },
  );
}

/** An action with annotations `gpu` and `idempotent`. */
function actionWith(gpu: JsonObject, isIdempotent = true, name = 'f'): WhiskAction {
  return {
    namespace: 'alice',
    name,
    exec: { kind: 'nodejs:20', code: '', binary: false },
    parameters: [],
    limits: { timeout: 60_000, memory: 256, logs: 1, concurrency: 1 },
    version: '0.0.1',
    publish: false,
    annotations: [
      { key: 'gpu', value: { memoryMiB: 38_000, ...gpu } },
      { key: 'idempotent', value: isIdempotent },
    ],
    updated: 0,
    revision: '1-x',
  };
}

test.each<[string, WhiskAction, string]>([
  ['has no sample', actionWith({}), 'the action has no sample'],
  ['is not idempotent', actionWith({ sample: { n: 1 } }, false), 'the action is not idempotent'],
  ['has a fixed share', actionWith({ sample: {}, mpsPercent: 50 }), 'the owner has fixed the share'],
  ['runs in batches', actionWith({ sample: {}, batch: 4 }), 'requests of the action run in batches'],
  ['needs several GPUs', actionWith({ sample: {}, gpus: 2 }), 'the action needs several GPUs'],
  ['is of another version', { ...actionWith({ sample: {} }), version: '0.0.2' }, 'the action now has version 0.0.2'],
  ['needs no GPU any more', { ...actionWith({ sample: {} }), annotations: [] }, 'the action needs no GPU'],
  ['names an action that is not there', actionWith({ sample: 'g' }), 'the action does not exist'],
])('a function is run only if its owner allows it: it %s', async (_, action, reason) => {
  expect(await sourceOf({ f: action }).of(job)).toBe(reason);
});

test('a function whose sample is an object is run with it, as its namespace', async () => {
  const action = actionWith({ memoryMiB: 500, sample: { n: 1 } });
  expect(await sourceOf({ f: action }).of(job)).toEqual({ job, identity, action, payload: { n: 1 }, memoryMiB: 500 });
});

test('an action that a sample names is run in its place, if it may be run', async () => {
  const f = actionWith({ sample: 'tools/g' });
  const g = actionWith({ memoryMiB: 700 }, true, 'g');
  expect(await sourceOf({ f, 'tools/g': g }).of(job)).toMatchObject({ job, action: g, payload: {}, memoryMiB: 700 });
  const other = actionWith({}, false, 'g');
  expect(await sourceOf({ f, 'tools/g': other }).of(job)).toBe('of its sample tools/g: the action is not idempotent');
});

test('one that is gone, or its namespace, is not there', async () => {
  expect(await sourceOf({}).of(job)).toBe('the action does not exist');
  expect(await sourceOf({}).of({ ...job, function: '/bob/f' })).toBe('the action does not exist');
});

test('a store that fails is no answer', async () => {
  const source = new SampleSource(
    { ofNamespace: () => Promise.reject(new Error('the store fails')) },
    { resolve: () => Promise.reject(noSuchEntity()) },
  );
  await expect(source.of(job)).rejects.toThrow('the store fails');
});

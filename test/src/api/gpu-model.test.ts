// The model of a function on GPUs: load, status, deletion.
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { ActivationStatus } from '@gpuwhisk/common/entities/activation';
import { instanceNotLaunched } from '@gpuwhisk/common/errors';
import { gpuDesiredTable } from '@gpuwhisk/common/gpu';
import type { Resident } from '@gpuwhisk/common/gpu';
import type { InstanceState } from '@gpuwhisk/gpu/view/view';
import type { InvokeOutcome } from '@gpuwhisk/controller/invoke/invoke-service';
import { a100, nodeRow, setNode } from './gpu-nodes.js';
import { actionPath, alice, bob, errorOf, hello, idleGpuScheduler, startApi } from './harness.js';
import type { Account, Api, Reply } from './harness.js';

let api: Api;
let instances: InstanceState[] = [];

beforeEach(async () => {
  instances = [];
  api = await startApi({ gpuScheduler: { ...idleGpuScheduler, instances: () => instances } });
  const annotations = [{ key: 'gpu', value: { memoryMiB: 2048 } }];
  expect((await api.request('PUT', actionPath('classify'), { body: { ...hello, annotations } })).status).toBe(200);
  expect((await api.request('PUT', actionPath('plain'), { body: hello })).status).toBe(200);
});
afterEach(() => api.close());

const model = (method: string, name = 'classify', as: Account = alice): Promise<Reply> =>
  api.request(method, `/api/v1/gpu/functions/${encodeURIComponent(name)}/model`, { as });

const share = { shareClass: 100, smRequest: 1, smLimit: 1, memoryMiB: 2048 } as const;

/** Makes an instance of /alice/classify known, with the row of its process. */
async function show(container: string, version: string, changes: Partial<InstanceState> = {}): Promise<void> {
  const resident: Resident = {
    ...{ container, action: '/alice/classify', version, namespace: 'alice', device: 'GPU-0', share, memoryMiB: 2048 },
    ...{ heldMiB: 700, loadMs: 900, since: 1000, idleSince: 2000, activations: [] },
  };
  await setNode(api.state, nodeRow([a100('GPU-0')], [resident]));
  instances = [
    {
      ...{ id: container, function: '/alice/classify', namespace: 'alice', gpus: ['GPU-0'], memoryMiB: 2048 },
      ...{ share: { request: 1, limit: 1, class: 1 }, state: 'idle', tasks: [] },
      ...changes,
    },
  ];
}

const starting: InstanceState = {
  ...{ id: 'a1', function: '/alice/classify', namespace: 'alice', gpus: ['GPU-0'], memoryMiB: 2048 },
  ...{ share: { request: 1, limit: 1, class: 1 }, state: 'loading', tasks: [] },
};

function launched(statusCode: 0 | 3, error?: string): InvokeOutcome {
  const activation = {
    ...{ namespace: 'alice', name: 'classify', version: '0.0.1', subject: 'alice', activationId: 'a'.repeat(32) },
    ...{ start: 1, end: 1, duration: 0, logs: [], publish: false, annotations: [] },
    response: { statusCode, ...(error !== undefined && { result: { error } }) },
  };
  return { type: 'completed', activation };
}

test('a load launches one instance, however often and by how many at once it is asked for', async () => {
  api.onInvoke(async () => {
    await show('c1', '0.0.1');
    return launched(ActivationStatus.success);
  });
  const [first, second] = await Promise.all([model('POST'), model('POST', '/_/classify')]);
  const instance = {
    ...{ state: 'idle', container: 'c1', version: '0.0.1', invoker: 'invoker0', gpus: ['GPU-0'], share: 1 },
    ...{ memoryMiB: 2048, heldMiB: 700, loadMs: 900, since: 1000, idleSince: 2000, running: 0 },
  };
  const loaded = { action: '/alice/classify', version: '0.0.1', state: 'loaded', instances: [instance], waiting: 0 };
  expect([first.status, first.json]).toEqual([200, loaded]);
  expect([second.status, second.json]).toEqual([200, loaded]);
  expect((await model('POST')).status).toBe(200);
  expect(api.invocations).toHaveLength(1);
  expect(api.invocations[0]).toMatchObject({ launch: {}, payload: {}, action: { name: 'classify' } });
  expect((await model('GET')).json).toEqual(loaded);
});

test('a load that takes longer than a caller waits is answered 202, and is not begun again', async () => {
  api.onInvoke(() => {
    instances = [starting];
    return { type: 'accepted', activationId: 'a'.repeat(32) };
  });
  for (let count = 1; count <= 2; count += 1) {
    const reply = await model('POST');
    expect([reply.status, reply.json]).toMatchObject([202, { state: 'loading', instances: [{ state: 'loading' }] }]);
  }
  expect(api.invocations).toHaveLength(1);
});

test('a load is refused with the reason where there is no room or the code fails, and may be tried again', async () => {
  api.onInvoke(() => {
    throw instanceNotLaunched('GPU-0: its memory is given away');
  });
  const refused = await model('POST');
  const reason = 'The instance was not launched: GPU-0: its memory is given away.';
  expect([refused.status, errorOf(refused)]).toEqual([503, reason]);
  api.onInvoke(() => launched(ActivationStatus.whiskError, 'The instance failed: no such file.'));
  const failed = await model('POST');
  const failure = 'The instance was not launched: The instance failed: no such file.';
  expect([failed.status, errorOf(failed)]).toEqual([503, failure]);
});

test('an instance of an older version does not serve: a load launches another one, and a deletion ends it', async () => {
  await show('old', '0.0.0');
  expect((await model('GET')).json).toMatchObject({ state: 'unloaded', instances: [{ version: '0.0.0' }] });
  api.onInvoke(async () => {
    await show('new', '0.0.1');
    return launched(ActivationStatus.success);
  });
  expect((await model('POST')).json).toMatchObject({ state: 'loaded', instances: [{ container: 'new' }] });
  expect(api.invocations).toHaveLength(1);
});

test('a deletion retires what has a process, lists what has yet to start, and may be repeated', async () => {
  await show('c1', '0.0.1', { state: 'running', tasks: ['x'] });
  instances.push(starting);
  const path = '/api/v1/gpu/functions/classify/model';
  expect((await api.request('DELETE', `${path}?graceMs=soon`)).status).toBe(400);
  const deleted = await api.request('DELETE', `${path}?graceMs=500`);
  const left = [{ container: 'c1', state: 'draining', running: 1 }, { state: 'loading' }];
  expect([deleted.status, deleted.json]).toMatchObject([200, { state: 'loading', instances: left }]);
  expect((await api.state.rows(gpuDesiredTable)).get('invoker0')).toMatchObject({ retire: { c1: 500 } });
  instances = [];
  const again = await model('DELETE');
  expect([again.status, again.json]).toMatchObject([200, { state: 'unloaded', instances: [] }]);
});

test("the model of an action without a GPU is 400, of an unknown one 404, of a namespace that is not one's own 403", async () => {
  for (const method of ['GET', 'POST', 'DELETE']) {
    expect([method, (await model(method, 'plain')).status]).toEqual([method, 400]);
    expect([method, (await model(method, 'none')).status]).toEqual([method, 404]);
    expect([method, (await model(method, '/alice/classify', bob)).status]).toEqual([method, 403]);
  }
  expect(errorOf(await model('POST', 'plain'))).toContain("action 'plain' has no annotation 'gpu': it needs no GPU");
  expect(api.invocations).toHaveLength(0);
});

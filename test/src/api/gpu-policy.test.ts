import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { a100, nodeRow, setNode } from './gpu-nodes.js';
import { alice, startApi } from './harness.js';
import type { Account, Api } from './harness.js';

const path = '/api/v1/gpu/policy';

let api: Api;
beforeAll(async () => {
  api = await startApi({ config: { gpu: { policy: 'dilu' } } });
});
afterAll(() => api.close());

const shown = async (as: Account = alice): Promise<Record<string, unknown>> =>
  (await api.request('GET', path, { as })).json as Record<string, unknown>;

describe('parts of the policy without effect', () => {
  test('are none while no GPU is known', async () => {
    expect(await shown()).toMatchObject({ policy: 'dilu', inert: [] });
  });

  test('are named with what mends them, as the rows of nodes are', async () => {
    await setNode(api.state, nodeRow([a100('GPU-0')], []));
    expect((await shown()).inert).toEqual([
      {
        ...{ stage: 'share', part: 'dilu', mend: 'npm start -- --set gpu.tokens=true' },
        why: 'no GPU has kernel tokens, so that shares do not move between request and limit',
      },
      {
        ...{ stage: 'share', part: 'dilu', mend: 'wsk gpu profile ACTION_NAME' },
        why: 'no function has been profiled, so that requests and limits are assumed',
      },
    ]);
    await setNode(api.state, { ...nodeRow([a100('GPU-0')], []), version: 2, movesShares: true });
    expect((await shown()).inert).toMatchObject([{ mend: 'wsk gpu profile ACTION_NAME' }]);
  });
});

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { a100, nodeRow, setNode } from './gpu-nodes.js';
import { alice, errorOf, operator, startApi } from './harness.js';
import type { Account, Api, Reply } from './harness.js';

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

describe('another policy', () => {
  const put = (body: unknown, as = operator): Promise<Reply> => api.request('PUT', path, { as, body });
  const reset = (as = operator): Promise<Reply> => api.request('DELETE', path, { as });

  test('is set and reset by operators only', async () => {
    expect([(await put({ policy: 'auto' }, alice)).status, (await reset(alice)).status]).toEqual([403, 403]);
    expect(await shown()).toMatchObject({ policy: 'dilu', configured: 'dilu' });
  });

  test.each<[unknown, string]>([
    [{ policy: 'best' }, "there is no policy 'best'; there are auto, faashare"],
    [{ policy: { base: 'auto', order: 'best' } }, "there is no order stage 'best'"],
    [{ policy: { base: 'auto', settings: { slots: 1 } } }, "no setting 'slots'"],
    [{ policy: {} }, "there is no policy 'undefined'"],
    [{ policy: ['auto'] }, "'policy' must be a name or an object"],
    [{ policy: 'auto', minutes: 5 }, "'minutes' is no field of a policy that is set"],
    [['auto'], 'JSON object expected'],
  ])('is refused as %j', async (body, problem) => {
    const reply = await put(body);
    expect([reply.status, errorOf(reply)]).toEqual([400, expect.stringContaining(problem)]);
    expect(await shown()).toMatchObject({ policy: 'dilu' });
  });

  test('is in force at once, says that it differs from the configuration, and goes with a reset', async () => {
    const choice = { base: 'exclusive', share: 'unlimited', settings: { slots: 3 } };
    const name = 'exclusive share=unlimited slots=3';
    const by = operator.subject;
    const change = { at: expect.any(Number), by, from: 'dilu', to: name };
    expect((await put({ policy: choice })).json).toEqual(change);
    const inForce = await shown();
    expect(inForce).toMatchObject({ policy: name, configured: 'dilu', set: { at: expect.any(Number) } });
    expect(inForce).toMatchObject({ settingNotes: { slots: { source: 'operator' } } });
    // Names of operators are for operators.
    expect(JSON.stringify(inForce)).not.toContain(by);
    expect(await shown(operator)).toMatchObject({ set: { by }, changes: [change] });
    expect((await reset()).json).toMatchObject({ by, from: name, to: 'dilu' });
    expect(await shown()).not.toHaveProperty('set');
    expect(api.logLines.some((line) => line.includes('the GPU policy was changed') && line.includes(by))).toBe(true);
  });
});

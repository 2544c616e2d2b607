// More work than may wait: excess activations are refused in OpenWhisk's words, and accepted ones run.
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { ApiActivation } from '../support/api-client.js';
import { startPlatform } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';

const allowed = 50;
let platform: RunningPlatform;
beforeAll(async () => {
  const flags = ['--set', `maxQueuedActivations=${allowed}`, '--memory', '512', '--stem-cells', 'false'];
  platform = await startPlatform({ flags });
  const code = 'async function main() { await new Promise((done) => setTimeout(done, 100)); return {}; }';
  await platform.api.putAction('slow', code, { limits: { memory: 128 } });
  await platform.api.putAction('hello', 'function main() { return { hello: 1 }; }', { limits: { memory: 128 } });
});
afterAll(() => platform.stop());

test('a flood is refused beyond the bound, and all that was accepted is recorded once', async () => {
  const accepted: string[] = [];
  const refused: unknown[] = [];
  const submit = async (): Promise<void> => {
    const answer = await platform.api.request<{ activationId: string }>('POST', '_/actions/slow', {});
    if (answer.status === 202) accepted.push(answer.body.activationId);
    else refused.push(answer);
  };
  // Submits in waves, so that some activations are accepted again after others have ended.
  for (let wave = 0; wave < 10; wave++) {
    await Promise.all(Array.from({ length: 20 }, submit));
    await new Promise((done) => setTimeout(done, 50));
  }
  expect(accepted.length).toBeGreaterThanOrEqual(allowed);
  expect(refused.length).toBeGreaterThan(0);
  for (const answer of refused) {
    expect(answer).toMatchObject({
      status: 429,
      body: {
        error: expect.stringMatching(
          new RegExp(
            `^Too many concurrent requests in flight \\(count: ${allowed}, allowed: ${allowed}\\)\\. \\(settings: maxQueuedActivations, `,
          ),
        ),
        code: expect.any(String),
      },
    });
  }
  for (const id of accepted) expect((await platform.api.record(id)).response.success).toBe(true);
  const { body } = await platform.api.request<ApiActivation[]>('GET', '_/activations?name=slow&limit=200');
  expect(body.map(({ activationId }) => activationId).sort()).toEqual([...accepted].sort());
  expect((await platform.api.invokeForResult('hello')).body).toEqual({ hello: 1 });
});

test('a blocking invocation is refused like the others', async () => {
  const submissions = await Promise.all(
    Array.from({ length: allowed + 10 }, () =>
      platform.api.request<{ activationId: string }>('POST', '_/actions/slow', {}),
    ),
  );
  // A blocking invocation is accepted if one ends during the short time that it may wait.
  const answers = await Promise.all(Array.from({ length: 30 }, () => platform.api.invoke('hello')));
  expect(new Set(answers.map(({ status }) => status))).toContain(429);
  for (const { status, body } of submissions) if (status === 202) await platform.api.record(body.activationId);
  expect((await platform.api.invoke('hello')).status).toBe(200);
});

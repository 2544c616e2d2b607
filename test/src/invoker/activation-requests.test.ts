import { beforeEach, describe, expect, test } from '@jest/globals';
import { createParameterLock } from '@gpuwhisk/common/entities/parameter-encryption';
import type { ActivationMessage } from '@gpuwhisk/common/messages';
import { seededRandom } from '@gpuwhisk/common/system/random';
import type { RunnableAction } from '@gpuwhisk/invoker/activation/action-loader';
import { ActivationHarness, action, key128, message } from './activation-harness.js';

let harness: ActivationHarness;

beforeEach(async () => {
  harness = await ActivationHarness.open();
});

describe('what an activation asks of its container', () => {
  test('gives init parameters to the environment and the rest to the run', async () => {
    await harness.run();
    expect(harness.inits[0]?.env).toMatchObject({
      SECRET: 'shh',
      LIST: '[1]',
      __OW_ACTION_NAME: '/guest/package/hello',
      __OW_NAMESPACE: 'caller',
      __OW_API_KEY: 'u:key',
    });
    expect(harness.runs[0]).toMatchObject({
      value: { name: 'Ada' },
      action_name: '/guest/package/hello',
      api_key: 'u:key',
    });
  });

  test('readied ahead is told of no run', async () => {
    const entered = { ...action, warm: { imports: [], cuda: false, entry: 'load' } };
    await harness.run({}, entered);
    await harness.base.runFor(1000);
    expect(harness.inits).toHaveLength(2);
    expect(harness.inits[0]?.env).toMatchObject({
      __OW_ACTIVATION_ID: 'a',
      __OW_TRANSACTION_ID: 'tid',
      __OW_DEADLINE: expect.any(String),
    });
    expect(harness.inits[1]?.env).toMatchObject({ SECRET: 'shh', __OW_ACTION_NAME: '/guest/package/hello' });
    for (const name of ['__OW_ACTIVATION_ID', '__OW_TRANSACTION_ID', '__OW_DEADLINE']) {
      expect(harness.inits[1]?.env).not.toHaveProperty(name);
    }
  });

  test('tells who can unload the digest of its code, nobody else', async () => {
    const code = (): ReturnType<RunnableAction['code']> =>
      Promise.resolve({ code: 'the code', binary: false, digest: '5a' });
    await harness.run({}, { ...action, code });
    harness.unloading = 'none';
    await harness.run({ activationId: 'b', action: { path: 'guest', name: 'b' } }, { ...action, code });
    expect(harness.inits.map(({ digest }) => digest)).toEqual(['5a', undefined]);
  });

  test('gives null to the environment as the empty string', async () => {
    await harness.run({ content: { SECRET: null }, initArgs: ['SECRET'] });
    expect(harness.inits[0]?.env).toHaveProperty('SECRET', '');
  });

  test('decrypts arguments for the environment and the run', async () => {
    const lock = createParameterLock(
      { current: 'aes-128', keys: { 'aes-128': [key128] }, bound: true },
      seededRandom(1),
    );
    const given = [
      { key: 'name', value: { first: 'Ada' } },
      { key: 'SECRET', value: 'shh' },
    ];
    const locked = lock(given, 'guest/hello');
    const content = { ...Object.fromEntries(locked.map(({ key, value }) => [key, value])), plain: 1 };
    const arguments_ = { content, initArgs: ['SECRET'], lockedArgs: { name: 'aes-128', SECRET: 'aes-128' } };
    await harness.run({ ...arguments_, lockedIn: { name: 'guest/hello', SECRET: 'guest/hello' } });
    expect(harness.inits[0]?.env).toHaveProperty('SECRET', 'shh');
    expect(harness.runs[0]?.value).toEqual({ name: { first: 'Ada' }, plain: 1 });
    const moved = { name: 'guest/hello', SECRET: 'guest/other' };
    const { response } = await harness.run({ ...arguments_, activationId: 'b', lockedIn: moved });
    expect(response).toMatchObject({ statusCode: 3, result: { error: expect.stringContaining("'SECRET'") } });
    expect(harness.runs).toHaveLength(1);
  });

  test('whose arguments cannot be decrypted is recorded so and never run', async () => {
    const record = await harness.run({ content: { token: 'text' }, lockedArgs: { token: 'aes-256' } });
    expect(record.response).toEqual({
      statusCode: 3,
      result: { error: "The parameter 'token' is encrypted with 'aes-256', for which there is no key." },
    });
    expect([harness.inits, harness.runs]).toEqual([[], []]);
    expect((await harness.run({ activationId: 'b' })).response.statusCode).toBe(0);
  });

  test('with init parameters shares no container with another binding', async () => {
    const through = (binding: string): ActivationMessage['action'] => ({ ...message.action, binding });
    await harness.run({ action: through('caller/one') });
    await harness.run({ activationId: 'b', action: through('caller/two') });
    expect(harness.inits).toHaveLength(2);
    await harness.run({ activationId: 'c', action: through('caller/one') });
    expect(harness.inits).toHaveLength(2);
    await harness.run({ activationId: 'd', initArgs: [], action: through('caller/one') });
    await harness.run({ activationId: 'e', initArgs: [], action: through('caller/two') });
    expect(harness.inits).toHaveLength(3);
  });

  test('its key stays here where the annotation says so', async () => {
    await harness.run({}, { ...action, annotations: [{ key: 'provide-api-key', value: false }] });
    expect(harness.inits[0]?.env).not.toHaveProperty('__OW_API_KEY');
    expect(harness.runs[0]).not.toHaveProperty('api_key');
  });
});

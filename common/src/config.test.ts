import { describe, expect, test } from '@jest/globals';
import { ConfigError, loadConfig, withoutSecrets } from './config.js';

const key128 = 'ra1V6AfOYAv0jCzEdufIFA==';
const key256 = 'j5rLzhtxwzPyUVUy8/p8XJmBoKeDoSzNJP1SITJEY9E=';

describe('operatorKey', () => {
  const published = 'abczO3xZCLrMN6v2BKK1dXYFpXlPkccOFqm12CdAsMgRU4VrNZ9lyGVCGuMDGIwP';
  const own = `operator:${'x'.repeat(64)}`;

  test('is absent, and hidden where the configuration is shown', () => {
    expect(loadConfig().operatorKey).toBeUndefined();
    const config = loadConfig({ env: { GPUWHISK_OPERATOR_KEY: own } });
    expect(config.operatorKey).toBe(own);
    expect(JSON.stringify(withoutSecrets(config))).not.toContain('xxx');
  });

  test.each([
    ['short', 'operator:x', 'a secret of 64 characters'],
    ['empty', '', 'a secret of 64 characters'],
    ['published', `789c46b1-71f6-4ed5-8c54-816aa4f8c502:${published}`, "OpenWhisk's sources publish"],
    ['published, with another uuid', `operator:${published}`, "OpenWhisk's sources publish"],
  ])('is refused if it is %s', (_, operatorKey, text) => {
    expect(() => loadConfig({ flags: { operatorKey } })).toThrow(ConfigError);
    expect(() => loadConfig({ flags: { operatorKey } })).toThrow(text);
  });
});

describe('parameterStorage', () => {
  const load = (parameterStorage: object) => loadConfig({ base: { parameterStorage } });

  test('is off, without keys', () => {
    expect(loadConfig().parameterStorage).toEqual({ current: 'off', keys: {}, bound: true });
  });

  test('keeps old keys beside the current one, also from the environment', () => {
    const keys = { 'aes-128': [key128, key128], 'aes-256': [key256] };
    expect(load({ current: 'aes-256', keys }).parameterStorage).toEqual({ current: 'aes-256', keys, bound: true });
    const env = {
      GPUWHISK_PARAMETER_STORAGE__CURRENT: 'aes-128',
      GPUWHISK_PARAMETER_STORAGE__KEYS: JSON.stringify(keys),
    };
    expect(loadConfig({ env }).parameterStorage).toEqual({ current: 'aes-128', keys, bound: true });
  });

  test.each([
    [{ current: 'aes-128' }, 'the current cipher has no key'],
    [{ current: 'aes-512' }, 'parameterStorage.current'],
    [{ keys: { 'aes-128': [key256] } }, 'a key for aes-128 is 16 bytes in base64'],
    [{ keys: { 'aes-256': [key256, key128] } }, 'a key for aes-256 is 32 bytes in base64'],
    [{ keys: { 'aes-192': [key128] } }, 'aes-192'],
  ])('refuses %j', (storage, text) => {
    expect(() => load(storage)).toThrow(ConfigError);
    expect(() => load(storage)).toThrow(text);
  });

  test('hides its keys where the configuration is shown', () => {
    const shown = withoutSecrets(load({ current: 'aes-128', keys: { 'aes-128': [key128] } }));
    expect(shown.parameterStorage).toEqual({ current: 'aes-128', keys: { 'aes-128': ['(hidden)'] }, bound: true });
    expect(JSON.stringify(shown)).not.toContain(key128);
  });
});

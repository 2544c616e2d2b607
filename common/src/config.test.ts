import { describe, expect, test } from '@jest/globals';
import { ConfigError, loadConfig, withoutSecrets } from './config.js';

const key128 = 'ra1V6AfOYAv0jCzEdufIFA==';
const key256 = 'j5rLzhtxwzPyUVUy8/p8XJmBoKeDoSzNJP1SITJEY9E=';

describe('parameterStorage', () => {
  const load = (parameterStorage: object) => loadConfig({ base: { parameterStorage } });

  test('is off, without keys', () => {
    expect(loadConfig().parameterStorage).toEqual({ current: 'off', keys: {} });
  });

  test('keeps old keys beside the current one, also from the environment', () => {
    const keys = { 'aes-128': [key128, key128], 'aes-256': [key256] };
    expect(load({ current: 'aes-256', keys }).parameterStorage).toEqual({ current: 'aes-256', keys });
    const env = {
      GPUWHISK_PARAMETER_STORAGE__CURRENT: 'aes-128',
      GPUWHISK_PARAMETER_STORAGE__KEYS: JSON.stringify(keys),
    };
    expect(loadConfig({ env }).parameterStorage).toEqual({ current: 'aes-128', keys });
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
    expect(shown.parameterStorage).toEqual({ current: 'aes-128', keys: { 'aes-128': ['(hidden)'] } });
    expect(JSON.stringify(shown)).not.toContain(key128);
  });
});

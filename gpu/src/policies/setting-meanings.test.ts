import { expect, test } from '@jest/globals';
import { settingMeanings, settingSource } from './setting-meanings.js';
import { stages } from './stages.js';

test('every setting of every stage has a meaning, and no other one has', () => {
  const known = Object.values(stages).flatMap((entries) =>
    Object.values(entries as Record<string, { settings: object }>).flatMap(({ settings }) => Object.keys(settings)),
  );
  expect([...new Set(known)].sort()).toEqual(Object.keys(settingMeanings).sort());
});

test('a value comes from the configuration, from the policy or from the stage', () => {
  const choice = { base: 'dilu', settings: { omega: 0.9 } };
  expect([settingSource(choice, 'omega'), settingSource(choice, 'gamma')]).toEqual(['configuration', 'default']);
  expect(settingSource('auto', 'firstSlowdown')).toBe('policy');
});

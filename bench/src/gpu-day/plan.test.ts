import { describe, expect, test } from '@jest/globals';
import { limitOf, merged, stagesOf } from './plan.js';
import { firstError, isClean, pageOf } from './report.js';
import type { KitReport, StageReport, StageState } from './report.js';

const report = (stage: string, state: StageState, more: Partial<StageReport> = {}): StageReport => ({
  stage,
  state,
  tookS: 1,
  checks: [],
  metrics: {},
  notes: [],
  ...more,
});
const names = (...given: Parameters<typeof stagesOf>): string[] => stagesOf(...given).map(({ name }) => name);

describe('stages of a run', () => {
  test('are all of them, in the order of their worth, in a first run', () => {
    expect(names([])).toEqual(['facts', 'platform', 'injection', 'tokens', 'colocation']);
  });

  test('are, in a second run, those that have not passed, and then co-location', () => {
    const earlier = [report('facts', 'passed'), report('platform', 'failed'), report('injection', 'cut off')];
    expect(names(earlier)).toEqual(['platform', 'injection', 'tokens', 'colocation']);
    expect(names([...earlier, report('tokens', 'passed'), report('colocation', 'passed')])).toEqual([
      'platform',
      'injection',
      'colocation',
    ]);
  });

  test('are the named ones, if any are named', () => {
    expect(names([report('facts', 'passed')], ['tokens', 'facts'])).toEqual(['facts', 'tokens']);
    expect(() => stagesOf([], ['none'])).toThrow("There is no stage 'none'.");
  });

  test('get their limit, or what is left, or are not begun', () => {
    expect(limitOf({ name: 'a', limitS: 60 }, 100, false)).toBe(60);
    expect(limitOf({ name: 'a', limitS: 60 }, 20, false)).toBe(20);
    expect(limitOf({ name: 'a' }, 100, false)).toBe(100);
    expect(limitOf({ name: 'a' }, 100, true)).toBe(15);
    expect(limitOf({ name: 'a' }, 5, false)).toBeUndefined();
  });

  test('keep earlier reports beside newer ones', () => {
    const all = merged([report('facts', 'passed'), report('platform', 'failed')], [report('platform', 'passed')]);
    expect(all.map(({ stage, state }) => [stage, state])).toEqual([
      ['facts', 'passed'],
      ['platform', 'passed'],
    ]);
  });
});

describe('the page', () => {
  const kit = (stages: StageReport[], left: string[] = []): KitReport => ({
    commit: 'abc',
    date: '2026-01-01',
    device: 'NVIDIA H100',
    driver: '580.1',
    simulated: false,
    seed: 1,
    tookS: 10,
    left,
    stages,
  });

  test('has states, failures and figures, and is clean only if all is', () => {
    const failed = report('platform', 'failed', {
      checks: [{ name: 'share of 30 %', passed: false, detail: '0.41 of the throughput\nmore' }],
      metrics: { 'firstRequestMs.warm': 1.23456 },
    });
    expect(firstError(failed)).toBe('share of 30 %: 0.41 of the throughput');
    const page = pageOf(kit([report('facts', 'passed'), failed]));
    expect(page).toContain('FAILED share of 30 %: 0.41 of the throughput');
    expect(page).toMatch(/firstRequestMs\.warm +1\.235/);
    expect(page).not.toContain('All stages passed.');
    expect(isClean(kit([report('facts', 'passed')]))).toBe(true);
    expect(isClean(kit([report('facts', 'passed')], ['1 process']))).toBe(false);
    expect(isClean(kit([report('facts', 'not run')]))).toBe(false);
  });
});

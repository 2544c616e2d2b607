import { describe, expect, test } from '@jest/globals';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { balanced, planSamples, soloId } from './plan.js';
import { mixOf } from './workloads.js';

const mix = mixOf({ simulated: false, torch: true });
const options = { count: 900, seed: 1, mps: true };

describe('the plan of co-location samples', () => {
  const plan = planSamples(mix, options);
  const sets = plan.filter(({ members }) => members.length > 1);
  const withTraining = sets.filter(({ members }) => mix.trainings.includes(members[0]?.workload ?? ''));

  test('measures each member alone, on the whole device and at its percentage, before its first set', () => {
    plan.forEach(({ mode, members }, i) => {
      const before = new Set(plan.slice(0, i).map(({ id }) => id));
      if (members.length === 1) return;
      for (const member of members) {
        expect(before.has(soloId(mode, member))).toBe(true);
        expect(before.has(soloId(mode, { ...member, percent: 100 }))).toBe(true);
      }
    });
  });

  test('has training beside one to four inferences in every sharing, and sets of two to eight inferences', () => {
    expect(sets).toHaveLength(900);
    expect(withTraining).toHaveLength(600);
    const combinations = new Set(
      withTraining.map(({ mode, members: [training, ...inferences] }) =>
        [mode, training?.workload, training?.percent, inferences[0]?.percent, inferences.length].join(),
      ),
    );
    expect(combinations.size).toBe(3 * 4 * 4);
    const others = sets.filter((sample) => !withTraining.includes(sample));
    expect(new Set(others.map(({ members }) => members.length))).toEqual(new Set([2, 3, 4, 5, 6, 7, 8]));
    const even = others.filter(({ mode, members }) => mode === 'mps' && members.some(({ percent }) => percent < 100));
    expect(even.length).toBeGreaterThan(90);
    for (const { members } of even) expect(members.length * (members[0]?.percent ?? 0)).toBeLessThanOrEqual(100);
  });

  test.each([24, 60, 200, 432])('is balanced after %i sets with training', (count) => {
    const first = withTraining.slice(0, count);
    const factors: ((sample: (typeof first)[number]) => string)[] = [
      ({ members }) => members[0]?.workload ?? '',
      ({ members }) => members[1]?.workload.split(':')[0] ?? '',
      ({ members }) => members[1]?.workload.split(':')[1] ?? '',
      ({ members }) => `${members.length}`,
      ({ mode, members }) => `${mode}/${members[0]?.percent}`,
    ];
    for (const levelOf of factors) {
      const counts = new Map<string, number>();
      for (const sample of first) counts.set(levelOf(sample), (counts.get(levelOf(sample)) ?? 0) + 1);
      expect(Math.max(...counts.values()) - Math.min(...counts.values())).toBeLessThanOrEqual(2);
    }
  });

  test('deals all inferences equally often', () => {
    const dealt = new Map<string, number>();
    for (const { members } of sets) {
      if (mix.trainings.includes(members[0]?.workload ?? '')) continue;
      for (const { workload } of members) dealt.set(workload, (dealt.get(workload) ?? 0) + 1);
    }
    expect(dealt.size).toBe(9);
    expect(Math.max(...dealt.values()) - Math.min(...dealt.values())).toBeLessThanOrEqual(1);
  });

  test('names each sample once, and the same for the same seed; a lower count is a prefix', () => {
    expect(new Set(plan.map(({ id }) => id)).size).toBe(plan.length);
    expect(planSamples(mix, options)).toEqual(plan);
    expect(planSamples(mix, { ...options, seed: 2 })).not.toEqual(plan);
    const few = planSamples(mix, { ...options, count: 50 });
    expect(plan.slice(0, few.length)).toEqual(few);
  });

  test('has only time slices without MPS', () => {
    const without = planSamples(mix, { ...options, mps: false });
    expect(without.every(({ mode, members }) => mode === 'timeslice' && members.every((m) => m.percent === 100))).toBe(
      true,
    );
  });
});

test('a balanced order has each combination once', () => {
  const order = balanced([2, 3, 4], seededRandom(3));
  expect(new Set(order.map((cell) => cell.join())).size).toBe(24);
  expect(order).toHaveLength(24);
});

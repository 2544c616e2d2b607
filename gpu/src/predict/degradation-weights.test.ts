import { describe, expect, test } from '@jest/globals';
import { DegradationWeights, type WeightTerm } from './degradation-weights.js';

const group = { gpuType: 'a100-40', mode: 'mps', victim: 'workload', neighbour: 'function' } as const;
const term = (neighbour: string, pair: number, victim = 'bert'): WeightTerm => ({ group, victim, neighbour, pair });

describe('the update of equation 3.7', () => {
  test('moves each weight by 0.1·r·D / (0.01 + ΣD²)', () => {
    const weights = new DegradationWeights(100);
    weights.update([term('vgg', 0.2), term('gpt', 0.4)], 0.9);
    const residual = 0.9 - 0.6;
    const scale = 0.01 + 0.2 ** 2 + 0.4 ** 2;
    expect(weights.weight(group, 'bert', 'vgg', 2)).toBeCloseTo(1 + (0.1 * residual * 0.2) / scale, 12);
    expect(weights.weight(group, 'bert', 'gpt', 2)).toBeCloseTo(1 + (0.1 * residual * 0.4) / scale, 12);
  });

  test('counts a residual as 1 at most', () => {
    const weights = new DegradationWeights(100);
    weights.update([term('vgg', 0.5)], 500);
    expect(weights.weight(group, 'bert', 'vgg', 1)).toBeCloseTo(1 + (0.1 * 0.5) / 0.26, 12);
  });

  test.each([
    [1000, 4],
    [0, 0],
  ])('measured %d for long, the weight ends at %d', (measured, end) => {
    const weights = new DegradationWeights(100);
    for (let i = 0; i < 1000; i += 1) weights.update([term('vgg', 0.5)], measured);
    expect(weights.weight(group, 'bert', 'vgg', 1)).toBeCloseTo(end, 6);
  });

  test('leaves pairs without degradation alone, as no weight can explain anything by them', () => {
    const weights = new DegradationWeights(100);
    weights.update([term('vgg', 0)], 0.5);
    expect(weights.size).toBe(0);
  });
});

describe('a weight that was never updated', () => {
  test('falls back to its pair, then to the number of neighbours, then to 1', () => {
    const weights = new DegradationWeights(100);
    expect(weights.weight(group, 'bert', 'vgg', 3)).toBe(1);
    for (let i = 0; i < 50; i += 1) {
      weights.update([term('vgg', 0.2), term('gpt', 0.2), term('gpt', 0.2)], 1.2);
    }
    const exact = weights.weight(group, 'bert', 'vgg', 3);
    expect(exact).toBeGreaterThan(1.5);
    const ofPair = weights.weight(group, 'bert', 'vgg', 5);
    expect(ofPair).toBeGreaterThan(1.5);
    const ofCount = weights.weight(group, 'roberta', 'resnet', 3);
    expect(ofCount).toBeGreaterThan(1.5);
    expect(weights.weight(group, 'roberta', 'resnet', 2)).toBe(1);
    expect(weights.weight({ ...group, mode: 'timeslice' }, 'bert', 'vgg', 3)).toBe(1);
    expect(weights.weight({ ...group, neighbour: 'workload' }, 'bert', 'vgg', 3)).toBe(1);
    expect(weights.weight({ ...group, gpuType: 'v100' }, 'bert', 'vgg', 3)).toBe(1);
  });

  test('from eight neighbours on there is one weight', () => {
    const weights = new DegradationWeights(100);
    const eleven = Array.from({ length: 11 }, () => term('vgg', 0.1));
    weights.update(eleven, 2);
    expect(weights.weight(group, 'bert', 'vgg', 8)).toBe(weights.weight(group, 'bert', 'vgg', 11));
    expect(weights.weight(group, 'bert', 'vgg', 8)).not.toBe(1);
  });
});

test('of too many pairs those not updated for longest are forgotten', () => {
  const weights = new DegradationWeights(10);
  for (let i = 0; i < 20; i += 1) {
    weights.update([term('old', 0.3)], 2);
    weights.update([term(`n${i}`, 0.3)], 2);
  }
  expect(weights.size).toBeLessThanOrEqual(10);
  const known = weights.state().pairs.map(([, , neighbour]) => neighbour);
  expect(known).toEqual(['n16', 'n17', 'n18', 'old', 'n19']);
});

describe('stored weights', () => {
  const weights = new DegradationWeights(100);
  weights.update([term('vgg', 0.2), term('gpt', 0.4)], 0.9);
  weights.update([term('vgg', 0.2)], 0.9);

  test('come back as they were', () => {
    const state = JSON.parse(JSON.stringify(weights.state())) as ReturnType<typeof weights.state>;
    const restored = new DegradationWeights(100, state);
    expect(restored.state()).toEqual(weights.state());
    expect(restored.size).toBe(weights.size);
    expect(restored.weight(group, 'bert', 'vgg', 2)).toBe(weights.weight(group, 'bert', 'vgg', 2));
  });

  test('of another version are refused, absurd ones left out', () => {
    const state = weights.state();
    expect(() => new DegradationWeights(100, { ...state, version: 2 as 1 })).toThrow(
      'Weights of version 2 cannot be read',
    );
    const odd = { ...state, pairs: state.pairs.map(([at, a, b]) => [at, a, b, [NaN, -3, 99]] as const) };
    expect(new DegradationWeights(100, odd as never).size).toBe(0);
    expect(new DegradationWeights(2, state).size).toBeLessThanOrEqual(2);
  });
});

import { expect } from '@jest/globals';
import { valueOf } from './trial.js';
import type { Activation, Trial } from './trial.js';

const memoryOf = ({ annotations }: Activation): unknown =>
  (valueOf(annotations, 'limits') as { memory: number }).memory;

/**
 * Expects the record of a sequence or composition to list `count` activations with it as their cause. Its duration must
 * be the sum of theirs, and its memory the largest of theirs. Resolves with the records of these activations.
 */
export async function expectComponents(t: Trial, record: Activation, count: number): Promise<Activation[]> {
  expect(record.logs).toHaveLength(count);
  const components = await Promise.all(record.logs.map((id) => t.record(id)));
  for (const one of components) {
    expect(one.cause).toBe(record.activationId);
    expect(valueOf(one.annotations, 'causedBy')).toBe('sequence');
    expect(valueOf(one.annotations, 'waitTime')).toEqual(expect.any(Number));
  }
  expect(record.duration).toBe(components.reduce((sum, { duration }) => sum + duration, 0));
  expect(memoryOf(record)).toBe(Math.max(...components.map((one) => Number(memoryOf(one)))));
  return components;
}

import { expect, test } from '@jest/globals';
import * as errors from './errors.js';

test('an ApiError is recognised across copies of the module', () => {
  const foreign = { [Symbol.for('gpuwhisk.ApiError')]: true, status: 404, message: 'x' };
  expect(errors.isApiError(foreign)).toBe(true);
  expect(errors.isApiError(errors.noSuchEntity())).toBe(true);
  for (const other of [new Error('x'), null, undefined, 'x', {}]) expect(errors.isApiError(other)).toBe(false);
});

test('every text of the table has a status of an error', () => {
  const table = Object.entries(errors).filter(([name]) => name !== 'ApiError' && name !== 'isApiError');
  for (const [, make] of table) {
    const error = (make as (...values: unknown[]) => errors.ApiError)(['GET'], 1, 2);
    // A web action that is not done yet is answered with an error's body and this status.
    if (error.status !== 202) expect(error.status).toBeGreaterThanOrEqual(400);
    expect(error.message).toMatch(/^\S.*\S$/s);
  }
});

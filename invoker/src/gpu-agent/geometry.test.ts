import { expect, test } from '@jest/globals';
import { inOrderOfCreation } from './geometry.js';

test('slices of three come first, then the largest; what was given is left as it is', () => {
  const wanted = ['1g.5gb', '4g.20gb', '2g.10gb', '3g.20gb', '3g.20gb'];
  expect(inOrderOfCreation(wanted)).toEqual(['3g.20gb', '3g.20gb', '4g.20gb', '2g.10gb', '1g.5gb']);
  expect(wanted[0]).toBe('1g.5gb');
});

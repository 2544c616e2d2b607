import { describe, expect, test } from '@jest/globals';
import { isNestedTooDeeply, maxJsonDepth } from './json.js';

const nested = (open: string, close: string, depth: number): string => open.repeat(depth) + '1' + close.repeat(depth);

describe('nesting', () => {
  test.each([
    ['arrays', '[', ']'],
    ['objects', '{"a":', '}'],
    ['both', '[{"a":[', ']}]'],
  ])('of %s is counted', (_, open, close) => {
    const levels = open.replace(/[^[{]/g, '').length;
    const most = Math.floor(maxJsonDepth / levels);
    expect(isNestedTooDeeply(nested(open, close, most))).toBe(false);
    expect(isNestedTooDeeply(nested(open, close, most + 1))).toBe(true);
  });

  test('side by side is not deep', () => {
    expect(isNestedTooDeeply(JSON.stringify(Array.from({ length: 5000 }, () => [{}])))).toBe(false);
  });

  test.each(['[', '{"', '\\', '\\"[', '"', 'a\\\\'])('within strings does not count: %s', (piece) => {
    const text = JSON.stringify({ [piece.repeat(3000)]: [piece.repeat(3000), piece] });
    expect(isNestedTooDeeply(text)).toBe(false);
    const deep = nested('[', ']', maxJsonDepth).replace('1', text);
    expect(isNestedTooDeeply(deep)).toBe(true);
  });
});

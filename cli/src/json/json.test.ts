import { describe, expect, test } from '@jest/globals';
import { sortKeys, stringify } from './json.js';
import { parseJson } from './parse.js';

const roundTrip = (text: string): string => stringify(parseJson(text, { whole: true }));

/** Deterministic numbers in [0, 1): mulberry32. */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

const snippets = [
  '{',
  '}',
  '[',
  ']',
  ',',
  ':',
  '"',
  '"a"',
  '\\',
  '\\u00e9',
  '\\n',
  ' ',
  '\n',
  '\t',
  '1',
  '-',
  '0',
  '.5',
  'e3',
  'true',
  'false',
  'nul',
  'null',
  'é',
  '\u2028',
  '\u0000',
  '😀',
];

function randomValue(random: () => number, depth: number): unknown {
  const kind = Math.floor(random() * (depth > 3 ? 5 : 7));
  const count = Math.floor(random() * 4);
  const items = (): unknown[] => Array.from({ length: count }, () => randomValue(random, depth + 1));
  if (kind === 0) return null;
  if (kind === 1) return random() < 0.5;
  if (kind === 2) return Math.floor(random() * 1e6) / 100 - 5000;
  if (kind < 5) return items().length + snippets.filter(() => random() < 0.2).join('');
  return kind === 5
    ? items()
    : Object.fromEntries(items().map((value, index) => [`${index}${snippets[index + 6]}`, value]));
}

describe('parseJson and stringify', () => {
  test('keep numbers as they are written', () => {
    expect(roundTrip('[12345678901234567890, 1.50, -0, 1E+5, 0.1e-7]')).toBe(
      '[12345678901234567890,1.50,-0,1E+5,0.1e-7]',
    );
  });

  test('keep the order of keys, even of those that look like numbers', () => {
    expect(roundTrip('{"b": 1, "2": 2, "1": 3, "__proto__": 4}')).toBe('{"b":1,"2":2,"1":3,"__proto__":4}');
  });

  test('sortKeys sorts at every depth', () => {
    expect(stringify(sortKeys(parseJson('{"b":[{"d":1,"c":2}],"B":0,"a":{}}')))).toBe(
      '{"B":0,"a":{},"b":[{"c":2,"d":1}]}',
    );
  });

  test('indented output is that of JSON.stringify', () => {
    const value = { a: [], b: {}, c: [1, [2, { d: null }]], e: 'x' };
    expect(stringify(parseJson(JSON.stringify(value)), 4)).toBe(JSON.stringify(value, null, 4));
  });

  test('line separators are escaped', () => {
    expect(roundTrip('"\u2028\u2029"')).toBe('"\\u2028\\u2029"');
  });

  test('text after the value counts only when it is asked for', () => {
    expect(stringify(parseJson(' {"a":1} rest'))).toBe('{"a":1}');
    expect(() => parseJson('{"a":1} rest', { whole: true })).toThrow("invalid character 'r' after top-level value");
  });

  test.each([
    ['', 'EOF'],
    ['{', 'unexpected EOF'],
    ['{"a"', 'unexpected EOF'],
    ['{a', "invalid character 'a' looking for beginning of object key string"],
    ['{"a" 1', "invalid character '1' after object key"],
    ['{"a":1 2', "invalid character '2' after object key:value pair"],
    ['[1 2', "invalid character '2' after array element"],
    ['[x', "invalid character 'x' looking for beginning of value"],
    ['"\n"', "invalid character '\\n' in string literal"],
    ['"\\x"', "invalid character 'x' in string escape code"],
    ['"\\u12g4"', "invalid character 'g' in \\u hexadecimal character escape"],
    ['nuls', "invalid character 's' in literal null (expecting 'l')"],
    ['-x', "invalid character 'x' in numeric literal"],
    ['1.x', "invalid character 'x' after decimal point in numeric literal"],
  ])('%j is refused: %s', (text, message) => {
    expect(() => parseJson(text)).toThrow(new SyntaxError(message));
  });

  test('nesting has a limit', () => {
    expect(() => parseJson('['.repeat(1_000_000))).toThrow('exceeded max depth');
  });

  test('agree with JSON.parse on random values and on random text', () => {
    for (let seed = 0; seed < 2000; seed++) {
      const random = randomFrom(seed);
      const value = randomValue(random, 0);
      expect(JSON.parse(roundTrip(JSON.stringify(value, null, seed % 3)))).toEqual(value);
      const text = Array.from(
        { length: 1 + Math.floor(random() * 8) },
        () => snippets[Math.floor(random() * snippets.length)],
      ).join('');
      expect({ seed, text, value: attempt(() => JSON.parse(roundTrip(text)) as unknown) }).toEqual({
        seed,
        text,
        value: attempt(() => JSON.parse(text) as unknown),
      });
    }
  });
});

function attempt(read: () => unknown): unknown {
  try {
    return read();
  } catch (error) {
    if (error instanceof SyntaxError) return 'refused';
    throw error;
  }
}

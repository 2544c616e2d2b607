// Unusual values, and changes of good ones. All of them follow from the seed.
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import { isJsonObject } from '@gpuwhisk/common/json';
import { randomFraction } from '@gpuwhisk/common/system/random';
import type { Random } from '@gpuwhisk/common/system/random';

/** True with this probability. */
export const chance = (random: Random, probability: number): boolean => randomFraction(random) < probability;

/** One of the values. */
export function pick<Value>(random: Random, values: readonly Value[]): Value {
  return values[random.uint32() % values.length] as Value;
}

const texts = [
  ...[
    '',
    ' ',
    '_',
    '.',
    '..',
    '/',
    '//',
    '\\',
    '%',
    '%zz',
    '%00',
    '\0',
    '\n',
    '\r\n',
    '\t',
    '\u2028',
    '\ufeff',
    '\ud800',
  ],
  ...['\udfff', 'é', '世界', '🙂', 'a\u0301', '-1', '0', 'NaN', 'null', 'true', '[]', '{}', '__proto__', 'constructor'],
  ...['toString', 'hasOwnProperty', 'nodejs:default', 'python:3', 'sequence', 'blackbox', 'default', 'alice/pkg/act'],
  ...['/alice/act', '/_/act', '//', '/a/b/c/d', '../../etc/passwd', '_design/whisks', 'alice/limits', '1 MB', '-1 B'],
  ...[
    'aes-256',
    'noop',
    'x'.repeat(300),
    'x'.repeat(70_000),
    '\u0000'.repeat(50),
    '0.0.1',
    '1.2.3.4',
    '99999999999999999999',
  ],
  ...[
    'dd',
    'abcd',
    'AAAA====',
    'UEsDBAoAAAAAAA==',
    'H4sIAAAAAAAAAw==',
    '$(id)',
    "' OR 1=1 --",
    '<script>',
    '${jndi:x}',
  ],
];
const numbers = [
  0,
  -0,
  1,
  -1,
  0.5,
  1e21,
  -1e21,
  1e308,
  5e-324,
  2 ** 31,
  -(2 ** 31),
  2 ** 53,
  2 ** 53 + 2,
  256,
  257,
  200,
  201,
];

/** A bad text. */
export const badText = (random: Random): string => pick(random, texts);

/** A value of any type. */
export function badValue(random: Random, depth = 0): JsonValue {
  switch (random.uint32() % (depth > 3 ? 4 : 7)) {
    case 0:
      return badText(random);
    case 1:
      return pick(random, numbers);
    case 2:
      return pick(random, [null, true, false]);
    case 3:
      return pick<JsonValue>(random, [{}, [], [[]], [null], [{}], { key: 1 }, { error: 'x' }]);
    case 4:
      return Array.from({ length: random.uint32() % 4 }, () => badValue(random, depth + 1));
    default:
      return Object.fromEntries(
        Array.from({ length: random.uint32() % 4 }, () => [badText(random).slice(0, 40), badValue(random, depth + 1)]),
      );
  }
}

/**
 * A value with errors in some of its parts, sometimes in none: parts are replaced, left out or repeated, and names are
 * added.
 */
export function spoiled(random: Random, value: JsonValue, probability = 0.2): JsonValue {
  if (chance(random, probability / 3)) return badValue(random);
  if (Array.isArray(value)) {
    const items = value.map((item) => spoiled(random, item, probability));
    if (chance(random, probability) && items.length > 0) items.push(...items.slice(0, 3));
    if (chance(random, probability)) items.push(badValue(random));
    return items;
  }
  if (!isJsonObject(value)) return chance(random, probability) ? badValue(random) : value;
  const entries: [string, JsonValue][] = [];
  for (const [name, inner] of Object.entries(value)) {
    if (chance(random, probability / 2)) continue;
    entries.push([name, spoiled(random, inner, probability)]);
  }
  if (chance(random, probability)) entries.push([badText(random).slice(0, 40), badValue(random)]);
  return ownEntries(entries);
}

/** The object as JSON.parse makes it: `__proto__` is an ordinary property. */
function ownEntries(entries: readonly [string, JsonValue][]): JsonObject {
  return Object.fromEntries(entries);
}

/** JSON text, sometimes damaged: cut, with a byte changed, or with bytes inserted before, within or after it. */
export function spoiledText(random: Random, value: JsonValue): Buffer {
  const text = Buffer.from(JSON.stringify(value) ?? '');
  const at = text.length === 0 ? 0 : random.uint32() % text.length;
  switch (random.uint32() % 40) {
    case 0:
      return text.subarray(0, at);
    case 1: {
      const changed = Buffer.from(text);
      if (changed.length > 0) changed[at] = random.uint32() % 256;
      return changed;
    }
    case 2:
      return Buffer.concat([text.subarray(0, at), Buffer.from(pick(random, insertions)), text.subarray(at)]);
    case 3:
      return Buffer.concat([Buffer.from(pick(random, insertions)), text]);
    case 4:
      return Buffer.concat([text, text]);
    case 5: {
      const depth = pick(random, [10, 1000, 20_000]);
      const open = pick(random, ['[', '{"a":']);
      return Buffer.from(
        open.repeat(depth) + (chance(random, 0.5) ? `1${(open === '[' ? ']' : '}').repeat(depth)}` : ''),
      );
    }
    case 6:
      return Buffer.from(random.bytes(random.uint32() % 200));
    case 7:
      return Buffer.alloc(0);
    default:
      return text;
  }
}

const insertions: readonly string[] = [
  '\ufeff',
  '\0',
  ',',
  '//x\n',
  '1e999',
  '\\ud800',
  '"\\ud800"',
  '"a":1,"a":2,',
  'NaN',
  "'",
  '\r\n',
];

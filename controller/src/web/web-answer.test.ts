import { validateHeaderName, validateHeaderValue } from 'node:http';
import { expect, test } from '@jest/globals';
import { isApiError } from '@gpuwhisk/common/errors';
import type { JsonValue } from '@gpuwhisk/common/json';
import { randomFraction, seededRandom } from '@gpuwhisk/common/system/random';
import { httpAnswer } from './web-answer.js';

const results = 20_000;

test('whatever an action returns is refused, or can be written as one answer', () => {
  const random = seededRandom(1);
  const pick = <Item>(items: readonly Item[]): Item => items[Math.floor(randomFraction(random) * items.length)] as Item;
  const names = ['content-type', 'Set-Cookie', 'x', 'x\r\ny', '', 'ä', 'content-length', '__proto__', 'a:b', 'x y'];
  const types = ['text/html', 'image/png', 'a/b; c', 'application/json', 'x/y; charset="\\""', 'text/plain;charset=\0'];
  const texts = ['', 'YWJj', 'a\r\nb: c', 'é', '日本', '\0', '=', 'AA=A', ...types];
  const scalars: readonly JsonValue[] = [
    null,
    true,
    0,
    -1,
    1.5,
    1e300,
    200,
    204,
    304,
    99,
    1000,
    '200',
    '0x10',
    ...texts,
  ];
  const value = (depth: number): JsonValue => {
    const kind = depth > 3 ? 0 : randomFraction(random);
    if (kind < 0.7) return pick(scalars);
    const length = Math.floor(randomFraction(random) * 4);
    const items = Array.from({ length }, () => value(depth + 1));
    if (kind < 0.85) return items;
    return Object.fromEntries(items.map((item) => [pick([...names, 'body', 'statusCode', 'headers']), item]));
  };
  let written = 0;
  for (let count = 0; count < results; count++) {
    const headers = Object.fromEntries(Array.from({ length: 2 }, () => [pick(names), value(2)]));
    const result = count % 10 === 0 ? value(0) : { statusCode: value(3), headers, body: value(1) };
    try {
      const answer = httpAnswer(result);
      const pairs = [...(answer.headers ?? [])];
      if (answer.contentType) pairs.push('Content-Type', answer.contentType);
      for (let at = 0; at < pairs.length; at += 2) {
        validateHeaderName(pairs[at] as string);
        validateHeaderValue(pairs[at] as string, pairs[at + 1] as string);
      }
      expect(answer.status >= 200 && answer.status <= 999).toBe(true);
      written++;
    } catch (error) {
      if (!isApiError(error)) throw new Error(`httpAnswer of ${JSON.stringify(result)}`, { cause: error });
      expect(error.status).toBe(400);
    }
  }
  expect(written).toBeGreaterThan(results / 100);
  expect(written).toBeLessThan(results);
});

import { describe, expect, test } from '@jest/globals';
import { createHash, randomBytes } from 'node:crypto';
import { LargeCode } from '@gpuwhisk/common/entities/large-code';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { encodeParts, initParts } from './frames.js';
import { largeJson, largePayload } from './large-init.js';
import type { LargePayload } from './large-init.js';

const request = { name: 'a', main: 'main', env: { __OW_NAMESPACE: 'n', KEY: '"value"' } };
const text = Buffer.from('"é€😀\n\\ \u0001'.repeat(100_000));
const archive = randomBytes(1_200_001);
const whole = ({ pieces, length }: LargePayload): Buffer => {
  const bytes = Buffer.concat(pieces);
  expect(bytes.length).toBe(length);
  return bytes;
};

describe.each([
  ['text', text, false],
  ['an archive', archive, true],
] as const)('an init request with large code: %s', (_, bytes, binary) => {
  const given = { ...request, binary };
  const code = bytes.toString(binary ? 'base64' : 'utf8');
  const digest = createHash('sha256').update(bytes).digest('hex');

  test('is in parts what it is with small code', async () => {
    const payload = await largePayload(systemClock, { ...given, digest }, new LargeCode(bytes), true);
    const parts = initParts({ ...given, code, digest });
    expect(Buffer.compare(whole(payload as LargePayload), encodeParts(parts as Exclude<typeof parts, string>))).toBe(0);
  });

  test('is refused in parts if the code is not the registered one', async () => {
    const wrong = '0'.repeat(64);
    expect(await largePayload(systemClock, { ...given, digest: wrong }, new LargeCode(bytes), true)).toBe(
      `The code's SHA-256 is ${digest}, not ${wrong} as registered.`,
    );
  });

  test('is JSON with the same code, also within `value`', async () => {
    const framed = await largePayload(systemClock, given, new LargeCode(bytes), false);
    expect(JSON.parse(whole(framed as LargePayload).toString())).toEqual({ ...given, code });
    const posted = await largeJson(systemClock, given, ['value'], new LargeCode(bytes), binary);
    expect(JSON.parse(whole(posted).toString())).toEqual({ value: { ...given, code } });
  });

  test('gives its code up once, when it has been written', async () => {
    let passed = 0;
    const large = new LargeCode(bytes, () => (passed += 1));
    const payload = (await largePayload(systemClock, given, large, false)) as LargePayload;
    expect([passed, large.bytes.length]).toEqual([0, bytes.length]);
    payload.written();
    large.passed();
    expect(passed).toBe(1);
    expect(() => large.bytes).toThrow('passed on');
  });
});

import { expect, test } from '@jest/globals';
import { isApiError } from '@gpuwhisk/common/errors';
import type { JsonObject } from '@gpuwhisk/common/json';
import { CodeScanner } from './code-scanner.js';

/** The JSON with its codes put back, when it comes in chunks of `size` bytes. */
function scanned(json: string, size: number): unknown {
  const bytes = Buffer.from(json);
  // Of a length that is known, or not.
  const scanner = new CodeScanner(size % 2 === 0 ? bytes.length : 0);
  for (let at = 0; at < bytes.length; at += size) scanner.push(Buffer.from(bytes.subarray(at, at + size)));
  const { rest, codes } = scanner.end();
  const value = JSON.parse(rest.toString('utf8')) as { exec?: JsonObject };
  for (const [field, text] of codes) {
    if (value.exec?.[field] === '') value.exec[field] = text.toString('utf8');
  }
  return value;
}

const sizes = [...Array.from({ length: 17 }, (_, at) => at + 1), 1000];

test.each([
  '{"exec":{"kind":"nodejs:20","code":"a\\n\\"b\\\\\\u00e9\\ud83d\\ude00é€😀\\/ end"},"limits":{"code":"kept"}}',
  '{"exec":{"code":"\\\\\\\\","binary":true}}',
  '{"exec":{"code":""},"annotations":[{"key":"exec","value":{"code":"other"}}]}',
  '{"a":["exec",{"code":"x"}],"exec":{"limits":{"code":"deep"},"code":"y","main":"code"}}',
  '{"\\u0065xec":{"\\u0063ode":"escaped names"}}',
  '{"exec":{"code":"first"},"exec":{"kind":"b","code":"last"}}',
  '{"exec":{"code":"text","code":5}}',
  '{"exec":{"code":5,"code":"text"}}',
  '{"exec":{"code":"text"},"exec":{"kind":"none"}}',
  '{"exec":[{"code":"in an array"}]}',
  '[{"exec":{"code":"in an array"}}]',
  '"exec"',
  ' { "exec" : { "jar" : "a\\tb" , "code" : "c" } } ',
  `{"exec":{"code":"x","${'long name '.repeat(20)}":"code"}}`,
])('%s is read as JSON.parse reads it, in chunks of any size', (json) => {
  for (const size of sizes) expect(scanned(json, size)).toEqual(JSON.parse(json));
});

test('a half of a pair in code becomes U+FFFD, as in UTF-8', () => {
  for (const size of sizes) {
    expect(scanned('{"exec":{"code":"a\\ud83d"}}', size)).toEqual({ exec: { code: 'a\ufffd' } });
    expect(scanned('{"exec":{"code":"\\ud83dx\\ude00"}}', size)).toEqual({ exec: { code: '\ufffdx\ufffd' } });
  }
});

test.each([
  '{"exec":{"code":"a\nb"}}',
  '{"exec":{"code":"a\\n\nb"}}',
  '{"exec":{"code":"a\\x"}}',
  '{"exec":{"code":"a\\u12"}}',
  '{"exec":{"code":"a',
  '{"exec":{"code":"a\\',
  '{"exec":{"code":"a"}',
  '{"exec":{"code":"a"}}}',
  '{"exec":{"code" "a"}}',
  '{"exec":{"a\\',
])('%j is refused', (json) => {
  for (const size of sizes) {
    let error: unknown;
    try {
      scanned(json, size);
    } catch (caught) {
      error = caught;
    }
    // What is no fault of a code shows when the rest is parsed.
    expect(error instanceof SyntaxError || (isApiError(error) && error.status === 400)).toBe(true);
  }
});

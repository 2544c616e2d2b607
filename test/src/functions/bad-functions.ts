import { expect } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import AdmZip from 'adm-zip';
import type { ActionOptions } from '../support/api-client.js';

/** A function that fails, and the expected answer, record and logs. */
export interface BadFunction {
  name: string;
  kind: 'nodejs' | 'python';
  code: string | Buffer;
  options?: ActionOptions;
  http: 200 | 502 | 500;
  status: 'success' | 'application error' | 'action developer error';
  /** `result` of the record's response; a text or pattern stands for `{error}`. */
  result: string | RegExp | object;
  /** Texts of the log's lines, without the line that a developer error appends. */
  logs?: unknown;
  timeout?: boolean;
  /** Whether it ends so only in a sandbox. */
  confined?: boolean;
}

const unexpectedExit = 'The action did not produce a valid response and exited unexpectedly.';
const notZip = Buffer.from('this is certainly no zip');
const brokenZip = (): Buffer => {
  const zip = new AdmZip();
  zip.addFile('package.json', Buffer.from('{}'));
  zip.addFile('index.js', randomBytes(4000));
  return zip.toBuffer().subarray(0, 3000);
};
const MB = 1024 * 1024;
const oversize = (bytes: number): RegExp =>
  new RegExp(
    `^The action produced a response that exceeded the allowed length: ${bytes} > ${MB} bytes. The truncated response was: \\{"text":"x{1000}`,
  );

/** Every function that fails by itself. */
export const badFunctions: BadFunction[] = [
  {
    name: 'code with a syntax error',
    kind: 'nodejs',
    code: 'function main( { return {}; }',
    http: 502,
    status: 'action developer error',
    result: /^Initialization has failed due to: .*SyntaxError: /s,
    logs: expect.arrayContaining([expect.stringContaining('SyntaxError')]),
  },
  {
    name: 'code with a syntax error',
    kind: 'python',
    code: 'def main(args)\n  return {}',
    http: 502,
    status: 'action developer error',
    result: 'The action failed to generate or locate a binary. See logs for details.',
    logs: expect.arrayContaining([expect.stringContaining('SyntaxError')]),
  },
  {
    name: 'code that throws while it is loaded',
    kind: 'nodejs',
    code: 'throw new Error("not today"); function main() {}',
    http: 502,
    status: 'action developer error',
    result: /^Initialization has failed due to: Error: not today/,
  },
  {
    name: 'code that throws while it is loaded',
    kind: 'python',
    code: 'raise ValueError("not today")\ndef main(args):\n  return {}',
    http: 502,
    status: 'action developer error',
    result: 'Cannot start action. Check logs for details. ValueError: not today',
    logs: expect.arrayContaining(['ValueError: not today']),
  },
  {
    name: 'no function main',
    kind: 'nodejs',
    code: 'function other() { return {}; }',
    http: 502,
    status: 'action developer error',
    result: "Initialization has failed due to: Action entrypoint 'main' is not a function.",
  },
  {
    name: 'a function that throws',
    kind: 'nodejs',
    code: 'function main() { console.log("before"); throw new Error("no such person"); }',
    http: 502,
    status: 'action developer error',
    result: 'An error has occurred: Error: no such person',
    logs: expect.arrayContaining(['before', 'Error: no such person']),
  },
  {
    name: 'a function whose promise is rejected',
    kind: 'nodejs',
    code: 'async function main() { throw new Error("no such person"); }',
    http: 502,
    status: 'application error',
    result: { error: expect.objectContaining({ name: 'Error', message: 'no such person' }) },
  },
  {
    name: 'a function that raises',
    kind: 'python',
    code: 'def main(args):\n  raise ValueError("no such person")',
    http: 502,
    status: 'application error',
    result: 'no such person',
    logs: expect.arrayContaining(['ValueError: no such person']),
  },
  {
    name: 'requirements that pip refuses',
    kind: 'python',
    code: 'def main(args):\n  return {}',
    options: { annotations: { requirements: ['gpuwhisk-nothing==1.0'] } },
    http: 502,
    status: 'action developer error',
    result:
      /^The requirements could not be installed: ERROR: Could not find [^\n]*\nERROR: No matching distribution found for gpuwhisk-nothing==1\.0$/,
    logs: [
      expect.stringMatching(/^The requirements could not be installed: ERROR: /),
      expect.stringMatching(/^ERROR: No matching distribution/),
    ],
  },
  {
    name: 'a function that exits',
    kind: 'nodejs',
    code: 'function main() { console.log("bye"); process.exit(3); }',
    http: 502,
    status: 'action developer error',
    result: unexpectedExit,
    logs: ['bye'],
  },
  {
    name: 'a function that exits',
    kind: 'python',
    code: 'import os\ndef main(args):\n  print("bye", flush=True)\n  os._exit(3)',
    http: 502,
    status: 'action developer error',
    result: unexpectedExit,
    // An injected function's frames follow.
    logs: expect.arrayContaining(['bye']),
  },
  {
    name: 'code that exits while it is loaded',
    kind: 'nodejs',
    code: 'process.exit(0);',
    http: 502,
    status: 'action developer error',
    result: 'The action did not initialize and exited unexpectedly.',
  },
  {
    name: 'code that exits while it is loaded',
    kind: 'python',
    code: 'import os\nos._exit(0)',
    http: 502,
    status: 'action developer error',
    result: 'The action did not initialize and exited unexpectedly.',
  },
  {
    name: 'a function that never answers',
    kind: 'nodejs',
    code: 'function main() { console.log("thinking"); return new Promise(() => {}); }',
    options: { limits: { timeout: 500 } },
    http: 502,
    status: 'action developer error',
    result: 'The action exceeded its time limits of 500 milliseconds.',
    logs: ['thinking'],
    timeout: true,
  },
  {
    name: 'a function in an endless loop',
    kind: 'nodejs',
    code: 'function main() { for (;;); }',
    options: { limits: { timeout: 500 } },
    http: 502,
    status: 'action developer error',
    result: 'The action exceeded its time limits of 500 milliseconds.',
    timeout: true,
  },
  {
    name: 'a function that never answers',
    kind: 'python',
    code: 'import time\ndef main(args):\n  print("thinking")\n  time.sleep(100)',
    options: { limits: { timeout: 500 } },
    http: 502,
    status: 'action developer error',
    result: 'The action exceeded its time limits of 500 milliseconds.',
    logs: ['thinking'],
    timeout: true,
  },
  {
    name: 'code whose loading never ends',
    kind: 'nodejs',
    code: 'for (;;);',
    options: { limits: { timeout: 500 } },
    http: 502,
    status: 'action developer error',
    result: 'The action exceeded its time limits of 500 milliseconds during initialization.',
    timeout: true,
  },
  {
    name: 'a function that returns a string',
    kind: 'nodejs',
    code: 'function main() { return "no"; }',
    http: 502,
    status: 'action developer error',
    result: 'The action did not return a dictionary.',
    logs: ['Result must be of type object but has type "string": no'],
  },
  {
    name: 'a function that returns a string',
    kind: 'python',
    code: 'def main(args):\n  return "no"',
    http: 502,
    status: 'action developer error',
    result: 'The action did not return a dictionary or array.',
  },
  {
    name: 'a function that returns undefined',
    kind: 'nodejs',
    code: 'function main() {}',
    http: 200,
    status: 'success',
    result: {},
  },
  {
    name: 'a function that returns None',
    kind: 'python',
    code: 'def main(args):\n  pass',
    http: 502,
    status: 'action developer error',
    result: /^The action did not /,
  },
  {
    name: 'a function that returns an error',
    kind: 'nodejs',
    code: 'function main() { return { error: { statusCode: 404 }, more: 1 }; }',
    http: 502,
    status: 'application error',
    result: { error: { statusCode: 404 } },
  },
  {
    name: 'a function that returns 10 MB',
    kind: 'nodejs',
    code: `function main() { return { text: 'x'.repeat(${10 * MB}) }; }`,
    http: 502,
    status: 'application error',
    result: oversize(10 * MB + '{"text":""}'.length),
  },
  {
    name: 'a function that returns 10 MB',
    kind: 'python',
    code: `def main(args):\n  return {"text": "x" * ${10 * MB}}`,
    http: 502,
    status: 'application error',
    result: oversize(10 * MB + '{"text":""}'.length),
  },
  {
    name: 'a function that exhausts its memory',
    kind: 'nodejs',
    code: 'function main() { const all = []; for (let i = 0; i < 500; i++) all.push(Buffer.alloc(1 << 20, 1)); return {}; }',
    confined: true,
    options: { limits: { memory: 128 } },
    http: 502,
    status: 'action developer error',
    result: 'The action exhausted its memory and was aborted.',
  },
  {
    name: 'a function that exhausts its memory',
    kind: 'python',
    code: 'def main(args):\n  all = [b"x" * (1 << 20) for _ in range(500)]\n  return {}',
    confined: true,
    options: { limits: { memory: 128 } },
    http: 502,
    status: 'action developer error',
    result: 'The action exhausted its memory and was aborted.',
  },
  {
    name: 'a zip that is no zip',
    kind: 'nodejs',
    code: notZip,
    http: 502,
    status: 'action developer error',
    result: /^Initialization has failed due to: There was an error uncompressing the action archive\./,
  },
  {
    name: 'a zip that is cut off',
    kind: 'nodejs',
    code: brokenZip(),
    http: 502,
    status: 'action developer error',
    result: /^Initialization has failed due to: There was an error uncompressing the action Zip archive\./,
  },
  {
    name: 'a zip that is no zip',
    kind: 'python',
    code: notZip,
    http: 502,
    status: 'action developer error',
    result: 'The action failed to generate or locate a binary. See logs for details.',
  },
  {
    name: 'a zip that is cut off',
    kind: 'python',
    code: brokenZip(),
    http: 502,
    status: 'action developer error',
    result: 'The action failed to generate or locate a binary. See logs for details.',
  },
];

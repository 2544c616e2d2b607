// Code of tens of megabytes, in functions with the memory of the default.
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { zipOf } from '../runtimes/python-cases.js';
import { kinds } from '../support/machine.js';
import { startPlatform } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';

const codeBytes = 40_000_000;
const caseMs = 120_000;

let platform: RunningPlatform;
let code: string;
beforeAll(async () => {
  platform = await startPlatform({ flags: ['--stem-cells', 'false'] });
  code = zipOf({
    'data.bin': randomBytes(codeBytes),
    'index.js': 'exports.main = () => ({ bytes: require("fs").statSync(`${__dirname}/data.bin`).size });',
    'package.json': '{}',
    '__main__.py': 'import os\ndef main(args):\n  return {"bytes": os.path.getsize("data.bin")}',
  });
}, caseMs);
afterAll(() => platform.stop());

describe.each(kinds.map(String))('%s:', (kind) => {
  test.each([1, 2])(
    'an archive of 40 MB runs in 256 MB, with a concurrency of %i',
    async (concurrency) => {
      await platform.api.putAction('large', code, { kind, limits: { memory: 256, concurrency } });
      const { body } = await platform.api.invoke('large', {});
      expect(body.response).toMatchObject({ success: true, result: { bytes: codeBytes } });
    },
    caseMs,
  );
});

test(
  'an archive that does not fit is told with its size and what to do',
  async () => {
    await platform.api.putAction('tight', code, { kind: 'nodejs:default', limits: { memory: 128 } });
    const { body } = await platform.api.invoke('tight', {});
    expect(body.response).toMatchObject({
      success: false,
      result: {
        error:
          'The action exhausted its memory and was aborted. Its code of 39 MB, and what that extracts to, are in memory ' +
          'while it is loaded: --memory sets a higher limit than 128 MB.',
      },
    });
  },
  caseMs,
);

// Paths that functions see and their callers get in errors: none names a folder of the installation or of the data.
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { isolationLack, kinds } from '../support/machine.js';
import { startPlatform } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';

const clone = dirname(fileURLToPath(new URL('../../../package.json', import.meta.url)));

/** Functions that answer with all paths of their runtime, and fail by a missing module if they are told to. */
const codes: Record<string, string> = {
  nodejs: `exports.main = ({ fails }) => {
    if (fails) require('./missing');
    const { execPath, argv, env } = process;
    return { execPath, argv, env, paths: module.paths, cache: Object.keys(require.cache), stack: new Error('told').stack };
  };`,
  python: `import os, sys, traceback
def main(args):
    if args.get('fails'):
        import missing
    modules = [str(getattr(module, '__file__', '')) for module in list(sys.modules.values())]
    return {'argv': sys.orig_argv, 'env': dict(os.environ), 'paths': sys.path, 'cache': modules, 'stack': traceback.format_stack()}`,
};

(isolationLack === undefined ? describe : describe.skip)('paths of the host', () => {
  let platform: RunningPlatform;
  beforeAll(async () => {
    platform = await startPlatform();
  });
  afterAll(() => platform.stop());

  test.each(kinds)('are in no result, error or log of %s', async (kind) => {
    const name = kind.replace(':', '-');
    const code = codes[kind.split(':')[0] ?? ''] ?? '';
    await platform.api.putAction(name, code, { kind });
    const told = await platform.api.run(name);
    expect(told.record.response.success).toBe(true);
    const failed = await platform.api.run(name, { fails: true });
    expect(failed.record.response.success).toBe(false);
    expect(JSON.stringify(failed.record)).toContain('missing');
    const text = JSON.stringify([told.record, failed.record]);
    // Seen by their places in the sandbox.
    expect(text).toContain('/gpuwhisk/runtimes/');
    for (const folder of [clone, platform.dataDir]) expect(text).not.toContain(folder);
  });
});

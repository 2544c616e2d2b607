import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, test } from '@jest/globals';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { createRuntimeCatalog } from './create-runtime-catalog.js';
import type { RuntimeLaunch } from './runtime-catalog.js';
import { notBuilt, pythonArchives, pythonSources, zipOf } from './python-cases.js';
import { checkCase } from './runtime-cases.js';
import { RuntimeProcess } from './runtime-harness.js';

const runtimesDir = fileURLToPath(new URL('../../../runtimes', import.meta.url));
const dataDir = mkdtempSync(join(tmpdir(), 'gpuwhisk-catalog-'));
const catalog = await createRuntimeCatalog({ runtimesDir, dataDir, clock: systemClock });
const kind = catalog.manifest.runtimes.python?.[0]?.kind;
const launch: RuntimeLaunch = kind
  ? await catalog.launch(kind, [])
  : { command: [], binds: [], env: {}, protocol: 'framed' };
afterAll(() => rmSync(dataDir, { recursive: true, force: true }));

(kind ? describe : describe.skip)('the Python runtime', () => {
  test.each(pythonSources)('source: $name', (given) => checkCase(launch, given));
  test.each(pythonArchives)('zip: $name', ({ files, ...given }) =>
    checkCase(launch, { ...given, code: zipOf(files), binary: true }),
  );

  test.each([
    ['no archive', 'Q2VjaSBuJ2VzdCBwYXMgdW4gemlwLgo=', /SyntaxError/],
    ['a torn zip', Buffer.from('PK\x03\x04torn').toString('base64'), /Zip file cannot be read/],
    ['a torn tar.gz', Buffer.from([0x1f, 0x8b, 8, 0, 1]).toString('base64'), /Archive cannot be read/],
  ])('archive: %s', (_, code, stderr) =>
    checkCase(launch, { name: '', code, binary: true, initError: notBuilt, stderr }),
  );

  test('source that looks like base64 is source', () =>
    checkCase(launch, { name: '', code: Buffer.from('main = dict').toString('base64'), binary: true, result: {} }));

  test('an async action keeps its event loop between runs', async () => {
    const runtime = new RuntimeProcess(launch);
    try {
      await runtime.init({
        code: 'import asyncio\nqueue = asyncio.Queue()\nasync def main(args):\n  await queue.put(1)\n  return {"n": queue.qsize()}',
      });
      expect((await runtime.run({})).body).toEqual({ n: 1 });
      expect((await runtime.run({})).body).toEqual({ n: 2 });
    } finally {
      await runtime.close();
    }
  });

  test('modules that are to be loaded ahead are, and one that is missing shows in the log', async () => {
    const runtime = new RuntimeProcess(launch, { GPUWHISK_IMPORTS: 'wave no_such_module' });
    try {
      const code =
        'import os, sys\ndef main(args):\n  return {"loaded": "wave" in sys.modules, "seen": "GPUWHISK_IMPORTS" in os.environ}';
      const answer = await runtime.init({ code });
      expect(answer.stderr).toMatch(/'no_such_module' of annotation 'warm' was not loaded: No module named/);
      expect((await runtime.run({})).body).toEqual({ loaded: true, seen: false });
    } finally {
      await runtime.close();
    }
  });

  test('a run that hangs ends when the invoker goes', async () => {
    const runtime = new RuntimeProcess(launch);
    try {
      await runtime.init({ code: 'import time\ndef main(args):\n  print("on", flush=True)\n  time.sleep(60)' });
      const run = runtime.run({});
      runtime.socket.end();
      await expect(run).rejects.toThrow('The runtime ended');
      expect(await runtime.exited).toBe(0);
      expect(readFileSync(join(runtime.folder, 'main__.py'), 'utf8')).toContain('time.sleep');
    } finally {
      await runtime.close();
    }
  });
});

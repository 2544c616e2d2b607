// Packages of Python actions are installed in a sandbox that contains pip and the packages' own code.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import AdmZip from 'adm-zip';
import { Registry } from 'prom-client';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { until } from '@gpuwhisk/common/testing/until';
import { findPython } from '@gpuwhisk/invoker/runtimes/find-toolchains';
import type { Python } from '@gpuwhisk/invoker/runtimes/find-toolchains';
import { Compilations } from '@gpuwhisk/invoker/runtimes/python-compiler';
import { RequirementsCache, installRequirements } from '@gpuwhisk/invoker/runtimes/requirements-cache';
import { hasLauncher, isRoot, openProcessFactory } from './process-harness.js';
import type { ProcessHarness } from './process-harness.js';

const MiB = 1024 * 1024;
const reason = !hasLauncher ? 'the sandbox launcher is not built' : !isRoot ? 'full isolation needs root' : undefined;
const scratch = mkdtempSync(join(tmpdir(), 'gpuwhisk-packages-'));
chmodSync(scratch, 0o755);
const python = await findPython(join(scratch, 'python.json'));
const installTest = python === undefined ? test.skip : test;

(reason === undefined ? describe : describe.skip)(`packages of actions${reason ? ` (skipped: ${reason})` : ''}`, () => {
  let harness: ProcessHarness;
  let root: string;

  beforeAll(async () => {
    harness = await openProcessFactory({ actionNetwork: true });
    root = join(harness.dataDir, 'requirements');
    writeFileSync(join(harness.dataDir, 'secret'), 'secret');
  });
  afterAll(async () => {
    await harness.close();
    rmSync(scratch, { recursive: true, force: true });
  });

  /**
   * A stand-in for Python whose `pip install` is this shell script, with the target folder in `$target`. Called as the compiler
   * (-I -S -W ignore PROGRAM FOLDER MARK COMMAND...), it runs the command alone.
   */
  function standIn(script: string): Python {
    const folder = mkdtempSync(join(scratch, 'python-'));
    chmodSync(folder, 0o755);
    const program = join(folder, 'python3');
    const text = `#!/bin/sh
if [ "$1" = -I ]; then
  shift 7
  "$@" && echo '{"sources":0,"compiled":0,"refused":0,"failed":0,"named":[]}'
  exit
fi
[ "$3" = install ] || exit 0
while [ "$1" != --target ]; do shift; done
target="$2"
${script}
`;
    writeFileSync(program, text, { mode: 0o755 });
    const parts = { version: '3.12.1', platform: folder, packageFolders: [] };
    return { executable: program, installer: program, basePrefix: folder, ...parts };
  }
  const install = async (from: Python, name: string, maxBytes = 64 * MiB): Promise<string> => {
    const installation = { run: harness.runJob, maxBytes, dataDir: harness.dataDir };
    return (await installRequirements(root, from, [name], installation)).folder;
  };

  test('are installed by a user without rights, who sees nothing of the platform', async () => {
    const folder = await install(
      standIn(`{ id -u; awk '{ print $2 }' /proc/self/uid_map; awk '/^Seccomp:/ { print $2 }' /proc/self/status
        ls ${harness.dataDir}; touch /usr/x ${scratch}/x 2>/dev/null && echo wrote; ls /proc | grep -c '^[0-9]'; } > "$target/seen"`),
      'a',
    );
    const [user, outer, filter, shown, processes, ...rest] = readFileSync(join(folder, 'seen'), 'utf8').split('\n');
    expect({ user, filter, shown, rest }).toEqual({ user: '1000', filter: '2', shown: 'requirements', rest: [''] });
    expect(Number(outer)).toBeGreaterThan(1_879_048_191);
    expect(Number(processes)).toBeLessThan(8);
    expect(statSync(join(folder, 'seen')).uid).toBe(0);
    expect(readdirSync(folder)).toEqual(['seen']);
  });

  test.each([
    [
      'bytes',
      'i=0; while head -c 8388608 /dev/zero > "$target/$i"; do i=$((i+1)); sleep 0.05; done',
      /more than 64 MiB/,
    ],
    ['bytes of a file', 'head -c 1073741824 /dev/zero > "$target/full"', /^The requirements could not be installed: /],
    ['files', 'i=0; while :; do mkdir "$target/$i" && i=$((i+1)); done', /more than 300 files/],
    ['memory', 'i=0; while head -c 33554432 /dev/zero > "/tmp/$i"; do i=$((i+1)); done; exit 1', /No space left/],
  ])('end with an error beyond their bound in %s, and leave nothing', async (_, script, message) => {
    const before = readdirSync(root);
    const run: typeof harness.runJob = (job) => harness.runJob({ ...job, maxFiles: 300 });
    const installation = { run, maxBytes: 64 * MiB, dataDir: harness.dataDir };
    await expect(installRequirements(root, standIn(script), ['b'], installation)).rejects.toThrow(message);
    expect(readdirSync(root)).toEqual(before);
  });

  describe('of a local index', () => {
    const before = { ...process.env };
    beforeAll(() => {
      const wheels = join(scratch, 'wheels');
      mkdirSync(wheels);
      const wheel = new AdmZip();
      const files = {
        'gpuwhisk_sample/__init__.py': 'answer = 42\n',
        'gpuwhisk_sample/deep/er/module.py': 'x = 1\n',
        'gpuwhisk_sample/old.py': 'print "Python 2"\n',
        // More than the compiler can take, which ends its process.
        'gpuwhisk_sample/nested.py': `x = ${'-'.repeat(200_000)}1\n`,
        'gpuwhisk_sample/zz.py': 'y = 1\n',
        'gpuwhisk_sample-1.0.dist-info/METADATA': 'Metadata-Version: 2.1\nName: gpuwhisk-sample\nVersion: 1.0\n',
        'gpuwhisk_sample-1.0.dist-info/WHEEL': 'Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n',
        'gpuwhisk_sample-1.0.dist-info/RECORD': '',
      };
      for (const [name, text] of Object.entries(files)) wheel.addFile(name, Buffer.from(text));
      wheel.writeZip(join(wheels, 'gpuwhisk_sample-1.0-py3-none-any.whl'));
      Object.assign(process.env, { PIP_NO_INDEX: '1', PIP_FIND_LINKS: wheels });
    });
    afterAll(() => {
      process.env = before;
    });

    const names = ['__init__', 'deep/er/module', 'zz'];
    /** Paths of the compiled files below `folder`, without the interpreter's tag. */
    const compiledIn = (folder: string): string[] =>
      readdirSync(folder, { recursive: true, encoding: 'utf8' })
        .filter((path) => path.endsWith('.pyc'))
        .map((path) => path.replace(/^gpuwhisk_sample\/|__pycache__\/|\.cpython-\d+\.pyc$/g, ''))
        .sort();
    /** Whether root owns all that is below `folder`, and each compiled file is used without a look at its source. */
    const isFinished = (folder: string): boolean =>
      readdirSync(folder, { recursive: true, encoding: 'utf8' }).every((path) => {
        const file = join(folder, path);
        return statSync(file).uid === 0 && (!path.endsWith('.pyc') || readFileSync(file).readUInt32LE(4) === 1);
      });

    installTest('come from where the settings of pip say', async () => {
      const folder = await install(python as Python, 'gpuwhisk-sample');
      expect(readFileSync(join(folder, 'gpuwhisk_sample', '__init__.py'), 'utf8')).toBe('answer = 42\n');
      await expect(install(python as Python, 'gpuwhisk-nothing')).rejects.toThrow(/No matching distribution found/);
    });

    installTest('are compiled in all folders; files that cannot be are counted and named', async () => {
      const installation = { run: harness.runJob, maxBytes: 64 * MiB, dataDir: harness.dataDir };
      const { folder, report } = await installRequirements(
        join(root, 'counted'),
        python as Python,
        ['gpuwhisk-sample'],
        installation,
      );
      expect({ files: compiledIn(folder), isFinished: isFinished(folder) }).toEqual({ files: names, isFinished: true });
      const named = ['gpuwhisk_sample/nested.py', 'gpuwhisk_sample/old.py'];
      expect(report).toEqual({ sources: 5, compiled: 3, refused: 2, failed: 0, named });
    });

    installTest('are compiled later if an earlier version of the platform installed them, and counted', async () => {
      const logged: string[] = [];
      const log = (message: string): void => void logged.push(message);
      const compilations = new Compilations({ info: log, warn: log });
      const open = (): RequirementsCache =>
        new RequirementsCache({
          root: join(root, 'earlier'),
          maxBytes: Infinity,
          maxSetBytes: 64 * MiB,
          dataDir: harness.dataDir,
          runtimesDir: harness.dataDir,
          run: harness.runJob,
          clock: systemClock,
          compilations,
        });
      const folder = await open().folder(python as Python, ['gpuwhisk-sample']);
      const all = readdirSync(folder, { recursive: true, encoding: 'utf8' });
      for (const path of all.filter((each) => /__pycache__$|^\.gpuwhisk-compiled/.test(each))) {
        rmSync(join(folder, path), { recursive: true });
      }
      expect(compiledIn(folder)).toEqual([]);
      expect(await open().folder(python as Python, ['gpuwhisk-sample'])).toBe(folder);
      await until(() => logged.length === 2);
      expect({ files: compiledIn(folder), isFinished: isFinished(folder) }).toEqual({ files: names, isFinished: true });
      expect(logged[1]).toMatch(/^2 of 5 Python modules were not compiled \(gpuwhisk-sample\), such as .*old\.py/);
      const registry = new Registry();
      compilations.show(registry);
      const text = await registry.metrics();
      expect(text).toContain('gpuwhisk_python_modules_total{outcome="compiled"} 6');
      expect(text).toContain('gpuwhisk_python_modules_total{outcome="refused"} 4');
    });
  });
});

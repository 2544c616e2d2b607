// Packages of Python actions are installed in a sandbox that contains pip and the packages' own code.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import AdmZip from 'adm-zip';
import { findPython } from '@gpuwhisk/invoker/runtimes/find-toolchains';
import type { Python } from '@gpuwhisk/invoker/runtimes/find-toolchains';
import { installRequirements } from '@gpuwhisk/invoker/runtimes/requirements-cache';
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

  /** A stand-in for Python whose `pip install` is this shell script, with the target folder in `$target`. */
  function standIn(script: string): Python {
    const folder = mkdtempSync(join(scratch, 'python-'));
    chmodSync(folder, 0o755);
    const program = join(folder, 'python3');
    const text = `#!/bin/sh
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

  installTest('come from where the settings of pip say', async () => {
    const wheels = join(scratch, 'wheels');
    mkdirSync(wheels);
    const wheel = new AdmZip();
    const files = {
      'gpuwhisk_sample.py': 'answer = 42\n',
      'gpuwhisk_sample-1.0.dist-info/METADATA': 'Metadata-Version: 2.1\nName: gpuwhisk-sample\nVersion: 1.0\n',
      'gpuwhisk_sample-1.0.dist-info/WHEEL': 'Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n',
      'gpuwhisk_sample-1.0.dist-info/RECORD': '',
    };
    for (const [name, text] of Object.entries(files)) wheel.addFile(name, Buffer.from(text));
    wheel.writeZip(join(wheels, 'gpuwhisk_sample-1.0-py3-none-any.whl'));
    const before = { ...process.env };
    Object.assign(process.env, { PIP_NO_INDEX: '1', PIP_FIND_LINKS: wheels });
    try {
      const folder = await install(python as Python, 'gpuwhisk-sample');
      expect(readFileSync(join(folder, 'gpuwhisk_sample.py'), 'utf8')).toBe('answer = 42\n');
      expect(existsSync(join(folder, '__pycache__'))).toBe(true);
      await expect(install(python as Python, 'gpuwhisk-nothing')).rejects.toThrow(/No matching distribution found/);
    } finally {
      process.env = before;
    }
  });
});

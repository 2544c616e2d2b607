// The GPU kit, packed for another machine and run there: in an empty folder, without Node.js on the PATH and without network.
import { execFile, execFileSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { hasStandIn } from '@gpuwhisk/invoker/gpu-agent/host/stand-in';
import { hasPython } from '../support/machine.js';

const pack = fileURLToPath(new URL('../../../scripts/gpu-day.mjs', import.meta.url));
const caseMs = 400_000;
const isHere = hasStandIn() && hasPython && process.getuid?.() === 0;

interface Stage {
  stage: string;
  state: string;
  checks: { name: string; passed: boolean; detail: string }[];
  metrics: Record<string, number>;
  problem?: string;
}
interface Outcome {
  code: number;
  stdout: string;
  stderr: string;
  stages: Stage[];
}

/** Starts the rest of the command line without a network, with the loopback device up. */
const alone = `import fcntl, os, socket, struct, sys
fcntl.ioctl(socket.socket(), 0x8914, struct.pack("16sh14x", b"lo", 0x49))
os.execv(sys.argv[1], sys.argv[1:])
`;

(isHere ? describe : describe.skip)('the GPU kit', () => {
  let folder: string;
  let programs: string;
  let kit: string;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-gpu-day-'));
    programs = join(folder, 'programs');
    mkdirSync(programs);
    for (const from of ['/usr/bin', '/bin', '/usr/sbin', '/sbin']) {
      for (const name of readdirSync(from).filter((one) => !/^(node|nodejs|npm|npx|python3)$/.test(one))) {
        rmSync(join(programs, name), { force: true });
        symlinkSync(join(from, name), join(programs, name));
      }
    }
    const python = execFileSync('python3', ['-c', 'import sys; print(sys.executable)'], { encoding: 'utf8' });
    symlinkSync(python.trim(), join(programs, 'python3'));
    const archive = join(folder, 'kit.tar.xz');
    // An archive for a copy over a network is packed for a minute longer.
    const quickly = { ...process.env, XZ_OPT: '-T0 -0' };
    execFileSync(process.execPath, [pack, '--pack', archive], { timeout: caseMs, env: quickly });
    execFileSync('tar', ['-xJf', archive, '-C', folder], { timeout: caseMs });
    kit = join(folder, 'gpu-day');
  }, caseMs);
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  /** Runs the kit of a folder. Its results are in the folder `name`. */
  const run = async (at: string, name: string, flags: string[], more: NodeJS.ProcessEnv = {}): Promise<Outcome> => {
    const out = join(folder, name);
    const env = { PATH: programs, HOME: folder, TMPDIR: tmpdir(), ...more };
    const command = ['-n', 'python3', '-c', alone, join(at, 'gpu-day'), '--out', out, ...flags];
    const [code, stdout, stderr] = await new Promise<[number, string, string]>((resolve) => {
      execFile('unshare', command, { env, cwd: folder, timeout: caseMs }, (error, ...said) =>
        resolve([error === null ? 0 : Number(error.code ?? -1), ...said]),
      );
    });
    let stages: Stage[] = [];
    try {
      ({ stages } = JSON.parse(readFileSync(join(out, 'gpu-day.json'), 'utf8')) as { stages: Stage[] });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
    return { code, stdout, stderr, stages };
  };
  const failuresOf = (outcome: Outcome): string[] =>
    outcome.stages.flatMap(({ problem, checks }) => [
      ...(problem === undefined ? [] : [problem]),
      ...checks.filter(({ passed }) => !passed).map(({ name, detail }) => `${name}: ${detail}`),
    ]);
  const failedChecks = ({ stages }: Outcome): string[] =>
    stages.flatMap(({ checks }) => checks.filter(({ passed }) => !passed).map(({ name }) => name));

  test(
    'passes all stages, leaves nothing, and goes on with co-location when it is started again',
    async () => {
      const first = await run(kit, 'results', ['--simulated']);
      expect(failuresOf(first)).toEqual([]);
      expect(first.code).toBe(0);
      expect(first.stages.map(({ stage }) => stage)).toEqual([
        'facts',
        'platform',
        'injection',
        'tokens',
        'colocation',
      ]);
      expect(first.stdout).toContain('SIMULATED: no figure is of a GPU.');
      expect(first.stdout).toContain('Nothing was left running; the device is as before.');
      const { metrics } = first.stages[1] as Stage;
      for (const name of ['cold', 'prewarmed', 'injected', 'ready', 'warm']) {
        expect(metrics[`firstRequestMs.${name}`]).toBeGreaterThan(0);
      }
      const again = await run(kit, 'results', ['--simulated']);
      expect(failuresOf(again)).toEqual([]);
      expect(again.code).toBe(0);
      expect(again.stderr).toMatch(/colocation: passed/);
      expect(again.stderr).not.toMatch(/platform: passed/);
      const samples = ({ stages }: Outcome): number => stages[4]?.metrics['colocationSamples'] as number;
      expect(samples(again)).toBeGreaterThan(samples(first));
    },
    caseMs,
  );

  /** A copy of the kit with changed files. `change` gets a file's text and gives another. */
  const planted = (name: string, changes: Record<string, (text: string) => string>): string => {
    const at = join(folder, name);
    cpSync(kit, at, { recursive: true, verbatimSymlinks: true });
    for (const [path, change] of Object.entries(changes)) {
      const file = join(at, 'gpuwhisk', path);
      const before = readFileSync(file, 'utf8');
      const after = change(before);
      expect(after).not.toBe(before);
      writeFileSync(file, after);
      // Sizes are compared with the archive's list.
      const list = join(at, 'files.txt');
      const line = new RegExp(`^\\d+(?=\\tgpuwhisk/${path.replaceAll('.', '\\.')}$)`, 'm');
      writeFileSync(list, readFileSync(list, 'utf8').replace(line, String(Buffer.byteLength(after))));
    }
    return at;
  };
  const platformOnly = ['--simulated', '--stages', 'platform'];

  test(
    'says that functions fail where they do',
    async () => {
      const fails = (text: string): string =>
        text.replace('def main(args):\n', 'def main(args):\n    raise ValueError("planted")\n');
      const at = planted('failing', {
        'bench/gpu/guests/driver/answer.py': fails,
        'bench/gpu/guests/driver/saturate.py': fails,
      });
      const outcome = await run(at, 'failing-results', platformOnly);
      expect(outcome.code).toBe(1);
      expect(failedChecks(outcome)).toEqual(
        expect.arrayContaining([
          'a function answers from the device',
          'a pre-warmed process takes a function',
          'a function whose model was loaded ahead answers at once',
          'functions with shares are loaded',
          'functions for failures are loaded',
          'requests of a small model are served',
        ]),
      );
    },
    caseMs,
  );

  test(
    'says which promises a platform breaks',
    async () => {
      const at = planted('breaking', {
        // Slow to start, and no neighbour outlives its fourth second.
        'bench/gpu/guests/driver/answer.py': (text) =>
          text
            .replace('model.infer(1)\n', 'model.infer(1)\ntime.sleep(6)\n')
            .replace('    begin, count', '    assert args.get("seconds") != 3\n    begin, count'),
        'bench/gpu/guests/driver/saturate.py': (text) => text.replace(/return \{"perS": .*\}/, 'return {"perS": 100}'),
        'bench/gpu/guests/driver/over.py': (text) => text.replace(/while True:[^]*/, 'return {}\n'),
        'bench/gpu/guests/driver/trap.py': (text) => text.replace('faults=1', 'faults=0'),
        // Of another length, by which V8 tells compiled code of an earlier run apart.
        'build/programs/standalone.cjs': (text) => text.replaceAll('queueMs', 'queueMissing'),
        // The platform does not end when it is asked to.
        'scripts/serve.cjs': (text) => `process.exit = () => undefined;\nsetInterval(() => undefined, 1000);\n${text}`,
      });
      const control = join(at, 'gpuwhisk/native/build/cudasim/control');
      renameSync(control, `${control}.real`);
      const more = `s/"usedBytes":\\([0-9]*\\),"contexts"/"usedBytes":9\\1,"contexts"/`;
      writeFileSync(control, `#!/bin/sh\n"$0.real" "$@" | sed '${more}'\n`);
      chmodSync(control, 0o755);
      const list = join(at, 'files.txt');
      writeFileSync(list, readFileSync(list, 'utf8').replace(/^\d+\tgpuwhisk\/native\/build\/cudasim\/control\n/m, ''));
      const outcome = await run(at, 'breaking-results', platformOnly, { GPUWHISK_GPU__POLICY: 'exclusive' });
      expect(outcome.code).toBe(1);
      expect(failedChecks(outcome)).toEqual(
        expect.arrayContaining([
          'the record names device, share and times',
          'wsk gpu top shows the memory that the driver shows',
          'a share is that part of the throughput',
          'two functions at 50 % run at once',
          'a function over its memory is ended',
          'its neighbour is not',
          'a fault in a kernel ends its function',
          'new functions start within 5 s of a fault',
          'an innocent function is recorded as such',
          'an innocent idempotent function is repeated',
          'the platform stops in order',
        ]),
      );
    },
    caseMs,
  );

  test(
    'passes in time slices, where a fault ends no run of another function',
    async () => {
      const outcome = await run(kit, 'turns', platformOnly, { GPUWHISK_GPU__MANAGE__MPS: 'false' });
      expect(failuresOf(outcome)).toEqual([]);
      const names = outcome.stages.flatMap(({ checks }) => checks.map(({ name }) => name));
      expect(names).toContain("a fault ends no other function's run");
      expect(names).not.toContain('a share is that part of the throughput');
    },
    caseMs,
  );

  test('says that there is no GPU, of each stage, and goes on', async () => {
    const outcome = await run(kit, 'none', []);
    expect(outcome.code).toBe(1);
    expect(outcome.stages).toHaveLength(5);
    for (const { state, problem } of outcome.stages) {
      expect(state).toBe('failed');
      expect(problem).toMatch(/libcuda|NO_DEVICE|no GPU/i);
    }
    expect(outcome.stdout).toContain('Nothing was left running');
  });

  test(
    'ends a stage that hangs, and all that it has started',
    async () => {
      const at = planted('hanging', {
        'bench/gpu/guests/driver/answer.py': (text) => text.replace('import time\n', 'import time\ntime.sleep(1000)\n'),
      });
      const outcome = await run(at, 'hanging-results', [
        '--simulated',
        '--stages',
        'platform,tokens',
        '--budget',
        '12',
      ]);
      expect(outcome.code).toBe(1);
      expect(outcome.stages.map(({ stage, state }) => [stage, state])).toEqual([
        ['platform', 'cut off'],
        ['tokens', 'not run'],
      ]);
      expect(execFileSync('ps', ['-eo', 'args'], { encoding: 'utf8' })).not.toContain('/hanging/');
    },
    caseMs,
  );

  test('says that an archive was cut off', async () => {
    const at = planted('cut', {});
    truncateSync(join(at, 'gpuwhisk/bench/dist/gpu-day/report.js'), 10);
    expect(await run(at, 'cut-results', ['--simulated'])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/cut off: gpuwhisk\/bench\/dist\/gpu-day\/report\.js has 10 of \d+ bytes/),
    });
    truncateSync(join(at, 'bin/node'), 1000);
    expect(await run(at, 'cut-results', ['--simulated'])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/cut off: bin\/node has 1000 of \d+ bytes/),
    });
  });

  test('says what is wrong with a command line', async () => {
    const outcome = await run(kit, 'wrong', ['--stages', 'none']);
    expect(outcome).toMatchObject({ code: 2, stderr: expect.stringContaining("There is no stage 'none'.") });
  });
});

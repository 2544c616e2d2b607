import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { kindsOf, parseManifest, resolveKind, withDefaultThere } from '@gpuwhisk/common/runtimes';
import type { RuntimeManifest } from '@gpuwhisk/common/runtimes';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { until } from '@gpuwhisk/common/testing/until';
import { ProvisioningError } from '../containers/container-factory.js';
import { bindsFor } from '../containers/runtime-launch.js';
import { hostJobs } from '../containers/sandbox/sandbox-job.js';
import { SharedWork } from '@gpuwhisk/common/concurrency';
import { createRuntimeCatalog, fitManifest } from './create-runtime-catalog.js';
import { findPython, pythonBinds } from './find-toolchains.js';
import type { Python } from './find-toolchains.js';
import { compilePackages, pythonPackages } from './image-packages.js';
import { fetchNodeRelease } from './node-runtime.js';

const runtimesDir = fileURLToPath(new URL('../../../runtimes', import.meta.url));
const manifest = JSON.parse(readFileSync(join(runtimesDir, 'runtimes.json'), 'utf8')) as RuntimeManifest;
const scratch = mkdtempSync(join(tmpdir(), 'gpuwhisk-find-python-'));
const found = await findPython(join(scratch, 'python.json'));
rmSync(scratch, { recursive: true });
const withPython = found === undefined ? test.skip : test;

describe('the manifest on a machine', () => {
  const stemCellsOf = (fitted: RuntimeManifest): Record<string, number> =>
    Object.fromEntries(
      Object.values(fitted.runtimes)
        .flat()
        .map((entry) => [entry.kind, entry.stemCells[0]?.initialCount ?? 0]),
    );

  test('lists every Node.js, which can be fetched, and the versions of other languages that are there', () => {
    const fitted = fitManifest(manifest, { versions: { python: ['3.11', '3.13'], java: ['25'], ruby: ['4.0'] } });
    const node = ['nodejs:20', 'nodejs:22', 'nodejs:24'];
    expect(kindsOf(fitted)).toEqual([...node, 'python:3.11', 'python:3.13', 'java:25', 'ruby:4.0']);
    expect(stemCellsOf(fitted)).toMatchObject({ 'nodejs:24': 2, 'nodejs:20': 0, 'python:3.11': 1, 'python:3.13': 0 });
    expect(stemCellsOf(fitted)).toMatchObject({ 'java:25': 1 });
    expect(['python', 'java', 'ruby'].map((family) => resolveKind(fitted, `${family}:default`)?.kind)).toEqual([
      'python:3.11',
      'java:25',
      'ruby:4.0',
    ]);
  });

  test.each([
    [['24', '20'], 'nodejs:24'],
    [['20', '22'], 'nodejs:22'],
    [['20'], 'nodejs:20'],
    // None is there: the default is fetched.
    [['26'], 'nodejs:24'],
  ])('with Node.js %j the default is %s, which has the stem cells', (versions, wanted) => {
    const fitted = withDefaultThere(manifest, 'nodejs', versions);
    expect(resolveKind(fitted, 'nodejs:default')?.kind).toBe(wanted);
    const cells = Object.entries(stemCellsOf(fitted)).filter(([kind, count]) => kind.startsWith('nodejs') && count > 0);
    expect(cells).toEqual([[wanted, 2]]);
  });

  test('Node.js 20 is marked as ended, and may be used', () => {
    const parsed = parseManifest(JSON.stringify(manifest), 'runtimes.json');
    expect(resolveKind(parsed, 'nodejs:20')).toMatchObject({ ended: '2026-04-30', deprecated: false });
  });

  test('Python is named by its minor version', () => {
    const fitted = fitManifest(manifest, { versions: { python: ['3.12'] } });
    for (const given of ['python:3', 'Python:default', 'python:3.12']) {
      expect(resolveKind(fitted, given)?.kind).toBe('python:3.12');
    }
    expect(resolveKind(fitted, 'python:3.11')).toBeUndefined();
  });

  test('without Python its family is gone', () => {
    expect(Object.keys(fitManifest(manifest, { versions: {} }).runtimes)).toEqual(['nodejs']);
  });
});

describe('binds', () => {
  test('what every sandbox sees, and what another bind holds, is left out', () => {
    expect(bindsFor(['/usr/bin/node', '/opt/a', '/opt/a/b', '/opt/ab', '/opt/a'])).toEqual([
      { source: '/opt/a', target: '/opt/a' },
      { source: '/opt/ab', target: '/opt/ab' },
    ]);
  });

  test('an interpreter above the data folder does not take the data along', () => {
    const python: Python = {
      executable: '/srv/bin/python3.11',
      installer: '/srv/bin/python3',
      basePrefix: '/srv',
      version: '3.11.7',
      platform: 'linux-x86_64',
      packageFolders: ['/srv/lib/python3.11/site-packages'],
    };
    expect(pythonBinds(python, '/srv/data').map((bind) => bind.source)).toEqual(['/srv/bin/python3.11', '/srv/lib']);
    expect(pythonBinds(python, '/data').map((bind) => bind.source)).toEqual(['/srv']);
  });
});

describe('shared work', () => {
  test('one piece of work per key, and a failure is tried again later', async () => {
    let forget: (() => void) | undefined;
    const clock = {
      ...systemClock,
      setBackgroundTimer: (_: number, run: () => void) => ((forget = run), { cancel() {} }),
    };
    const shared = new SharedWork<number>(clock, 1000);
    let calls = 0;
    const fail = (): Promise<number> => Promise.reject(new Error(`try ${++calls}`));
    await Promise.all([1, 2, 3].map(() => expect(shared.do('a', fail)).rejects.toThrow('try 1')));
    await expect(shared.do('a', fail)).rejects.toThrow('try 1');
    forget?.();
    await expect(shared.do('a', fail)).rejects.toThrow('try 2');
    expect(await shared.do('b', () => Promise.resolve(7))).toBe(7);
    expect(await shared.do('b', fail)).toBe(7);
  });
});

describe('the catalog', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-catalog-'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));
  const create = async (path: string): ReturnType<typeof createRuntimeCatalog> => {
    const dataDir = join(folder, 'data');
    const catalog = await createRuntimeCatalog({ runtimesDir, dataDir, clock: systemClock, env: { PATH: path } });
    catalog.useSandboxes(hostJobs(systemClock));
    return catalog;
  };

  /**
   * A stand-in python3 that answers discovery as given and records its other calls. Called as the compiler of packages (-I -S -W
   * ignore PROGRAM FOLDER MARK COMMAND...), it runs the command alone.
   */
  function standIn(version: string, installs: string): string {
    const bin = join(folder, 'bin');
    mkdirSync(bin, { recursive: true });
    const facts = {
      executable: join(bin, 'python3'),
      installer: join(bin, 'python3'),
      basePrefix: folder,
      version,
      platform: 'x',
      packageFolders: [],
    };
    const script = `#!/bin/sh
if [ "$2" = -c ]; then echo asked >> ${folder}/asked; echo '${JSON.stringify(facts)}'; exit; fi
if [ "$3" = -W ]; then
  shift 7
  "$@" && echo '{"sources":0,"compiled":0,"refused":0,"failed":0,"named":[]}'
  exit
fi
${installs}
`;
    writeFileSync(join(bin, 'python3'), script);
    chmodSync(join(bin, 'python3'), 0o755);
    return bin;
  }

  test('without Python it says so and refuses the kind', async () => {
    const catalog = await create(join(folder, 'nothing'));
    expect(catalog.notes.filter((note) => !note.includes('a default kind'))).toEqual([
      expect.stringMatching(/^Actions in these languages .* python \(no Python 3.8 or newer\), java \(no JDK/),
    ]);
    expect(catalog.supports('python:3.11')).toBe(false);
    await expect(catalog.launch('python:3.11', [])).rejects.toThrow(ProvisioningError);
    await expect(catalog.launch('cobol:1', [])).rejects.toThrow("The runtime 'cobol:1' is not available here.");
  });

  test('a Python that is too old is none', async () => {
    expect((await create(standIn('3.7.9', 'exit 1'))).notes[0]).toContain('python (');
  });

  test('Python is asked once, and again when the program changes', async () => {
    const path = standIn('3.12.1', 'exit 1');
    expect((await create(path)).supports('python:3.12')).toBe(true);
    expect((await create(path)).supports('python:3.12')).toBe(true);
    expect(readFileSync(join(folder, 'asked'), 'utf8')).toBe('asked\n');
    standIn('3.13.10', 'exit 1');
    expect((await create(path)).supports('python:3.13')).toBe(true);
  });

  /** A program that prints a version when it is asked. */
  function versioned(name: string, version: string): string {
    const program = join(folder, 'bin', name);
    mkdirSync(join(folder, 'bin'), { recursive: true });
    writeFileSync(program, `#!/bin/sh\necho ${version}\n`);
    chmodSync(program, 0o755);
    return program;
  }

  test('other versions are found by their names, and one that is another version than its name says is none', async () => {
    const path = standIn('3.11.7', 'exit 1');
    const answers = (name: string, version: string): void => {
      const text = readFileSync(join(path, 'python3'), 'utf8').replaceAll('"3.11.7"', `"${version}"`);
      writeFileSync(join(path, name), text.replaceAll(join(path, 'python3'), join(path, name)), { mode: 0o755 });
    };
    answers('python3.12', '3.12.1');
    answers('python3.13', '3.9.9');
    const newer = process.version.startsWith('v22.') ? 24 : 22;
    const node = versioned(`node${newer}`, `v${newer}.1.0`);
    const catalog = await create(path);
    const pythons = kindsOf(catalog.manifest).filter((kind) => kind.startsWith('python:'));
    expect(pythons).toEqual(['python:3.11', 'python:3.12']);
    expect(resolveKind(catalog.manifest, 'python:default')?.kind).toBe('python:3.11');
    expect((await catalog.launch('python:3.12', [])).command[0]).toBe(join(path, 'python3.12'));
    expect((await catalog.launch(`nodejs:${newer}`, [])).command[0]).toBe(node);
    // A second start asks none of them again, nor the one that was of another version.
    const asked = readFileSync(join(folder, 'asked'), 'utf8');
    await create(path);
    expect(readFileSync(join(folder, 'asked'), 'utf8')).toBe(asked);
  });

  test('setting runtimePaths names versions that are not on the PATH', async () => {
    const python = join(standIn('3.12.1', 'exit 1'), 'python3');
    const node = versioned('other-node', 'v24.1.0');
    const home = join(folder, 'jdk');
    mkdirSync(join(home, 'bin'), { recursive: true });
    writeFileSync(join(home, 'bin', 'javac'), '');
    writeFileSync(join(home, 'release'), 'JAVA_VERSION="21.0.3"\n');
    const createWith = (runtimePaths: Record<string, string>) =>
      createRuntimeCatalog({
        runtimesDir,
        dataDir: join(folder, 'data'),
        clock: systemClock,
        env: { PATH: '' },
        runtimePaths,
      });
    const catalog = await createWith({ 'python:3.12': python, 'nodejs:24': node });
    expect(catalog.supports('python:3.12')).toBe(true);
    expect(resolveKind(catalog.manifest, 'nodejs:default')?.kind).toBe('nodejs:24');
    expect((await catalog.launch('nodejs:24', [])).command[0]).toBe(node);
    for (const [kind, path, what] of [
      ['python:3.13', python, 'Python 3.12.1'],
      ['python:3.13', join(folder, 'none'), 'no Python that answers'],
      ['nodejs:22', node, 'Node.js v24.1.0'],
      ['java:25', home, 'JDK 21.0.3'],
      ['java:25', folder, 'no JDK of 17 or newer'],
    ] as const) {
      await expect(createWith({ [kind]: path })).rejects.toThrow(
        `'runtimePaths' has '${path}' for '${kind}', which is ${what}.`,
      );
    }
  });

  /** Notes all calls but the one that compiles the runtime, which is repeated as the stand-in compiles nothing. */
  const notesInstallations = (): string => `[ "$2" = -S ] || echo "$@" >> ${folder}/calls; exit 0`;

  test('requirements are installed once, and bound', async () => {
    const path = standIn('3.12.1', notesInstallations());
    const catalog = await create(path);
    const [first, second] = await Promise.all([
      catalog.launch('python:3.12', ['a==1', 'b']),
      catalog.launch('python:3.12', ['a==1', 'b']),
    ]);
    expect(first).toEqual(second);
    const packages = first.command.find((argument) => argument.includes('requirements')) ?? '';
    expect(existsSync(packages)).toBe(true);
    expect(first.binds).toContainEqual({ source: packages, target: packages });
    expect(first.env.PYTHONPATH).toBe(packages);
    const calls = readFileSync(join(folder, 'calls'), 'utf8').split('\n');
    const asked = calls.filter((call) => / -- a==1 b$/.test(call));
    expect(asked).toEqual([expect.stringMatching(/^-m pip install .*--only-binary=:all: /)]);
    const later = await (await create(path)).launch('python:3.12', ['a==1', 'b']);
    expect(later.command).toEqual(first.command);
    expect(readFileSync(join(folder, 'calls'), 'utf8').split('\n')).toEqual(calls);
  });

  test("the packages of OpenWhisk's image are installed once, checked by digest, behind the interpreter's own", async () => {
    const path = standIn('3.12.1', notesInstallations());
    const first = await (await create(path)).launch('python:3.12', []);
    const packages = first.command.find((argument) => argument.includes('python-3.12-x-packages-')) ?? '';
    expect(existsSync(packages)).toBe(true);
    expect(first.binds).toContainEqual({ source: packages, target: packages });
    const calls = readFileSync(join(folder, 'calls'), 'utf8');
    expect(calls.match(/--require-hashes /g)).toHaveLength(1);
    expect((await (await create(path)).launch('python:3.12', [])).command).toEqual(first.command);
    expect(readFileSync(join(folder, 'calls'), 'utf8')).toBe(calls);
  });

  withPython(
    "the packages of OpenWhisk's image are compiled once, also those that an earlier version installed",
    async () => {
      const packages = join(folder, 'packages');
      mkdirSync(join(packages, 'sample', 'deep'), { recursive: true });
      for (const name of ['__init__.py', 'deep/module.py']) writeFileSync(join(packages, 'sample', name), 'x = 1');
      const set = await pythonPackages(runtimesDir, found as Python);
      const counts = { sources: 2, compiled: 2, refused: 0, failed: 0, named: [] };
      expect([await compilePackages(packages, set), await compilePackages(packages, set)]).toEqual([counts, undefined]);
      expect(readdirSync(join(packages, 'sample', 'deep'))).toContain('__pycache__');
    },
  );

  test('actions run without these packages where they cannot be installed, and the log tells', async () => {
    const logger = { info: jest.fn(), warn: jest.fn() };
    const path = standIn('3.12.1', 'echo "ERROR: no network" >&2; exit 1');
    const dataDir = join(folder, 'data');
    const options = { runtimesDir, dataDir, clock: systemClock, logger, env: { PATH: path } };
    const launch = await (await createRuntimeCatalog(options)).launch('python:3.12', []);
    expect(launch.command.join(' ')).not.toContain('-packages-');
    expect(logger.warn).toHaveBeenCalledWith(expect.stringMatching(/^Actions do not find the packages .* no network$/));
    expect(readdirSync(join(dataDir, 'runtimes')).filter((name) => name.startsWith('.partial'))).toEqual([]);
  });

  test('requirements that pip refuses give its last line, and leave nothing behind', async () => {
    const catalog = await create(
      standIn('3.12.1', 'echo "ERROR: No matching distribution found for nope" >&2; echo "notice" >&2; exit 1'),
    );
    const launch = catalog.launch('python:3.12', ['nope']);
    await expect(launch).rejects.toThrow(
      'The requirements could not be installed: ERROR: No matching distribution found for nope',
    );
    await expect(launch).rejects.toThrow(ProvisioningError);
    expect(readdirSync(join(folder, 'data', 'requirements'))).toEqual([]);
  });

  test('folders that were never finished are removed, those under way are not', async () => {
    const root = join(folder, 'data', 'requirements');
    const [abandoned, underWay] = ['.partial-old', '.partial-new'].map((name) => join(root, name));
    for (const path of [abandoned, underWay]) mkdirSync(path ?? '', { recursive: true });
    utimesSync(abandoned ?? '', 1, 1);
    await create(folder);
    expect(readdirSync(root)).toEqual(['.partial-new']);
  });
});

/** State of a process, as in proc(5); undefined if there is no such process. */
function stateOf(pid: number): string | undefined {
  if (!existsSync(`/proc/${pid}/stat`)) return undefined;
  return /\) (\w)/.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))?.[1];
}

describe('a release of Node.js', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-release-'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  /** A stand-in npm whose package holds a node that reports `version`. */
  function npm(version: string): string {
    const node = `"$p/node_modules/node-${process.platform}-${process.arch}/bin`;
    const find = 'while [ $# -gt 0 ]; do [ "$1" = --prefix ] && p="$2"; last="$1"; shift; done';
    const make = `mkdir -p ${node}"; printf "#!/bin/sh\\necho ${version}\\n" > ${node}/node"; chmod +x ${node}/node"`;
    const program = join(folder, 'npm');
    writeFileSync(program, `#!/bin/sh\necho "$@" >> ${folder}/calls\n${find}\n${make}\n`);
    chmodSync(program, 0o755);
    return program;
  }

  test('is fetched once', async () => {
    const root = join(folder, 'runtimes');
    const program = await fetchNodeRelease(root, 22, { npm: npm('v22.1.0') });
    expect(program).toBe(join(root, 'nodejs-22', 'bin', 'node'));
    expect(existsSync(program)).toBe(true);
    expect(await fetchNodeRelease(root, 22, { npm: 'none' })).toBe(program);
    const call = readFileSync(join(folder, 'calls'), 'utf8');
    expect(call).toMatch(/^install --ignore-scripts .* node-[a-z0-9]+-[a-z0-9]+@22\n$/);
    expect(readdirSync(root)).toEqual(['nodejs-22']);
  });

  test('that is a default is fetched before the first call, and others are ahead of theirs', async () => {
    const own = `nodejs:${process.versions.node.split('.')[0]}`;
    const [other, third] = ['nodejs:22', 'nodejs:24', 'nodejs:26'].filter((kind) => kind !== own) as [string, string];
    const [entry] = manifest.runtimes.nodejs ?? [];
    const entries = [own, other, third].map((kind) => ({ ...entry, kind, default: kind === other, stemCells: [] }));
    const manifestFile = join(folder, 'runtimes.json');
    writeFileSync(manifestFile, JSON.stringify({ runtimes: { nodejs: entries } }));
    const catalog = await createRuntimeCatalog({
      runtimesDir,
      manifestFile,
      dataDir: folder,
      clock: systemClock,
      env: { PATH: '' },
      npm: npm('v${last##*@}.1.0'),
    });
    const fetched = (): string[] =>
      existsSync(join(folder, 'calls')) ? (readFileSync(join(folder, 'calls'), 'utf8').match(/@\d+$/gm) ?? []) : [];
    const tagOf = (kind: string): string => kind.replace('nodejs:', '@');
    try {
      await catalog.fetchDefaults();
      expect(fetched()).toEqual([tagOf(other)]);
      const { command } = await catalog.launch(other, []);
      expect(command[0]).toBe(join(folder, 'runtimes', other.replace(':', '-'), 'bin', 'node'));
      await catalog.prepare();
      expect(fetched()).toEqual([tagOf(other), tagOf(third)]);
      await catalog.launch(third, []);
      expect(fetched()).toHaveLength(2);
    } finally {
      await catalog.close();
    }
  });

  test('is given up when the platform stops: npm ends, and nothing is left', async () => {
    const root = join(folder, 'runtimes');
    const [program, pidFile] = [join(folder, 'npm'), join(folder, 'pid')];
    writeFileSync(program, `#!/bin/sh\necho $$ > ${pidFile}.new\nmv ${pidFile}.new ${pidFile}\nexec sleep 3600\n`);
    chmodSync(program, 0o755);
    const stop = new AbortController();
    const fetched = fetchNodeRelease(root, 22, { npm: program, stop: stop.signal });
    const ended = expect(fetched).rejects.toThrow('the platform is being stopped');
    while (!existsSync(pidFile)) await new Promise((resolve) => setTimeout(resolve, 10));
    const pid = Number(readFileSync(pidFile, 'utf8'));
    stop.abort();
    await ended;
    expect(readdirSync(root)).toEqual([]);
    // The killed process may be a zombie until its parent, this process, has reaped it.
    await until(() => [undefined, 'Z'].includes(stateOf(pid)));
    await expect(fetchNodeRelease(root, 22, { npm: program, stop: stop.signal })).rejects.toThrow(ProvisioningError);
  });

  test('of another version is refused, and npm may be missing', async () => {
    const root = join(folder, 'runtimes');
    await expect(fetchNodeRelease(root, 24, { npm: npm('v22.1.0') })).rejects.toThrow('the package holds v22.1.0.');
    await expect(fetchNodeRelease(root, 24, { npm: join(folder, 'none') })).rejects.toThrow(ProvisioningError);
    expect(readdirSync(root)).toEqual([]);
  });
});

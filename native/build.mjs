// Builds the native parts with the compilers found on PATH. Without them the platform starts with less.
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { setPriority } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build, CompileError, compileFor, compileSources, findCompiler, isCurrent } from './compile.mjs';
import { removeUnused, sourcesIn } from './compile.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const isMain = process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href;
/**
 * `node native/build.mjs --sanitized`: into build/native-sanitized, for scripts/sanitized-tests.mjs. Programs and addons have
 * AddressSanitizer and UBSan. What is loaded into programs of others, and what is traced and put back page by page, cannot
 * have the former, whose shadow memory would be the function's, too: it has UBSan that ends in a trap.
 */
const sanitized = isMain && process.argv.includes('--sanitized');
/**
 * `node native/build.mjs --target arm64`: into build/native-arm64, with a compiler for that processor, for releases. Tools of
 * tests and measurements are left out.
 */
const machines = { arm64: 'aarch64-linux-gnu' };
const other = isMain && process.argv.includes('--target') ? process.argv.at(-1) : undefined;
if (other !== undefined) compileFor(machines[other]);
const beside = sanitized ? 'sanitized' : other;
const out = beside === undefined ? join(here, 'build') : join(here, '..', 'build', `native-${beside}`);
/** What the system call filters share. */
const systemCalls = join(here, 'system_calls.h');
// Sanitizers take the compiler's warnings for code that it makes itself: the plain build has them.
const commonFlags = [...(sanitized ? ['-O1'] : ['-O2', '-Wall', '-Wextra', '-Werror']), '-fstack-protector-strong'];
const addressAndUndefined = sanitized ? ['-fsanitize=address,undefined', '-fno-sanitize-recover=all'] : [];
const undefinedTraps = sanitized ? ['-fsanitize=undefined', '-fsanitize-undefined-trap-on-error'] : [];
const moreFlags = sanitized ? ['-g', '-fno-omit-frame-pointer'] : ['-D_FORTIFY_SOURCE=2'];

const flags = [...commonFlags, ...moreFlags, ...addressAndUndefined];
/** For programs that load a library of ours. */
const clientFlags = [...commonFlags, ...moreFlags, ...undefinedTraps];

/** For programs, besides their own source. */
const programSources = sanitized ? [join(here, 'sanitized.c')] : [];

/** For what goes into addons, and into programs as well. */
const sharedFlags = [...flags, '-fPIC', '-fvisibility=hidden'];
/** For libraries that programs of others load. */
const libraryFlags = [...clientFlags, '-fPIC', '-fvisibility=hidden'];

/** For the resident code, which interpreters look up by name. */
const residentFlags = [...clientFlags, '-fPIC'];

/** Injection is written for one processor so far. */
const arch = other ?? process.arch;
const canInject = process.platform === 'linux' && arch === 'x64';

/** Headers of Node-API: two packages of npm, so that nothing is downloaded for the build. */
function nodeApi() {
  const fromInvoker = createRequire(join(here, '..', 'invoker', 'package.json'));
  const manifests = ['node-api-headers', 'node-addon-api'].map((name) => fromInvoker.resolve(`${name}/package.json`));
  return { manifests, folders: [fromInvoker('node-api-headers').include_dir, dirname(manifests[1])] };
}

/** Addons in C: the Node.js runtime's end of its socket, pipes of sandboxes, walks over folders that functions fill, space for the store. */
function smallAddon(name) {
  const folder = join(here, name);
  const { manifests, folders } = nodeApi();
  return {
    target: join(out, `${name}.node`),
    sources: sourcesIn(folder, '.c'),
    headers: [...sourcesIn(folder, '.h'), ...manifests],
    flags: [...libraryFlags, `-isystem${folders[0]}`, '-DNAPI_VERSION=8'],
    linkFlags: ['-shared', '-pthread'],
  };
}

/** An addon in C++ from a folder, and from sources that know nothing of Node.js. */
function addon(target, folder, { sources = [], headers = [], linkFlags = [] }) {
  const { manifests, folders } = nodeApi();
  const own = [...folders.map((path) => `-isystem${path}`), '-DNAPI_CPP_EXCEPTIONS', '-DNAPI_VERSION=8'];
  return {
    target: join(out, target),
    sources: [...sources, ...sourcesIn(folder, '.cpp')],
    headers: [...headers, ...sourcesIn(folder, '.h'), ...manifests],
    flags: sharedFlags,
    // Without them the other sources are those of another part, and compiled once.
    cppFlags: (source) => (dirname(source) === folder ? own : []),
    linkFlags: ['-shared', '-pthread', ...linkFlags, ...addressAndUndefined],
  };
}

function sandbox() {
  const folder = join(here, 'sandbox');
  return {
    target: join(out, 'sandbox'),
    sources: [...sourcesIn(folder, '.c'), ...programSources],
    headers: [...sourcesIn(folder, '.h'), systemCalls],
    flags,
    linkFlags: addressAndUndefined,
  };
}

/** The Python runtime's end of its socket: one library for all interpreters, whose symbols are the program's that loads it. */
function pythonChannel() {
  const folder = join(here, 'python');
  const frames = join(here, 'channel');
  return {
    target: join(out, 'python-channel.so'),
    sources: [...sourcesIn(folder, '.c'), join(frames, 'inbox.c')],
    headers: [...sourcesIn(folder, '.h'), ...sourcesIn(frames, '.h')],
    flags: libraryFlags,
    linkFlags: ['-shared', '-pthread'],
  };
}

/** NVIDIA's management library for Node; it is loaded at run time, so that nothing of a GPU is needed here. */
function nvml() {
  const headers = [join(here, 'cudasim', 'include', 'nvml.h')];
  return addon('nvml.node', join(here, 'nvml'), { headers, linkFlags: ['-ldl'] });
}

/** A process that becomes the copy of a template: static, at an address where no interpreter lies. */
function restorer() {
  const folder = join(here, 'restorer');
  const resident = join(here, 'prewarmer');
  return {
    target: join(out, 'restorer'),
    sources: [join(folder, 'main.c'), ...['channel.c', 'landlock.c', 'park.S'].map((name) => join(resident, name))],
    headers: [...sourcesIn(folder, '.h'), ...sourcesIn(resident, '.h')],
    flags: residentFlags,
    linkFlags: ['-static', '-no-pie', '-Wl,-Ttext-segment=0x70000000'],
  };
}

function prewarmer() {
  const folder = join(here, 'prewarmer');
  const guest = join(here, '..', 'runtimes', 'native');
  const frames = join(here, 'channel');
  return {
    target: join(out, 'prewarmer'),
    sources: [...sourcesIn(folder, '.c', '.S'), ...sourcesIn(guest, '.c'), join(frames, 'inbox.c')],
    headers: [...[folder, guest, frames].flatMap((path) => sourcesIn(path, '.h')), systemCalls],
    flags: residentFlags,
    linkFlags: ['-pthread', '-ldl'],
  };
}

/** What makes an interpreter a pre-warmer, for it to load: the same resident code without a program. */
function resident() {
  const folder = join(here, 'prewarmer');
  return {
    target: join(out, 'resident.so'),
    sources: sourcesIn(folder, '.c', '.S').filter((path) => basename(path) !== 'main.c'),
    headers: [...sourcesIn(folder, '.h'), systemCalls],
    flags: residentFlags,
    linkFlags: ['-shared'],
  };
}

const core = join(here, 'inject');
const coreHeaders = [
  ...sourcesIn(core, '.h'),
  join(here, 'prewarmer', 'mailbox.h'),
  join(here, 'restorer', 'places.h'),
];

function proxy() {
  const folder = join(here, 'proxy');
  return {
    target: join(out, 'proxy'),
    sources: [...sourcesIn(core, '.cpp'), ...sourcesIn(folder, '.cpp'), ...programSources],
    headers: [...coreHeaders, ...sourcesIn(folder, '.h')],
    flags: sharedFlags,
    linkFlags: ['-pthread', '-ldl', ...addressAndUndefined],
  };
}

function injectAddon() {
  const sources = sourcesIn(core, '.cpp');
  return addon('inject.node', join(here, 'addon'), { sources, headers: coreHeaders, linkFlags: ['-ldl'] });
}

/** What is preloaded into programs that use a GPU. Its own calls must not come back to its hooks. */
function tokens() {
  const folder = join(here, 'tokens');
  const { manifests, folders } = nodeApi();
  return {
    target: join(out, 'tokens', 'libgpuwhisk-tokens.so'),
    sources: sourcesIn(folder, '.c'),
    headers: [...sourcesIn(folder, '.h', '.def'), ...manifests],
    flags: [...libraryFlags, `-isystem${folders[0]}`],
    linkFlags: ['-shared', '-Wl,-Bsymbolic', '-pthread', '-ldl'],
  };
}

function tokenServer() {
  const headers = [join(here, 'tokens', 'page.h'), join(here, 'inject', 'descriptor.h')];
  return addon('tokens.node', join(here, 'token-server'), { headers });
}

/** A test client of MPS; it runs where the driver's library is, ours or NVIDIA's. */
function gpuProbe() {
  const include = join(here, 'cudasim', 'include');
  return {
    target: join(out, 'gpu-probe'),
    sources: sourcesIn(join(here, 'gpu-probe'), '.c'),
    headers: sourcesIn(include, '.h'),
    flags: [...clientFlags, `-I${include}`],
    linkFlags: ['-ldl'],
  };
}

const simulator = join(here, 'cudasim');
const simulatorHeaders = [simulator, join(simulator, 'daemon')].flatMap((path) => sourcesIn(path, '.h'));
const wire = [...sourcesIn(simulator, '.h'), ...sourcesIn(join(simulator, 'include'), '.h')];
const standInTarget = (name) => join(out, 'cudasim', name);

/** The stand-in for a GPU's driver: a daemon, and the libraries and programs that take the place of NVIDIA's. */
function standIn() {
  const runtime = join(simulator, 'libcudart');
  return [
    {
      target: standInTarget('daemon'),
      sources: sourcesIn(join(simulator, 'daemon'), '.cpp'),
      headers: simulatorHeaders,
      flags,
      linkFlags: addressAndUndefined,
    },
    {
      target: standInTarget('libcuda.so.1'),
      sources: [join(simulator, 'connection.c'), ...sourcesIn(join(simulator, 'libcuda'), '.c')],
      headers: [...wire, ...sourcesIn(join(simulator, 'libcuda'), '.h')],
      flags: libraryFlags,
      linkFlags: ['-shared', '-Wl,-Bsymbolic', '-Wl,-soname,libcuda.so.1', '-pthread'],
    },
    {
      target: standInTarget('libcudart.so.12'),
      sources: sourcesIn(runtime, '.c'),
      headers: [...wire, ...sourcesIn(runtime, '.h', '.map')],
      flags: libraryFlags,
      linkFlags: [
        ...['-shared', '-Wl,-Bsymbolic', '-Wl,-soname,libcudart.so.12', '-pthread', '-ldl'],
        `-Wl,--version-script=${join(runtime, 'symbols.map')}`,
      ],
    },
    {
      target: standInTarget('libnvidia-ml.so.1'),
      sources: [join(simulator, 'connection.c'), ...sourcesIn(join(simulator, 'libnvml'), '.cpp')],
      headers: [...wire, ...sourcesIn(join(simulator, 'libnvml'), '.h')],
      flags: libraryFlags,
      // A library that is preloaded must not change what this one calls of itself.
      linkFlags: ['-shared', '-pthread', '-Wl,-Bsymbolic', '-Wl,-soname,libnvidia-ml.so.1'],
    },
    {
      target: standInTarget('nvidia-cuda-mps-control'),
      sources: [join(simulator, 'connection.c'), ...sourcesIn(join(simulator, 'mps_control'), '.cpp')],
      headers: [...wire, ...sourcesIn(join(simulator, 'mps_control'), '.h')],
      flags: libraryFlags,
    },
  ];
}

/** Programs that look at the stand-in from outside, of tests and measurements. */
function standInTools() {
  const cuda = join(here, '..', 'runtimes', 'cuda');
  return [
    {
      target: standInTarget('contention'),
      sources: ['contention/main.cpp', 'daemon/catalogue.cpp', 'daemon/sharing.cpp'].map((path) =>
        join(simulator, path),
      ),
      headers: [...simulatorHeaders, join(cuda, 'gpuwhisk_models.h')],
      flags,
      linkFlags: addressAndUndefined,
    },
    {
      target: standInTarget('control'),
      sources: [join(simulator, 'connection.c'), join(simulator, 'control', 'main.c')],
      headers: wire,
      flags: libraryFlags,
    },
    {
      // Linked with the library of `standIn`.
      target: standInTarget('client'),
      sources: sourcesIn(join(simulator, 'examples'), '.c'),
      headers: [join(simulator, 'include'), join(simulator, 'examples'), cuda].flatMap((path) => sourcesIn(path, '.h')),
      flags: [...clientFlags, `-I${join(simulator, 'include')}`],
      linkFlags: [`-L${join(out, 'cudasim')}`, '-l:libcuda.so.1', '-ldl', '-lm'],
    },
  ];
}

/** A process of the benchmark of a GPU; it runs where the driver's library is, ours or NVIDIA's. */
function gpuBench() {
  const folder = join(here, 'gpu-bench');
  const include = join(here, 'cudasim', 'include');
  return {
    target: join(out, 'gpu-bench'),
    sources: sourcesIn(folder, '.c'),
    headers: [...sourcesIn(folder, '.h'), ...sourcesIn(include, '.h')],
    flags: [...clientFlags, `-I${include}`],
    linkFlags: ['-ldl'],
  };
}

/** A function and a program of measurements on a GPU, where nothing is compiled; they find the driver at run time. */
function gpuDay() {
  const folder = join(here, 'gpu-day');
  return [
    {
      target: join(out, 'gpu-day', 'function.so'),
      sources: [join(folder, 'function.c')],
      headers: [],
      flags: libraryFlags.filter((flag) => flag !== '-fvisibility=hidden'),
      linkFlags: ['-shared', '-ldl'],
    },
    {
      target: join(out, 'gpu-day', 'checkpoint'),
      sources: [join(folder, 'checkpoint.c')],
      headers: [],
      flags: clientFlags,
      linkFlags: ['-ldl'],
    },
  ];
}

const isCpp = ({ sources }) => sources.some((source) => source.endsWith('.cpp'));

/** Parts by what needs them, in the order in which they are built: a server starts with the first group. */
const groups = {
  start: () => [sandbox(), ...['channel', 'spawn', 'tree', 'allocate'].map(smallAddon), pythonChannel(), nvml()],
  // The proxy is the last one: where it is, functions are injected.
  injection: (hasCpp) => (hasCpp && canInject ? [restorer(), resident(), prewarmer(), proxy()] : []),
  gpu: () => [tokens(), tokenServer(), gpuProbe()],
  standIn: (hasCpp) => (hasCpp ? standIn() : []),
  tools: (hasCpp) => [
    gpuBench(),
    ...gpuDay(),
    ...(hasCpp ? standInTools() : []),
    ...(hasCpp && canInject ? [injectAddon()] : []),
  ],
};
const everyGroup = Object.keys(groups).filter((group) => other === undefined || group !== 'tools');

/** Groups that a server starts without: they are built behind it, and those first that something waits for. */
const groupsBehind = ['injection', 'gpu', 'standIn'];

/** The parts of a group that this machine can build. */
async function partsOf(group) {
  if (process.platform !== 'linux' || !(await findCompiler('c'))) return [];
  const hasCpp = (await findCompiler('cpp')) !== undefined;
  return groups[group](hasCpp).filter((part) => hasCpp || !isCpp(part));
}

/** Builds a group: sources on all processors, then the programs in their order, as one may be linked with another. */
async function buildGroup(group) {
  const parts = await partsOf(group);
  await Promise.all(parts.map(compileSources));
  for (const part of parts) await build(part);
}

/** What this machine's functions do without, in a line; undefined if nothing. */
async function missingParts() {
  if (process.platform !== 'linux')
    return `Functions run without isolation: there is no sandbox for ${process.platform}.`;
  if (!(await findCompiler('c')))
    return 'Functions run without isolation: no C compiler (cc, gcc, clang) to build the sandbox.';
  if (!(await findCompiler('cpp')))
    return 'No function is injected, and no GPU is found: no C++ compiler (c++, g++, clang++).';
  return canInject ? undefined : `No function is injected: that is not made for ${arch}.`;
}

/** Keeps all that the compiler said, and gives one line of it with what to do. */
function explain(error) {
  if (!(error instanceof CompileError)) return error;
  const log = join(here, '..', 'build', 'native.log');
  if (/no space left/i.test(error.output)) return new Error(error.message);
  mkdirSync(dirname(log), { recursive: true });
  writeFileSync(log, error.output);
  const needs = 'Compilers must know C++20, as GCC 12 does';
  return new Error(`${error.message}. ${needs}; build/native.log has all that this one said.`);
}

/**
 * Builds what a server starts with, and removes other groups that are out of date: a new server must not meet an old program.
 * Resolves with the groups to build behind it, and a line about what the machine lacks. Rejects with a line that says what to do.
 */
export async function buildForStart() {
  try {
    await buildGroup('start');
    const behind = [];
    for (const group of groupsBehind) {
      const parts = await partsOf(group);
      if (!(await Promise.all(parts.map(isCurrent))).includes(false)) continue;
      behind.push(group);
      for (const { target } of parts) rmSync(target, { force: true });
    }
    return { behind, note: await missingParts() };
  } catch (error) {
    throw explain(error);
  }
}

/**
 * Builds all parts that are not built from their present sources. Resolves with a line about what the machine lacks, or
 * undefined. Rejects with a line that says what to do.
 */
export async function buildNative() {
  if (other !== undefined && !(await findCompiler('cpp')))
    throw new Error(`There is no compiler for ${other}: install Debian's g++-${machines[other]}.`);
  try {
    // All sources first: a group's last ones would leave processors idle.
    const parts = (await Promise.all(everyGroup.map(partsOf))).flat();
    await Promise.all(parts.map(compileSources));
    for (const part of parts) await build(part);
  } catch (error) {
    throw explain(error);
  }
  if (existsSync(out)) removeUnused(out);
  return missingParts();
}

/**
 * Builds groups behind a server, which forked this process (scripts/behind.mjs). A message with a group's name moves it to the
 * front. Sends `{work}`, the name, for each that is built, with `failure`, a line, if it is not.
 */
async function buildBehind(wanted) {
  setPriority(10);
  process.on('disconnect', () => process.exit(1));
  process.on('message', (group) => {
    try {
      // Something waits.
      setPriority(0);
    } catch (error) {
      // Only root may raise it.
      if (error.code !== 'ERR_SYSTEM_ERROR') throw error;
    }
    if (wanted.includes(group)) wanted.unshift(...wanted.splice(wanted.indexOf(group), 1));
  });
  for (let group = wanted.shift(); group !== undefined; group = wanted.shift()) {
    const failure = await buildGroup(group).then(
      () => undefined,
      (error) => explain(error).message,
    );
    process.send({ work: group, failure });
  }
  process.disconnect();
}

if (isMain) {
  const at = process.argv.indexOf('--behind');
  if (at >= 0) await buildBehind(process.argv.slice(at + 1));
  else {
    try {
      console.log((await buildNative()) ?? 'The native parts are up to date.');
    } catch (error) {
      console.error(error.message);
      process.exit(1);
    }
  }
}

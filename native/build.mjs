// Builds the native parts with the compilers found on PATH. Without them the platform starts with less.
import { basename, dirname, join } from 'node:path';
import { createRequire } from 'node:module';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build, findCompiler, sourcesIn } from './compile.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const isMain = process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href;
/**
 * `node native/build.mjs --sanitized`: into build/native-sanitized, for scripts/sanitized-tests.mjs. Programs and addons have
 * AddressSanitizer and UBSan. What is loaded into programs of others, and what is traced and put back page by page, cannot
 * have the former, whose shadow memory would be the function's, too: it has UBSan that ends in a trap.
 */
const sanitized = isMain && process.argv.includes('--sanitized');
const out = sanitized ? join(here, '..', 'build', 'native-sanitized') : join(here, 'build');
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
const canInject = process.platform === 'linux' && process.arch === 'x64';

function buildSandbox() {
  const folder = join(here, 'sandbox');
  return build({
    target: join(out, 'sandbox'),
    sources: [...sourcesIn(folder, '.c'), ...programSources],
    headers: [...sourcesIn(folder, '.h'), systemCalls],
    flags,
    linkFlags: addressAndUndefined,
  });
}

/** Addons in C: the Node.js runtime's end of its socket, pipes of sandboxes, walks over folders that functions fill, space for the store. */
function buildSmallAddon(name) {
  const folder = join(here, name);
  return build({
    target: join(out, `${name}.node`),
    sources: sourcesIn(folder, '.c'),
    headers: sourcesIn(folder, '.h'),
    flags: [...libraryFlags, `-isystem${nodeHeaders()[0]}`, '-DNAPI_VERSION=8'],
    linkFlags: ['-shared', '-pthread'],
  });
}

/** The Python runtime's end of its socket: one library for all interpreters, whose symbols are the program's that loads it. */
function buildPythonChannel() {
  const folder = join(here, 'python');
  const frames = join(here, 'channel');
  return build({
    target: join(out, 'python-channel.so'),
    sources: [...sourcesIn(folder, '.c'), join(frames, 'inbox.c')],
    headers: [...sourcesIn(folder, '.h'), ...sourcesIn(frames, '.h')],
    flags: libraryFlags,
    linkFlags: ['-shared', '-pthread'],
  });
}

function buildPrewarmer() {
  const folder = join(here, 'prewarmer');
  const guest = join(here, '..', 'runtimes', 'native');
  const frames = join(here, 'channel');
  return build({
    target: join(out, 'prewarmer'),
    sources: [...sourcesIn(folder, '.c', '.S'), ...sourcesIn(guest, '.c'), join(frames, 'inbox.c')],
    headers: [...[folder, guest, frames].flatMap((path) => sourcesIn(path, '.h')), systemCalls],
    flags: residentFlags,
    linkFlags: ['-pthread', '-ldl'],
  });
}

/** A process that becomes the copy of a template: static, at an address where no interpreter lies. */
function buildRestorer() {
  const folder = join(here, 'restorer');
  const resident = join(here, 'prewarmer');
  return build({
    target: join(out, 'restorer'),
    sources: [join(folder, 'main.c'), ...['channel.c', 'landlock.c', 'park.S'].map((name) => join(resident, name))],
    headers: [...sourcesIn(folder, '.h'), ...sourcesIn(resident, '.h')],
    flags: residentFlags,
    linkFlags: ['-static', '-no-pie', '-Wl,-Ttext-segment=0x70000000'],
  });
}

function buildProxy() {
  const core = join(here, 'inject');
  const folder = join(here, 'proxy');
  return build({
    target: join(out, 'proxy'),
    sources: [...sourcesIn(core, '.cpp'), ...sourcesIn(folder, '.cpp'), ...programSources],
    headers: [
      ...sourcesIn(core, '.h'),
      ...sourcesIn(folder, '.h'),
      join(here, 'prewarmer', 'mailbox.h'),
      join(here, 'restorer', 'places.h'),
    ],
    flags: sharedFlags,
    linkFlags: ['-pthread', '-ldl', ...addressAndUndefined],
  });
}

/** What makes an interpreter a pre-warmer, for it to load: the same resident code without a program. */
function buildResident() {
  const folder = join(here, 'prewarmer');
  return build({
    target: join(out, 'resident.so'),
    sources: sourcesIn(folder, '.c', '.S').filter((path) => basename(path) !== 'main.c'),
    headers: [...sourcesIn(folder, '.h'), systemCalls],
    flags: residentFlags,
    linkFlags: ['-shared'],
  });
}

/** Where the headers of Node-API lie: two packages of npm, so that nothing is downloaded for the build. */
function nodeHeaders() {
  const fromInvoker = createRequire(join(here, '..', 'invoker', 'package.json'));
  return [fromInvoker('node-api-headers').include_dir, dirname(fromInvoker.resolve('node-addon-api/package.json'))];
}

function buildAddon() {
  const core = join(here, 'inject');
  const folder = join(here, 'addon');
  return build({
    target: join(out, 'inject.node'),
    sources: [...sourcesIn(core, '.cpp'), ...sourcesIn(folder, '.cpp')],
    headers: [
      ...sourcesIn(core, '.h'),
      ...sourcesIn(folder, '.h'),
      join(here, 'prewarmer', 'mailbox.h'),
      join(here, 'restorer', 'places.h'),
    ],
    flags: sharedFlags,
    cppFlags: [...nodeHeaders().map((path) => `-isystem${path}`), '-DNAPI_CPP_EXCEPTIONS', '-DNAPI_VERSION=8'],
    linkFlags: ['-shared', '-pthread', '-ldl', ...addressAndUndefined],
  });
}

/** NVIDIA's management library for Node; it is loaded at run time, so that nothing of a GPU is needed here. */
function buildNvml() {
  const folder = join(here, 'nvml');
  return build({
    target: join(out, 'nvml.node'),
    sources: sourcesIn(folder, '.cpp'),
    headers: [...sourcesIn(folder, '.h'), join(here, 'cudasim', 'include', 'nvml.h')],
    flags: sharedFlags,
    cppFlags: [...nodeHeaders().map((path) => `-isystem${path}`), '-DNAPI_CPP_EXCEPTIONS', '-DNAPI_VERSION=8'],
    linkFlags: ['-shared', '-pthread', '-ldl', ...addressAndUndefined],
  });
}

/** The stand-in for a GPU's driver: a daemon, and the libraries that programs load in place of NVIDIA's. */
async function buildStandIn() {
  const folder = join(here, 'cudasim');
  const headers = [folder, join(folder, 'daemon')].flatMap((path) => sourcesIn(path, '.h'));
  await build({
    target: join(out, 'cudasim', 'daemon'),
    sources: sourcesIn(join(folder, 'daemon'), '.cpp'),
    headers,
    flags,
    linkFlags: addressAndUndefined,
  });
  await build({
    target: join(out, 'cudasim', 'contention'),
    sources: ['contention/main.cpp', 'daemon/catalogue.cpp', 'daemon/sharing.cpp'].map((path) => join(folder, path)),
    headers: [...headers, join(here, '..', 'runtimes', 'cuda', 'gpuwhisk_models.h')],
    flags,
    linkFlags: addressAndUndefined,
  });
  const wire = [...sourcesIn(folder, '.h'), ...sourcesIn(join(folder, 'include'), '.h')];
  await build({
    target: join(out, 'cudasim', 'libcuda.so.1'),
    sources: [join(folder, 'connection.c'), ...sourcesIn(join(folder, 'libcuda'), '.c')],
    headers: [...wire, ...sourcesIn(join(folder, 'libcuda'), '.h')],
    flags: libraryFlags,
    linkFlags: ['-shared', '-Wl,-Bsymbolic', '-Wl,-soname,libcuda.so.1', '-pthread'],
  });
  const runtime = join(folder, 'libcudart');
  await build({
    target: join(out, 'cudasim', 'libcudart.so.12'),
    sources: sourcesIn(runtime, '.c'),
    headers: [...wire, ...sourcesIn(runtime, '.h', '.map')],
    flags: libraryFlags,
    linkFlags: [
      ...['-shared', '-Wl,-Bsymbolic', '-Wl,-soname,libcudart.so.12', '-pthread', '-ldl'],
      `-Wl,--version-script=${join(runtime, 'symbols.map')}`,
    ],
  });
  await build({
    target: join(out, 'cudasim', 'control'),
    sources: [join(folder, 'connection.c'), join(folder, 'control', 'main.c')],
    headers: wire,
    flags: libraryFlags,
  });
  const cuda = join(here, '..', 'runtimes', 'cuda');
  await build({
    target: join(out, 'cudasim', 'client'),
    sources: sourcesIn(join(folder, 'examples'), '.c'),
    headers: [join(folder, 'include'), join(folder, 'examples'), cuda].flatMap((path) => sourcesIn(path, '.h')),
    flags: [...clientFlags, `-I${join(folder, 'include')}`],
    linkFlags: [`-L${join(out, 'cudasim')}`, '-l:libcuda.so.1', '-ldl', '-lm'],
  });
  await build({
    target: join(out, 'cudasim', 'libnvidia-ml.so.1'),
    sources: [join(folder, 'connection.c'), ...sourcesIn(join(folder, 'libnvml'), '.cpp')],
    headers: [...wire, ...sourcesIn(join(folder, 'libnvml'), '.h')],
    flags: libraryFlags,
    // A library that is preloaded must not change what this one calls of itself.
    linkFlags: ['-shared', '-pthread', '-Wl,-Bsymbolic', '-Wl,-soname,libnvidia-ml.so.1'],
  });
  await build({
    target: join(out, 'cudasim', 'nvidia-cuda-mps-control'),
    sources: [join(folder, 'connection.c'), ...sourcesIn(join(folder, 'mps_control'), '.cpp')],
    headers: [...wire, ...sourcesIn(join(folder, 'mps_control'), '.h')],
    flags: libraryFlags,
  });
}

/** A process of the benchmark of a GPU; it runs where the driver's library is, ours or NVIDIA's. */
function buildGpuBench() {
  const folder = join(here, 'gpu-bench');
  const include = join(here, 'cudasim', 'include');
  return build({
    target: join(out, 'gpu-bench'),
    sources: sourcesIn(folder, '.c'),
    headers: [...sourcesIn(folder, '.h'), ...sourcesIn(include, '.h')],
    flags: [...clientFlags, `-I${include}`],
    linkFlags: ['-ldl'],
  });
}

/** A test client of MPS; it runs where the driver's library is, ours or NVIDIA's. */
function buildGpuProbe() {
  const include = join(here, 'cudasim', 'include');
  return build({
    target: join(out, 'gpu-probe'),
    sources: sourcesIn(join(here, 'gpu-probe'), '.c'),
    headers: sourcesIn(include, '.h'),
    flags: [...clientFlags, `-I${include}`],
    linkFlags: ['-ldl'],
  });
}

/** A function and a program of measurements on a GPU, where nothing is compiled; they find the driver at run time. */
async function buildGpuDay() {
  const folder = join(here, 'gpu-day');
  await build({
    target: join(out, 'gpu-day', 'function.so'),
    sources: [join(folder, 'function.c')],
    headers: [],
    flags: libraryFlags.filter((flag) => flag !== '-fvisibility=hidden'),
    linkFlags: ['-shared', '-ldl'],
  });
  await build({
    target: join(out, 'gpu-day', 'checkpoint'),
    sources: [join(folder, 'checkpoint.c')],
    headers: [],
    flags: clientFlags,
    linkFlags: ['-ldl'],
  });
}

/** What is preloaded into programs that use a GPU. Its own calls must not come back to its hooks. */
function buildTokens() {
  const folder = join(here, 'tokens');
  return build({
    target: join(out, 'tokens', 'libgpuwhisk-tokens.so'),
    sources: sourcesIn(folder, '.c'),
    headers: sourcesIn(folder, '.h', '.def'),
    flags: [...libraryFlags, `-isystem${nodeHeaders()[0]}`],
    linkFlags: ['-shared', '-Wl,-Bsymbolic', '-pthread', '-ldl'],
  });
}

function buildTokenServer() {
  const folder = join(here, 'token-server');
  return build({
    target: join(out, 'tokens.node'),
    sources: sourcesIn(folder, '.cpp'),
    headers: [...sourcesIn(folder, '.h'), join(here, 'tokens', 'page.h'), join(here, 'inject', 'descriptor.h')],
    flags: sharedFlags,
    cppFlags: [...nodeHeaders().map((path) => `-isystem${path}`), '-DNAPI_CPP_EXCEPTIONS', '-DNAPI_VERSION=8'],
    linkFlags: ['-shared', '-pthread', ...addressAndUndefined],
  });
}

/**
 * Compiles what is out of date into native/build. Returns whether the sandbox is there; `note` is a plain line about
 * what is missing. Throws if the source does not compile.
 */
export async function buildNative() {
  if (process.platform !== 'linux') {
    return { built: false, note: `Functions run without isolation: there is no sandbox for ${process.platform}.` };
  }
  if (!(await findCompiler('c'))) {
    return {
      built: false,
      note: 'Functions run without isolation: no C compiler (cc, gcc, clang) to build the sandbox.',
    };
  }
  await buildSandbox();
  await buildSmallAddon('channel');
  await buildSmallAddon('spawn');
  await buildSmallAddon('tree');
  await buildSmallAddon('allocate');
  await buildPythonChannel();
  await buildTokens();
  await buildGpuBench();
  await buildGpuProbe();
  await buildGpuDay();
  if (!(await findCompiler('cpp'))) {
    const without = 'No function is injected, and no GPU is found: no C++ compiler (c++, g++, clang++).';
    return { built: true, note: without };
  }
  await buildTokenServer();
  await buildNvml();
  await buildStandIn();
  if (!canInject) return { built: true, note: `No function is injected: that is not made for ${process.arch}.` };
  await buildPrewarmer();
  await buildResident();
  await buildRestorer();
  await buildAddon();
  await buildProxy();
  return { built: true };
}

if (isMain) {
  const { built, note } = await buildNative();
  console.log(note ?? (built ? 'The native parts are up to date.' : 'The native parts were not built.'));
}

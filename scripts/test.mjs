// npm test: the suites that tell in a few minutes whether a clone works. npm run test:all (CI) adds lint and the suites
// that start platforms and clusters or need system packages. With --but-passed it leaves out the suites that npm test
// has just passed as a whole on the same build.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { ensureBuilt } from './build.mjs';
import { researchState, root } from './fresh.mjs';
import { endedParts, processorS, tableOf, timed } from './parts.mjs';
import { reasonAgainstSanitizers, statusOf } from './sanitized-tests.mjs';
import { installFromRegistries, installSystemPackages } from './test-system.mjs';

/** If more files than this fail, the cause is not a busy machine. */
const mostRepeated = 8;
/** Suites at once, for two processors: those that start processes wait half of their time. */
const workers = 3;
/** Test files in the table of those that took longest. */
const mostShown = 20;
/** The files that npm test passed last, on which build, and its parts. */
const passedFile = join(root, 'build', 'passed-tests.json');
/**
 * Suites that only test:all runs, unless a pattern names them: they start platforms, clusters or container engines, simulate
 * for minutes, or wait in real time. npm test starts one platform, too (cli/end-to-end), with one suite of each folder that
 * shows what the rest is built on: injection, the proxy, the stand-in GPU, Node.js and Python functions.
 */
const leftToAll = [
  '/node_modules/',
  '/test/dist/(ansible|chaos|conformance|console|distributed|docker|functions|gpu-functions|hostile|platform|release|simulation)/',
  '/test/dist/contract/(bull|couchdb|kafka|mscontainer|process|redis)[^/]*$',
  '/test/dist/contract/(lmdb-store|mps-enforcer|nvidia-driver|pair-templates|tokens-enforcer)[^/]*$',
  '/test/dist/api/fuzz.test.js$',
  '/test/dist/native/(?!(compile|inject|proxy).test.js$)',
  '/test/dist/gpu/(?!(cudasim|mps).test.js$)',
  '/test/dist/runtimes/(java-runtime|nodejs-languages|runtime-protocol|script-runtime).test.js$',
  '/test/dist/cli/(backup|dev|gpu-workload-progress|migrate|migrate-couchdb|scripts).test.js$',
  '/test/dist/invoker/learned-imports.test.js$',
  '/bench/dist/(gpu-day|live)/',
  '/research/dist/',
];

/** How long Jest may take to end after its report, ms: what a test has left running would hold it for ever. */
const endMs = 60_000;

const all = process.argv.includes('--all');
const butPassed = process.argv.includes('--but-passed');
const patterns = process.argv.slice(2).filter((argument) => !argument.startsWith('--'));

/** Runs Jest until it ends, or until `endMs` after it has written the report. Resolves with its exit code. */
async function runJest(args, report, env) {
  const child = spawn(process.execPath, args, { cwd: root, stdio: 'inherit', env: { ...process.env, ...env } });
  const ended = new Promise((resolve) => child.once('exit', (status) => resolve(status ?? 1)));
  let reportedMs;
  const watch = setInterval(() => {
    if (reportedMs === undefined) {
      if (existsSync(report)) reportedMs = performance.now();
    } else if (performance.now() - reportedMs > endMs) {
      console.error(`Jest did not end within ${endMs / 1000} s of its report: a test has left something running.`);
      child.kill('SIGKILL');
    }
  }, 1000);
  const status = await ended;
  clearInterval(watch);
  return status;
}

const beganMs = performance.now();
// The papers' experiments are no part of what a newcomer runs.
await ensureBuilt({ site: all, types: true, research: all || patterns.length > 0 });
let linted = true;
let sanitized = statusOf.passed;
if (all) {
  const isWhole = patterns.length === 0;
  // Lint runs beside installations, which wait for disk and network, and beside the first suites, which have priority.
  if (isWhole) linted = timed('lint', () => endsWell('nice', process.execPath, join(root, 'scripts', 'lint.mjs')));
  await timed('system packages', installSystemPackages);
  const installed = timed('packages of registries', installFromRegistries);
  if (isWhole) sanitized = await timed('suites with sanitizers', withSanitizers);
  await installed;
}

/** Resolves with the exit status of the command; null if it did not start or was killed. */
function ends(program, ...args) {
  const child = spawn(program, args, { cwd: root, stdio: 'inherit' });
  return new Promise((resolve) => {
    child.once('error', ({ message }) => resolve(console.error(message) ?? null));
    child.once('exit', resolve);
  });
}

async function endsWell(...command) {
  return (await ends(...command)) === 0;
}

/** Runs native suites on a build with sanitizers, too; resolves with the exit status. */
async function withSanitizers() {
  const reason = reasonAgainstSanitizers();
  if (reason === undefined) return ends(process.execPath, join(root, 'scripts', 'sanitized-tests.mjs'));
  console.log(`Not run with sanitizers: ${reason}.`);
  return statusOf.passed;
}

/**
 * Runs Jest once over the files, or over those that match the patterns. Resolves with its report, with paths relative
 * to the root.
 */
async function jest(args) {
  const scratch = mkdtempSync(join(tmpdir(), 'gpuwhisk-test-'));
  const file = join(scratch, 'report.json');
  const status = await runJest(
    [join(root, 'node_modules', 'jest', 'bin', 'jest.js'), '--json', `--outputFile=${file}`, '--silent', ...args],
    file,
    {
      NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ''} --experimental-vm-modules --no-warnings`,
      // The name does not begin with GPUWHISK_: platforms that tests start would take it for a setting.
      TEST_ALL: all ? '1' : '',
    },
  );
  const report = JSON.parse(readFileSync(file, 'utf8'));
  rmSync(scratch, { recursive: true, force: true });
  const files = report.testResults.map((result) => ({
    path: relative(root, result.name),
    failed: result.status === 'failed',
    seconds: Math.round((result.endTime - result.startTime) / 100) / 10,
    tests: result.assertionResults.map(({ fullName, status }) => ({ name: fullName, status })),
  }));
  return { passed: status === 0, files };
}

const minutes = (seconds) => `${Math.floor(Math.round(seconds) / 60)} min ${Math.round(seconds) % 60} s`;

/** A table of the parts of runs. Parts whose times overlap have run side by side. */
function partLines(runs) {
  const rows = runs.flatMap(({ name, parts }) => parts.map((part) => [name, part.name, part.fromS, part.seconds]));
  const sums = runs.map(({ name, tookS, processorS: busyS }) => {
    const busy = busyS === undefined ? '' : `, ${minutes(busyS)} of processor time`;
    return `${name}: ${minutes(tookS)}${busy}`;
  });
  return ['', ...tableOf(['run', 'part', 'from, s', 'seconds'], rows), ...sums];
}

function slowestLines(files) {
  const slowest = [...files].sort((one, other) => other.seconds - one.seconds).slice(0, mostShown);
  return tableOf(
    ['slowest test files', 'seconds'],
    slowest.map(({ path, seconds }) => [path, seconds]),
  );
}

const isSkipped = (status) => status === 'pending' || status === 'todo';

function rememberPassed(files, parts) {
  const whole = files.filter(({ tests }) => !tests.some(({ status }) => isSkipped(status))).map(({ path }) => path);
  const times = files.map(({ path, seconds }) => ({ path, seconds }));
  writeFileSync(passedFile, JSON.stringify({ build: researchState(), whole, parts, times }));
}

const passedBefore = () => (existsSync(passedFile) ? JSON.parse(readFileSync(passedFile, 'utf8')) : {});

/** All test files but those that npm test has passed on this build. */
function notPassedYet() {
  const { build, whole } = passedBefore();
  const passed = new Set(build === researchState() ? whole : []);
  const listed = spawnSync(process.execPath, [join(root, 'node_modules', 'jest', 'bin', 'jest.js'), '--listTests'], {
    cwd: root,
    encoding: 'utf8',
  });
  if (listed.status !== 0) throw new Error(`Jest listed no tests: ${listed.stderr}`);
  const paths = listed.stdout.split('\n').filter((line) => line !== '');
  const left = paths.map((path) => relative(root, path)).filter((path) => !passed.has(path));
  console.log(`${paths.length - left.length} test files passed in npm test and are not run again.`);
  return left;
}

const count = (files, wanted) => files.flatMap(({ tests }) => tests).filter(({ status }) => status === wanted).length;

const asked = butPassed ? notPassedYet() : patterns;
const but = all || patterns.length > 0 ? [] : leftToAll.flatMap((pattern) => ['--testPathIgnorePatterns', pattern]);
const first = await timed('suites', () =>
  jest([`--maxWorkers=${workers}`, ...(butPassed ? ['--runTestsByPath'] : []), ...asked, ...but]),
);
let { files, passed } = first;
linted = await linted;
if (!linted) console.error('Lint has failed.');
// Other work on the machine can starve a test of real processes; run alone, the test must pass. What a sanitizer reports stands.
if (sanitized === statusOf.failed) sanitized = await timed('suites with sanitizers, once more', withSanitizers);
if (sanitized !== statusOf.passed) console.error('The native suites fail on the build with sanitizers.');
const failed = files.filter((file) => file.failed).map(({ path }) => path);
if (failed.length > 0 && failed.length <= mostRepeated && patterns.length === 0) {
  console.log(`Failed, and run once more with nothing beside: ${failed.join(', ')}`);
  const second = await timed('failed suites, once more', () => jest(['--runInBand', '--runTestsByPath', ...failed]));
  files = [...files.filter((file) => !file.failed), ...second.files];
  passed = second.passed;
  if (passed) console.log(`Passed the second time only: ${failed.join(', ')}`);
}

const allowed = new Set(JSON.parse(readFileSync(join(root, 'test', 'allowed-skips.json'), 'utf8')));
const skipped = files
  .flatMap(({ tests }) => tests)
  .filter(({ status }) => isSkipped(status))
  .map(({ name }) => name);
const unexpected = all ? skipped.filter((name) => !allowed.has(name)) : [];
for (const name of unexpected) console.error(`skipped, and not on test/allowed-skips.json: ${name}`);
const passes = count(files, 'passed');
const tookS = (performance.now() - beganMs) / 1000;
const own = { name: all ? 'npm run test:all' : 'npm test', tookS, processorS: processorS(), parts: endedParts() };
const before = butPassed ? passedBefore() : {};
const runs = [...(before.parts ? [before.parts] : []), own];
const times = [...(before.times ?? []), ...files];
for (const line of [...partLines(runs), '', ...slowestLines(times), '']) console.log(line);
console.log(`Took ${minutes(tookS)}, with the build.`);
console.log(`${passes} passed, ${count(files, 'failed')} failed, ${skipped.length} skipped`);
const good = passed && linted && sanitized === statusOf.passed && passes > 0 && unexpected.length === 0;
if (good && patterns.length === 0 && !all) rememberPassed(files, own);
process.exit(good ? 0 : 1);

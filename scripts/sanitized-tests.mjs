// Runs native suites once more on a build with sanitizers, which a mount namespace of the tests puts over native/build.
// native/build.mjs --sanitized lists the parts and their sanitizers.
//
//   node scripts/sanitized-tests.mjs [PATTERN]...
//
// Requires a C++ compiler with its sanitizers, and root. Exits with 1 if a test fails, and with 3 if a sanitizer reports
// anything or the build fails.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from './fresh.mjs';

/** Suites that exercise the sanitized parts, in a minute or two. */
const suites = [
  'test/dist/native/proxy.test',
  'test/dist/native/inject.test',
  'test/dist/contract/pair-templates.test',
  'test/dist/gpu/cudasim.test',
];
const built = join(root, 'native', 'build');
const sanitized = join(root, 'build', 'native-sanitized');
export const statusOf = { passed: 0, failed: 1, report: 3 };
const buildLimitMs = 900_000;
const limitMs = 600_000;

/** Why this machine cannot run sanitized tests, or undefined if it can. */
export function reasonAgainstSanitizers() {
  if (process.platform !== 'linux' || process.arch !== 'x64') return `not on ${process.platform} ${process.arch}`;
  if (process.getuid?.() !== 0) return 'takes root';
  const mount = spawnSync('unshare', ['--mount', 'true'], { timeout: 20_000 });
  return mount.status === 0 ? undefined : 'no mount namespace of its own';
}

/** Builds, and runs the suites that match; returns the exit status. */
export function runSanitized(patterns = suites) {
  const build = spawnSync(process.execPath, [join(root, 'native', 'build.mjs'), '--sanitized'], {
    stdio: 'inherit',
    timeout: buildLimitMs,
  });
  if (build.status !== 0) return statusOf.report;
  const scratch = mkdtempSync(join(tmpdir(), 'gpuwhisk-sanitized-'));
  const runtime = spawnSync('gcc', ['-print-file-name=libasan.so'], { encoding: 'utf8' }).stdout.trim();
  const jest = join(root, 'node_modules', 'jest', 'bin', 'jest.js');
  const run = spawnSync(
    'unshare',
    [
      ...['--mount', 'sh', '-c', 'mount --bind "$1" "$2" && shift 2 && exec "$@"', 'sh', sanitized, built],
      ...[process.execPath, jest, '--silent', ...patterns],
    ],
    {
      cwd: root,
      stdio: 'inherit',
      timeout: limitMs,
      env: {
        ...process.env,
        NODE_OPTIONS: '--experimental-vm-modules --no-warnings',
        // Node.js itself has no sanitizer: its addons find the run-time library loaded.
        LD_PRELOAD: runtime,
        ASAN_OPTIONS: `detect_leaks=0:handle_segv=0:log_path=${join(scratch, 'report')}`,
        UBSAN_OPTIONS: `print_stacktrace=1:log_path=${join(scratch, 'report')}`,
      },
    },
  );
  const reports = readdirSync(scratch);
  for (const name of reports) console.error(readFileSync(join(scratch, name), 'utf8'));
  rmSync(scratch, { recursive: true, force: true });
  if (reports.length > 0 || !existsSync(join(sanitized, 'proxy'))) return statusOf.report;
  return run.status === 0 ? statusOf.passed : statusOf.failed;
}

if (process.argv[1] === import.meta.filename) {
  const reason = reasonAgainstSanitizers();
  if (reason !== undefined) {
    console.error(`Cannot run with sanitizers: ${reason}.`);
    process.exit(2);
  }
  process.exit(runSanitized(process.argv.length > 2 ? process.argv.slice(2) : undefined));
}

// npm test: lint and every test that needs nothing but Node. npm run test:all (CI) adds the parts that need system packages.
import './node-version.cjs';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ensureBuilt } from './build.mjs';
import { root } from './fresh.mjs';
import { prepareSystem } from './test-system.mjs';

const all = process.argv.includes('--all');
const patterns = process.argv.slice(2).filter((argument) => !argument.startsWith('--'));

function run(args, env = {}) {
  const result = spawnSync(process.execPath, args, { cwd: root, stdio: 'inherit', env: { ...process.env, ...env } });
  return result.status ?? 1;
}

await ensureBuilt();
if (all) prepareSystem();
if (patterns.length === 0) {
  const checks = [
    [join(root, 'node_modules', 'eslint', 'bin', 'eslint.js'), '.'],
    [join(root, 'node_modules', 'prettier', 'bin', 'prettier.cjs'), '--check', '--log-level', 'warn', '.'],
  ];
  for (const check of checks) if (run(check) !== 0) process.exit(1);
}

const scratch = mkdtempSync(join(tmpdir(), 'gpuwhisk-test-'));
const report = join(scratch, 'report.json');
const status = run(
  [join(root, 'node_modules', 'jest', 'bin', 'jest.js'), '--json', `--outputFile=${report}`, '--silent', ...patterns],
  {
    NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ''} --experimental-vm-modules --no-warnings`,
    // Not GPUWHISK_..., which the platforms that tests start would take for a setting.
    TEST_ALL: all ? '1' : '',
  },
);
const result = JSON.parse(readFileSync(report, 'utf8'));
rmSync(scratch, { recursive: true, force: true });

const allowed = new Set(JSON.parse(readFileSync(join(root, 'test', 'allowed-skips.json'), 'utf8')));
const skipped = result.testResults
  .flatMap((file) => file.assertionResults)
  .filter((test) => test.status === 'pending' || test.status === 'todo')
  .map((test) => test.fullName);
const unexpected = all ? skipped.filter((name) => !allowed.has(name)) : [];
for (const name of unexpected) console.error(`skipped, and not on test/allowed-skips.json: ${name}`);
console.log(`${result.numPassedTests} passed, ${result.numFailedTests} failed, ${skipped.length} skipped`);
process.exit(status !== 0 || result.numPassedTests === 0 || unexpected.length > 0 ? 1 : 0);

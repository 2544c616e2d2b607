// npm run lint: every check that reads the code and does not run it. All checks are run, also after one has failed.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { root } from './fresh.mjs';

const checks = [
  ['node_modules/eslint/bin/eslint.js', '.'],
  ['node_modules/prettier/bin/prettier.cjs', '--check', '--log-level', 'warn', '.'],
  ['scripts/lint-structure.mjs'],
  ['scripts/lint-words.mjs'],
];
const failed = checks.filter(([program, ...args]) => {
  const { status } = spawnSync(process.execPath, [join(root, program), ...args], { cwd: root, stdio: 'inherit' });
  return status !== 0;
});
process.exit(failed.length === 0 ? 0 : 1);

// npm run lint: every check that reads the code and does not run it: types first, which ESLint reads, then all others, also
// after one has failed.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { ensureTypesChecked } from './build.mjs';
import { root } from './fresh.mjs';

/** What one after the other checks; the two rows run at the same time, as ESLint takes as long as the others together. */
const rows = [
  [['node_modules/eslint/bin/eslint.js', '.']],
  [
    ['node_modules/prettier/bin/prettier.cjs', '--check', '--log-level', 'warn', '.'],
    ['scripts/lint-structure.mjs'],
    ['scripts/lint-words.mjs'],
  ],
];

async function passes([program, ...args]) {
  const child = spawn(process.execPath, [join(root, program), ...args], { cwd: root, stdio: 'inherit' });
  const [status] = await once(child, 'exit');
  return status === 0;
}

await ensureTypesChecked();
const checkRow = async (row) => {
  let passed = true;
  for (const check of row) passed = (await passes(check)) && passed;
  return passed;
};
const passed = await Promise.all(rows.map(checkRow));
process.exit(passed.includes(false) ? 1 : 0);

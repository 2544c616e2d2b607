// Ansible and its linter for the tests of the playbooks, from Python's packages.
import { spawnSync } from 'node:child_process';
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../fresh.mjs';

const folder = join(root, 'node_modules', '.cache', 'ansible');
const packages = ['ansible-core==2.19.14', 'ansible-lint==26.10.1'];
const timeoutMs = 300_000;

/** Installs both, once. Returns why it could not; undefined: they are there. */
export function installAnsible() {
  if (existsSync(join(folder, 'bin', 'ansible-lint'))) return undefined;
  // An environment of Python's knows its own path: it is made where it stays.
  rmSync(folder, { recursive: true, force: true });
  const options = { stdio: 'ignore', timeout: timeoutMs };
  const made =
    spawnSync('python3', ['-m', 'venv', folder], options).status === 0 &&
    spawnSync(join(folder, 'bin', 'pip'), ['install', '--quiet', ...packages], options).status === 0;
  if (made) return undefined;
  rmSync(folder, { recursive: true, force: true });
  return 'Python could not bring its packages';
}

// Programs of Python's packages, each in an environment of its own that tests use.
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../fresh.mjs';
import { succeeds } from './quiet.mjs';

const timeoutMs = 300_000;

/** Installs packages, once, into a folder of the cache. Resolves with why it could not; undefined: `program` is there. */
export async function installPython(name, program, packages) {
  const folder = join(root, 'node_modules', '.cache', name);
  if (existsSync(join(folder, 'bin', program))) return undefined;
  // An environment of Python's knows its own path: it is made where it stays.
  rmSync(folder, { recursive: true, force: true });
  const options = { timeout: timeoutMs };
  const made =
    (await succeeds('python3', ['-m', 'venv', folder], options)) &&
    (await succeeds(join(folder, 'bin', 'pip'), ['install', '--quiet', ...packages], options));
  if (made) return undefined;
  rmSync(folder, { recursive: true, force: true });
  return 'Python could not bring its packages';
}

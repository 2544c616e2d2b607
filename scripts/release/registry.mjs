// Packages of npm's registry with programs, for any processor: checked by npm against the registry's digest, and by the lock
// file's where that names them.
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { root } from '../fresh.mjs';
import { run } from './run.mjs';

const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')).packages;

/** Fetches a package into a folder, which is made, whole or not at all. Throws an Error if its digest is not the lock file's. */
export function fetchPackage(name, version, folder) {
  mkdirSync(dirname(folder), { recursive: true });
  const scratch = mkdtempSync(join(dirname(folder), '.fetch-'));
  try {
    const packed = run('npm', ['pack', '--json', `${name}@${version}`], { cwd: scratch });
    const [{ filename }] = JSON.parse(packed);
    const wanted = lock[`node_modules/${name}`];
    if (wanted?.version === version) {
      const digest = createHash('sha512')
        .update(readFileSync(join(scratch, filename)))
        .digest('base64');
      if (wanted.integrity !== `sha512-${digest}`)
        throw new Error(`${name}@${version} is not the package of package-lock.json: its digest is sha512-${digest}.`);
    }
    run('tar', ['-xzf', filename, '--no-same-owner'], { cwd: scratch });
    renameSync(join(scratch, 'package'), folder);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

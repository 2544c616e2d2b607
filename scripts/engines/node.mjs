// Node.js 24 for the tests of newer releases of Node.js, in build/node-24, where the tests run in an older one.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../fresh.mjs';
import { succeeds } from './quiet.mjs';

const release = 24;

/** Installs it from npm's registry, unless it is there. Resolves with the reason in words if that fails. */
export async function installNode() {
  if (Number.parseInt(process.versions.node, 10) >= release) return undefined;
  const name = `node-${process.platform}-${process.arch}`;
  const prefix = join(root, 'build', `node-${release}`);
  if (existsSync(join(prefix, 'node_modules', name, 'bin', 'node'))) return undefined;
  const options = ['--ignore-scripts', '--no-audit', '--no-fund', '--no-package-lock', '--no-save'];
  const words = ['install', ...options, '--prefix', prefix, `${name}@${release}`];
  return (await succeeds('npm', words, { timeout: 300_000 })) ? undefined : 'npm install failed';
}

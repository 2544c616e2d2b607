// Installs and builds what is missing or out of date; quick when nothing is.
import './node-version.cjs';
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { currentState, root, stampedState, writeStamp } from './fresh.mjs';

function run(command, args, what) {
  const result = spawnSync(command, args, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'], encoding: 'utf8' });
  if (result.status === 0) return;
  console.error(
    `${what} failed:\n${result.stdout ?? ''}${result.stderr ?? ''}${result.error ? result.error.message : ''}`,
  );
  process.exit(1);
}

/** Brings the clone up to date; ends the process with a message if that fails. */
export async function ensureBuilt() {
  const stamped = stampedState();
  let state = currentState();
  if (state.install !== stamped.install || state.node !== stamped.node || !existsSync(join(root, 'node_modules'))) {
    console.log('Installing dependencies (once) ...');
    run('npm', ['install', '--no-audit', '--no-fund'], 'npm install');
    const after = currentState();
    if (after.install !== state.install) console.error('Note: npm install changed package-lock.json.');
    state = after;
    stamped.build = undefined;
  }
  if (state.build === stamped.build) return;
  console.log('Building (once) ...');
  run(process.execPath, [join(root, 'node_modules', 'typescript', 'bin', 'tsc'), '-b'], 'The TypeScript build');
  const nativeBuild = join(root, 'native', 'build.mjs');
  if (existsSync(nativeBuild)) {
    const { buildNative } = await import(pathToFileURL(nativeBuild).href);
    const { note } = await buildNative();
    if (note) console.log(note);
  }
  writeStamp(currentState());
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) await ensureBuilt();

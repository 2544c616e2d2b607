// npm run images -- [--build-arg NAME=VALUE ...] [TARGET ...]: makes images of docker/Dockerfile from this clone; all
// of them unless targets are named. Takes DOCKER_HOST from the environment.
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { root } from './fresh.mjs';
import { layOutRelease } from './release/layout.mjs';

const names = {
  nodejs: 'gpuwhisk/action-nodejs-v22:latest',
  python: 'gpuwhisk/action-python-v3.11:latest',
  native: 'gpuwhisk/action-native-v1:latest',
  java: 'gpuwhisk/action-java-v17:latest',
  server: 'gpuwhisk/server:latest',
};
const timeoutMs = 1_800_000;
/** Leaves what only the server takes, thousands of files, out of what a builder is sent for the other images. */
const forActions = ['release/*', ...['build', 'native', 'node_modules', 'runtimes'].map((name) => `!release/${name}`)];
const ignored = [...forActions, 'release/node_modules/*', '!release/node_modules/adm-zip'].join('\n');

function run(command, args, cwd = root) {
  const { status, error } = spawnSync(command, args, { cwd, stdio: 'inherit', timeout: timeoutMs });
  if (status === 0) return;
  console.error(`${command} ${args[0]} failed${error ? `: ${error.message}` : '.'}`);
  process.exit(1);
}

const { values, positionals } = parseArgs({
  options: { 'build-arg': { type: 'string', multiple: true, default: [] } },
  allowPositionals: true,
});
const unknown = positionals.find((target) => !(target in names));
if (unknown !== undefined) {
  console.error(`There is no image '${unknown}'; there are ${Object.keys(names).join(', ')}.`);
  process.exit(2);
}
const context = mkdtempSync(join(tmpdir(), 'gpuwhisk-images-'));
process.on('exit', () => rmSync(context, { recursive: true, force: true }));
await layOutRelease(join(context, 'release'));
cpSync(join(root, 'native', 'entry'), join(context, 'entry'), { recursive: true });
const buildArgs = values['build-arg'].flatMap((argument) => ['--build-arg', argument]);
for (const target of positionals.length > 0 ? positionals : Object.keys(names)) {
  const file = join(root, 'docker', 'Dockerfile');
  writeFileSync(join(context, '.dockerignore'), target === 'server' ? '' : ignored);
  run('docker', ['build', ...buildArgs, '--target', target, '--tag', names[target], '--file', file, context]);
  console.log(names[target]);
}

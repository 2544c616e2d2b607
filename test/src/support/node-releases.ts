// Releases of Node.js beside the one that the tests run by.
import { spawnSync } from 'node:child_process';
import { existsSync, realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import { delimiter, join } from 'node:path';

const { pathOf } = createRequire(import.meta.url)('../../../scripts/own-node.cjs') as { pathOf(): string };
const isNewer = Number.parseInt(process.versions.node, 10) >= 24;

/** A program of Node.js 24 or newer; undefined if there is none: `npm run test:all` fetches it. */
export const newerNode = isNewer ? process.execPath : existsSync(pathOf()) ? pathOf() : undefined;

const onPath = (process.env['PATH'] ?? '').split(delimiter).map((folder) => join(folder, 'node'));
const versionOf = (program: string): string => spawnSync(program, ['--version'], { encoding: 'utf8' }).stdout;
const older = onPath.find((program) => existsSync(program) && versionOf(program).startsWith('v20.'));

/** A program of Node.js 20, the oldest that actions may ask for; undefined if the PATH has none. */
export const olderNode = older === undefined ? undefined : realpathSync(older);

import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const release = 24;
const packageName = `node-${process.platform}-${process.arch}`;
const installed = fileURLToPath(
  new URL(`../../../build/node-${release}/node_modules/${packageName}/bin/node`, import.meta.url),
);
const isOwn = Number.parseInt(process.versions.node, 10) >= release;

/** A program of Node.js 24 or newer; undefined if there is none: `npm run test:all` installs it. */
export const newerNode = isOwn ? process.execPath : existsSync(installed) ? installed : undefined;

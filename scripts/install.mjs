// Installation of the dependencies that package-lock.json names, which stays as it is.
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { currentState, root, stamp, stampedState } from './fresh.mjs';
import programs from './program.cjs';

const timeoutMs = 900_000;
const mostOutputBytes = 64 * 1024 * 1024;
const quiet = ['--no-audit', '--no-fund'];
/** Packages that a server is built from. Their tools, esbuild and vite, are no development dependencies. */
const serverOnly = [
  ...['--omit=dev', '--include-workspace-root'],
  ...[...programs.packages, 'console'].map((name) => `--workspace=${name}`),
];
const noRegistry =
  /\bE(?:NOTFOUND|AI_AGAIN|CONNREFUSED|CONNRESET|NETUNREACH|HOSTUNREACH|TIMEDOUT|SOCKETTIMEDOUT)\b|ERR_SOCKET_TIMEOUT/;

/**
 * Installs what is missing: for a server, or with `all` for tests, lint and the documentation, too. Rejects with an Error that
 * says what to do.
 */
export async function ensureInstalled({ all }) {
  const { node, install } = currentState();
  const stamped = stampedState();
  const isHere = stamped.install === install && stamped.node === node && existsSync(join(root, 'node_modules'));
  const hasAll = stamped.install !== undefined && stamped.installed !== 'server';
  if (isHere && (hasAll || !all)) return;
  console.log(isHere ? 'Installing what tests and tools need (once) ...' : 'Installing dependencies (once) ...');
  const { server, build } = stamped;
  // An installation that is stopped is done again from its beginning.
  stamp({ install: undefined, server: undefined, build: undefined });
  if (!isHere) await npm(['ci', ...quiet, ...(all || hasAll ? [] : serverOnly)]);
  else {
    try {
      // A running server goes on reading the packages that it has: the rest is added. The lock file stays as it is.
      await npm(['install', '--no-save', ...quiet]);
    } catch (error) {
      stamp({ install, server, build });
      throw error;
    }
  }
  stamp({ install, node, installed: all || hasAll ? 'all' : 'server', ...(isHere && { server, build }) });
}

async function npm(args) {
  try {
    await promisify(execFile)('npm', args, { cwd: root, timeout: timeoutMs, maxBuffer: mostOutputBytes });
  } catch (error) {
    const printed = `${error.stdout ?? ''}${error.stderr ?? ''}`;
    throw new Error(explain(error, printed), { cause: error });
  }
}

function explain(error, printed) {
  if (error.code === 'ENOENT') return 'npm was not found: install it beside Node.js.';
  if (error.killed) return `npm ${error.signal} after ${timeoutMs / 60_000} minutes: check the network, and try again.`;
  if (/\bENOSPC\b/.test(printed)) return 'The disk is full: free about 1 GB, and try again.';
  const [code] = noRegistry.exec(printed) ?? [];
  if (code !== undefined)
    return `npm cannot reach its registry (${code}): check the network and npm's settings 'registry' and 'proxy', and try again.`;
  return `npm could not install the dependencies:\n${printed === '' ? error.message : printed}`;
}

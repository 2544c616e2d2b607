import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const folder = new URL('../../engines/', import.meta.url);

/** URL of a CouchDB that tests use instead of starting a server, with an administrator's name and password. */
const given = process.env.TEST_COUCHDB_URL;

/** Whether TEST_COUCHDB_URL names a server, or the one for startCouchdb is installed (by npm run test:all). */
export const hasCouchdb =
  given !== undefined ||
  ['express-pouchdb', 'pouchdb-adapter-leveldb'].every((name) => existsSync(new URL(`node_modules/${name}`, folder)));

/** A server that speaks CouchDB's protocol. */
export interface CouchdbServer {
  /** URL with name and password, if the server requires them. */
  url: string;
  port: number;
  /** Whether the tests started the server, and may kill it. */
  isOwn: boolean;
  /** Sends JSON to a path below the root; resolves with the JSON of the answer. */
  request(method: string, path: string, body?: object): Promise<Record<string, unknown>>;
  stop(): Promise<void>;
  /** Ends the server at once, with SIGKILL. */
  kill(): Promise<void>;
}

/** Address, storage and accounts of a server. */
export interface CouchdbServerOptions {
  /**
   * Prefixes of the caller's databases. On a server that is not the tests' own, these databases are deleted before and
   * after.
   */
  prefixes: readonly string[];
  /** Default: a free port. */
  port?: number;
  /** Data folder; default: databases are in memory. */
  dir?: string;
  /** The administrator, who may create further accounts; default: no request needs an account. */
  admin?: { name: string; password: string };
}

/** Starts a server of CouchDB's protocol, or uses the one that TEST_COUCHDB_URL names. */
export async function startCouchdb({ prefixes, port = 0, dir, admin }: CouchdbServerOptions): Promise<CouchdbServer> {
  if (given !== undefined) return await useCouchdb(given, prefixes);
  const program = fileURLToPath(new URL('couchdb-server.cjs', folder));
  const child = spawn(process.execPath, [program, String(port), ...(dir === undefined ? [] : [dir])], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: {
      ...process.env,
      ...(admin && { COUCHDB_ACCOUNTS: '1', COUCHDB_USER: admin.name, COUCHDB_PASSWORD: admin.password }),
    },
  });
  const exited = once(child, 'exit');
  const listens = await Promise.race([
    once(child.stdout, 'data').then(([line]) => Number(line)),
    exited.then(([code]) => Promise.reject(new Error(`the server ended with ${String(code)}`))),
  ]);
  const url = `http://127.0.0.1:${listens}`;
  return {
    url,
    port: listens,
    isOwn: true,
    request: (...request) => send(url, ...request),
    async stop() {
      child.stdin.end();
      await exited;
    },
    async kill() {
      child.kill('SIGKILL');
      await exited;
    },
  };
}

async function useCouchdb(url: string, prefixes: readonly string[]): Promise<CouchdbServer> {
  const request: CouchdbServer['request'] = (...parts) => send(url, ...parts);
  const clear = async (): Promise<void> => {
    const databases = Object.values(await request('GET', '_all_dbs')).map(String);
    const used = databases.filter((name) => prefixes.some((prefix) => name.startsWith(prefix)));
    for (const name of used) await request('DELETE', name);
  };
  await clear();
  const kill = (): Promise<void> => Promise.reject(new Error("the server is not the tests' own"));
  return { url, port: Number(new URL(url).port), isOwn: false, request, stop: clear, kill };
}

async function send(url: string, method: string, path: string, body?: object): Promise<Record<string, unknown>> {
  const { origin, username, password } = new URL(url);
  const user = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  const headers = {
    accept: 'application/json',
    'content-type': 'application/json',
    ...(username !== '' && { authorization: `Basic ${Buffer.from(user).toString('base64')}` }),
  };
  const answer = await fetch(`${origin}/${path}`, { method, headers, ...(body && { body: JSON.stringify(body) }) });
  return (await answer.json()) as Record<string, unknown>;
}

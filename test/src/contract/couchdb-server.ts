import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const folder = new URL('../../engines/', import.meta.url);

/** A server to be used in place of those that tests start, with the name and password of an administrator: a real CouchDB. */
const given = process.env.TEST_COUCHDB_URL;

/** Whether there is one, or the server that startCouchdb starts is installed: npm run test:all does so. */
export const hasCouchdb =
  given !== undefined ||
  ['express-pouchdb', 'pouchdb-adapter-leveldb'].every((name) => existsSync(new URL(`node_modules/${name}`, folder)));

/** A server of CouchDB's protocol. */
export interface CouchdbServer {
  /** With name and password, where it asks for them. */
  url: string;
  port: number;
  /** Whether it is the tests' own, and may be killed. */
  isOwn: boolean;
  /** Sends JSON to a path below the root, and resolves with the JSON of the answer. */
  request(method: string, path: string, body?: object): Promise<Record<string, unknown>>;
  stop(): Promise<void>;
  /** Ends it at once, with SIGKILL. */
  kill(): Promise<void>;
}

/** Where a server listens, and keeps what it has. */
export interface CouchdbServerOptions {
  /** Of the names of databases that the caller uses: those of a server that is not the tests' own are removed before and after. */
  prefixes: readonly string[];
  /** Default: a free one. */
  port?: number;
  /** Default: everything is in memory. */
  dir?: string;
  /** Its administrator, who may make further accounts; default: everybody may do everything. */
  admin?: { name: string; password: string };
}

/** Starts a server of CouchDB's protocol, or takes that which TEST_COUCHDB_URL names. */
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

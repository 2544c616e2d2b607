import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const folder = new URL('../../engines/', import.meta.url);

/** Whether the server that startCouchdb starts is installed: npm run test:all does so. */
export const hasCouchdb = ['express-pouchdb', 'pouchdb-adapter-leveldb'].every((name) =>
  existsSync(new URL(`node_modules/${name}`, folder)),
);

/** A server of CouchDB's protocol. */
export interface CouchdbServer {
  url: string;
  port: number;
  stop(): Promise<void>;
  /** Ends it at once, with SIGKILL. */
  kill(): Promise<void>;
}

/** Where a server listens, and keeps what it has. */
export interface CouchdbServerOptions {
  /** Default: a free one. */
  port?: number;
  /** Default: everything is in memory. */
  dir?: string;
}

/** Starts a server of CouchDB's protocol. */
export async function startCouchdb({ port = 0, dir }: CouchdbServerOptions = {}): Promise<CouchdbServer> {
  const program = fileURLToPath(new URL('couchdb-server.cjs', folder));
  const child = spawn(process.execPath, [program, String(port), ...(dir === undefined ? [] : [dir])], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  const given = await Promise.race([
    once(child.stdout, 'data').then(([line]) => Number(line)),
    exited.then(([code]) => Promise.reject(new Error(`the server ended with ${String(code)}`))),
  ]);
  return {
    url: `http://127.0.0.1:${given}`,
    port: given,
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

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const folder = new URL('../../engines/', import.meta.url);

/** Whether the server that startCouchdb starts is installed: npm run test:all does so. */
export const hasCouchdb = existsSync(new URL('node_modules/express-pouchdb', folder));

/** A server of CouchDB's protocol. */
export interface CouchdbServer {
  url: string;
  stop(): Promise<void>;
}

/** Starts a server of CouchDB's protocol that has nothing in it, on a free port. */
export async function startCouchdb(): Promise<CouchdbServer> {
  const child = spawn(process.execPath, [fileURLToPath(new URL('couchdb-server.cjs', folder))], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  const port = await Promise.race([
    once(child.stdout, 'data').then(([line]) => Number(line)),
    exited.then(([code]) => Promise.reject(new Error(`the server ended with ${String(code)}`))),
  ]);
  return {
    url: `http://127.0.0.1:${port}`,
    async stop() {
      child.stdin.end();
      await exited;
    },
  };
}

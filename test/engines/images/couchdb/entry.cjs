'use strict';
// As the official image: files in local.d configure it. The server ends with its input: as a container's first process it
// would have none.
const { spawn } = require('node:child_process');
const { readFileSync, readdirSync } = require('node:fs');

const folder = '/opt/couchdb/etc/local.d';
const text = readdirSync(folder)
  .map((name) => readFileSync(`${folder}/${name}`, 'utf8'))
  .join('\n');
const setting = (name) => new RegExp(`^${name} = (.*)$`, 'm').exec(text)?.[1];
const args = ['/opt/couchdb/couchdb-server.cjs', setting('port'), '/opt/couchdb/data', '0.0.0.0'];
const own = { COUCHDB_ACCOUNTS: '1', COUCHDB_CERT: setting('cert_file'), COUCHDB_KEY: setting('key_file') };
const server = spawn(process.execPath, args, {
  stdio: ['pipe', 'inherit', 'inherit'],
  env: { ...process.env, ...own },
});
process.on('SIGTERM', () => server.stdin.end());
server.on('exit', (code) => process.exit(code ?? 1));

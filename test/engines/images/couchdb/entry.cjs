'use strict';
// The server ends with its input: as a container's first process it would have none.
const { spawn } = require('node:child_process');

const args = ['/opt/couchdb/couchdb-server.cjs', '5984', '/opt/couchdb/data', '0.0.0.0'];
const server = spawn(process.execPath, args, { stdio: ['pipe', 'inherit', 'inherit'] });
process.on('SIGTERM', () => server.stdin.end());
server.on('exit', (code) => process.exit(code ?? 1));

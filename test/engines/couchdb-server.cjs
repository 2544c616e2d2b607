'use strict';
// A server of CouchDB's protocol on 127.0.0.1, which prints its port. `[PORT] [FOLDER]`: by default a free port, and
// everything in memory. Ends with its parent.
const PouchDB = require('pouchdb-core').plugin(require('pouchdb-adapter-memory')).plugin(require('pouchdb-mapreduce'));
const express = require('express');
const couchdb = require('express-pouchdb');
const os = require('node:os');
const path = require('node:path');

const [port = '0', folder] = process.argv.slice(2);
if (folder !== undefined) PouchDB.plugin(require('pouchdb-adapter-leveldb'));
const stored = folder === undefined ? { adapter: 'memory' } : { adapter: 'leveldb', prefix: `${folder}/` };
const logPath = path.join(os.tmpdir(), `gpuwhisk-couchdb-${process.pid}.log`);
const app = express();
app.use('/', couchdb(PouchDB.defaults(stored), { mode: 'minimumForPouchDB', inMemoryConfig: true, logPath }));
const server = app.listen(Number(port), '127.0.0.1', () => console.log(server.address().port));
process.stdin.resume();
process.stdin.on('end', () => {
  require('node:fs').rmSync(logPath, { force: true });
  process.exit(0);
});

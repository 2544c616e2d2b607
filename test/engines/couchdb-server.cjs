'use strict';
// A server of CouchDB's protocol with everything in memory, on a free port, which it prints. Ends with its parent.
const PouchDB = require('pouchdb-core').plugin(require('pouchdb-adapter-memory')).plugin(require('pouchdb-mapreduce'));
const express = require('express');
const couchdb = require('express-pouchdb');
const os = require('node:os');
const path = require('node:path');

const logPath = path.join(os.tmpdir(), `gpuwhisk-couchdb-${process.pid}.log`);
const app = express();
app.use('/', couchdb(PouchDB, { mode: 'minimumForPouchDB', inMemoryConfig: true, logPath }));
const server = app.listen(0, '127.0.0.1', () => console.log(server.address().port));
process.stdin.resume();
process.stdin.on('end', () => {
  require('node:fs').rmSync(logPath, { force: true });
  process.exit(0);
});

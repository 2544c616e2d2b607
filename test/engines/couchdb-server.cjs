'use strict';
// A server of CouchDB's protocol, which prints its port. `[PORT] [FOLDER] [ADDRESS]`: by default a free port on 127.0.0.1,
// and everything in memory (FOLDER absent or empty). Asks for the name and password COUCHDB_USER and COUCHDB_PASSWORD where
// they are set. Ends with its parent.
const PouchDB = require('pouchdb-core').plugin(require('pouchdb-adapter-memory')).plugin(require('pouchdb-mapreduce'));
const express = require('express');
const couchdb = require('express-pouchdb');
const os = require('node:os');
const path = require('node:path');

const [port = '0', folder = '', host = '127.0.0.1'] = process.argv.slice(2);
if (folder !== '') PouchDB.plugin(require('pouchdb-adapter-leveldb'));
const stored = folder === '' ? { adapter: 'memory' } : { adapter: 'leveldb', prefix: `${folder}/` };
const logPath = path.join(os.tmpdir(), `gpuwhisk-couchdb-${process.pid}.log`);
const app = express();
const { COUCHDB_USER: user, COUCHDB_PASSWORD: password } = process.env;
if (user !== undefined) {
  const wanted = `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
  app.use((request, response, next) => {
    if (request.headers.authorization === wanted) next();
    else response.status(401).json({ error: 'unauthorized', reason: 'Name or password is incorrect.' });
  });
}
app.use('/', couchdb(PouchDB.defaults(stored), { mode: 'minimumForPouchDB', inMemoryConfig: true, logPath }));
const server = app.listen(Number(port), host, () => console.log(server.address().port));
process.stdin.resume();
process.stdin.on('end', () => {
  require('node:fs').rmSync(logPath, { force: true });
  process.exit(0);
});

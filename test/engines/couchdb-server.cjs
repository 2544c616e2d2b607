'use strict';
// A server of CouchDB's protocol, which prints its port. `[PORT] [FOLDER] [ADDRESS]`: by default a free port on 127.0.0.1,
// and everything in memory (FOLDER absent or empty). Asks for the name and password COUCHDB_USER and COUCHDB_PASSWORD where
// they are set; with COUCHDB_ACCOUNTS=1 also for those of accounts that it made, which _security and validate functions bind.
// With COUCHDB_CERT and COUCHDB_KEY, paths of PEM files, it speaks TLS. Ends with its parent. Where PouchDB's server is milder
// than CouchDB 3.5, it answers as that does.
const PouchDB = require('pouchdb-core').plugin(require('pouchdb-adapter-memory')).plugin(require('pouchdb-mapreduce'));
const bodyParser = require('body-parser');
const express = require('express');
const couchdb = require('express-pouchdb');
const { accounts } = require('./couchdb-accounts.cjs');
const os = require('node:os');
const { readFileSync } = require('node:fs');
const path = require('node:path');

const [port = '0', folder = '', host = '127.0.0.1'] = process.argv.slice(2);
if (folder !== '') PouchDB.plugin(require('pouchdb-adapter-leveldb'));
const stored = folder === '' ? { adapter: 'memory' } : { adapter: 'leveldb', prefix: `${folder}/` };
const logPath = path.join(os.tmpdir(), `gpuwhisk-couchdb-${process.pid}.log`);
const app = express();
const { COUCHDB_USER: user, COUCHDB_PASSWORD: password, COUCHDB_CERT: cert, COUCHDB_KEY: key } = process.env;
const hasAccounts = process.env.COUCHDB_ACCOUNTS === '1';
if (user !== undefined && !hasAccounts) {
  const wanted = `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
  app.use((request, response, next) => {
    if (request.headers.authorization === wanted) next();
    else response.status(401).json({ error: 'unauthorized', reason: 'Name or password is incorrect.' });
  });
}
if (hasAccounts) app.use(accounts({ name: user, password }));

/** CouchDB refuses halves of surrogate pairs. */
const characters = /\\\\|\\u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|\\u[dD][89a-fA-F][\da-fA-F]{2}/g;
const hasHalfPair = (json) => (json.match(characters) ?? []).some((found) => found.length === 6);
app.use(
  bodyParser.json({
    limit: '1gb',
    verify(request, response, bytes) {
      if (hasHalfPair(bytes.toString())) throw Object.assign(new Error('invalid UTF-8 JSON'), { status: 400 });
    },
  }),
);
app.use((error, request, response, next) => {
  if (error.status === 400) response.status(400).json({ error: 'bad_request', reason: 'invalid UTF-8 JSON' });
  else next(error);
});

/** CouchDB answers a document with its attachments in parts, unless JSON is what is asked for. Over TLS this server does not. */
app.get('/:db/:id', async (request, response, next) => {
  if (cert !== undefined || request.query.attachments !== 'true' || /json/.test(request.headers.accept ?? ''))
    return next();
  const { authorization } = request.headers;
  const headers = { accept: 'application/json', ...(authorization && { authorization }) };
  try {
    const asJson = await fetch(`http://127.0.0.1:${server.address().port}${request.originalUrl}`, { headers });
    const document = await asJson.json();
    if (document._attachments === undefined) return response.status(asJson.status).json(document);
    response.set('content-type', 'multipart/related; boundary="part"').end(inParts(document));
  } catch (error) {
    next(error);
  }
});

function inParts(document) {
  const attachments = Object.entries(document._attachments);
  const stubs = attachments.map(([name, about]) => [name, { ...about, data: undefined, follows: true }]);
  const json = JSON.stringify({ ...document, _attachments: Object.fromEntries(stubs) });
  const parts = [Buffer.from(`--part\r\nContent-Type: application/json\r\n\r\n${json}\r\n`)];
  for (const [name, { content_type: type, data }] of attachments) {
    const head = `Content-Disposition: attachment; filename="${name}"\r\nContent-Type: ${type}`;
    parts.push(Buffer.from(`--part\r\n${head}\r\n\r\n`), Buffer.from(data, 'base64'), Buffer.from('\r\n'));
  }
  return Buffer.concat([...parts, Buffer.from('--part--')]);
}

const served = couchdb(PouchDB.defaults(stored), {
  mode: 'minimumForPouchDB',
  inMemoryConfig: true,
  logPath,
  ...(hasAccounts && { overrideMode: { include: ['validation'] } }),
});
app.use('/', served);
const { createServer } = cert === undefined ? require('node:http') : require('node:https');
const tls = cert === undefined ? {} : { cert: readFileSync(cert), key: readFileSync(key) };
const server = createServer(tls, app).listen(Number(port), host, () => console.log(server.address().port));
process.stdin.resume();
process.stdin.on('end', () => {
  require('node:fs').rmSync(logPath, { force: true });
  process.exit(0);
});

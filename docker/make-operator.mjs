// Stores the subject whisk.system with the key OPERATOR_KEY (UUID:SECRET) in CouchDB, in the database that the controllers
// make: without it nobody could make accounts. A key that is there is replaced. Tries for a minute.
const { COUCHDB_URL, COUCHDB_USER, COUCHDB_PASSWORD, OPERATOR_KEY = '', DB_PREFIX = 'whisk_local_' } = process.env;
const subject = 'whisk.system';
const waitMs = 60_000;
const againMs = 500;
const requestMs = 10_000;

const [, uuid, key] = /^([\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}):([A-Za-z0-9]{64})$/.exec(OPERATOR_KEY) ?? [];
if (key === undefined) {
  console.error('OPERATOR_KEY must be a UUID, a colon and 64 letters and digits.');
  process.exit(1);
}
const url = `${COUCHDB_URL}/${DB_PREFIX}subjects/${subject}`;
const headers = {
  authorization: `Basic ${Buffer.from(`${COUCHDB_USER}:${COUCHDB_PASSWORD}`).toString('base64')}`,
  'content-type': 'application/json',
};
const send = (options) => fetch(url, { ...options, headers, signal: AbortSignal.timeout(requestMs) });

async function store() {
  const there = await send({});
  if (!there.ok && there.status !== 404) throw new Error(`CouchDB answered ${there.status}`);
  const document = there.ok ? await there.json() : { subject };
  const body = JSON.stringify({ ...document, namespaces: [{ name: subject, uuid, key }] });
  const stored = await send({ method: 'PUT', body });
  if (!stored.ok) throw new Error(`CouchDB answered ${stored.status}: ${await stored.text()}`);
}

const untilMs = performance.now() + waitMs;
for (;;) {
  try {
    await store();
    break;
  } catch (error) {
    if (performance.now() > untilMs) {
      console.error(`The operator could not be stored: ${error.message}`);
      process.exit(1);
    }
    await new Promise((resolve) => setTimeout(resolve, againMs));
  }
}
console.log(`${subject} has the key that was given.`);

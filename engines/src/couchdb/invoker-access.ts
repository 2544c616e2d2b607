import type { DatabaseName } from '@gpuwhisk/common/store/artifact-store';
import { StoreOpenError } from '@gpuwhisk/common/store/artifact-store';
import { isJsonObject } from '@gpuwhisk/common/json';
import type { JsonObject } from '@gpuwhisk/common/json';
import type { Clock } from '@gpuwhisk/common/system/clock';
import type { CouchError, CouchClient } from './couchdb-client.js';
import { couchClient } from './couchdb-client.js';

/** The role of invokers' accounts in CouchDB. */
export const invokerRole = 'gpuwhisk-invoker';
/** All databases: an invoker reads actions and blocked namespaces, records activations, and keeps notes in `gpu`. */
const invokerDatabases: readonly DatabaseName[] = ['subjects', 'whisks', 'activations', 'gpu'];

const design = '_design/gpuwhisk-access';

/** Runs in CouchDB, whose engines know no newer JavaScript than ES5. Other accounts are left to the database's `_security`. */
const readsOnly = `function (newDoc, oldDoc, userCtx) {
  if (userCtx.roles.indexOf('${invokerRole}') === -1) return;
  throw({ forbidden: 'An invoker reads here, and writes nothing.' });
}`;
/** A document that is created has no revision yet; one that is changed has, and one that claims to be replicated, too. */
const createsOnly = `function (newDoc, oldDoc, userCtx) {
  if (userCtx.roles.indexOf('${invokerRole}') === -1) return;
  if (newDoc._rev !== undefined || newDoc._deleted === true) {
    throw({ forbidden: 'An invoker stores records, and changes none.' });
  }
}`;

/** Records that were refused come and go; which data folder has which number is said once. */
const keepsNotes = `function (newDoc, oldDoc, userCtx) {
  if (userCtx.roles.indexOf('${invokerRole}') === -1) return;
  if (newDoc._id.indexOf('refused-record/') === 0) return;
  var isNew = newDoc._rev === undefined && newDoc._deleted !== true;
  if (isNew && newDoc._id.indexOf('process/') === 0) return;
  throw({ forbidden: 'An invoker keeps refused records and its number here, and writes nothing else.' });
}`;

/** What each of an invoker's databases lets it write. */
const accessRules: Readonly<Partial<Record<DatabaseName, string>>> = {
  subjects: readsOnly,
  whisks: readsOnly,
  activations: createsOnly,
  gpu: keepsNotes,
};

/** Which CouchDB, and the account that its invokers are to have. */
export interface InvokerAccessOptions {
  /** With an administrator's user and password. */
  url: string;
  prefix: string;
  /** After which a request is given up, ms. */
  timeoutMs: number;
  clock: Clock;
  user: string;
  password: string;
}

/**
 * Makes the account of invokers, or gives it this password, and the rules that bound it: a member of each database, and in
 * each a design document that refuses its other writes. The databases must be there. Resolves with whether that has changed
 * anything; rejects with StoreOpenError.
 */
export async function grantInvokerAccess(options: InvokerAccessOptions): Promise<boolean> {
  const { url, prefix, timeoutMs, clock, user, password } = options;
  const client = couchClient(url, timeoutMs, clock);
  try {
    let changed = false;
    for (const database of invokerDatabases) {
      // The rule first: a member is never without it.
      const rule = { language: 'javascript', validate_doc_update: accessRules[database] ?? readsOnly };
      changed = (await change(client, prefix + database, design, rule)) || changed;
      changed = (await admit(client, prefix + database, invokerRole)) || changed;
    }
    const own = new URL(url);
    own.username = encodeURIComponent(user);
    own.password = encodeURIComponent(password);
    if (await isLetIn(couchClient(own.href, timeoutMs, clock), `${prefix}whisks`)) return changed;
    const account = { name: user, password, roles: [invokerRole], type: 'user' };
    return await change(client, '_users', encodeURIComponent(`org.couchdb.user:${user}`), account);
  } catch (error) {
    const { message } = error as Error;
    throw new StoreOpenError(`The invokers' account of CouchDB at ${client.address} cannot be made: ${message}`, {
      cause: error,
    });
  }
}

function isLetIn(client: CouchClient, database: string): Promise<boolean> {
  return client.send({ database }).then(
    () => true,
    (error: CouchError) => {
      if (error.status !== 401 && error.status !== 403) throw error;
      return false;
    },
  );
}

/** Has a document hold these fields and no others. */
async function change(client: CouchClient, database: string, path: string, fields: JsonObject): Promise<boolean> {
  const there = await client.send({ database, path }).catch((error: CouchError): JsonObject => {
    if (error.status !== 404) throw error;
    return {};
  });
  const kept = isJsonObject(there) ? there : {};
  if (Object.entries(fields).every(([name, value]) => JSON.stringify(kept[name]) === JSON.stringify(value)))
    return false;
  const body: JsonObject = kept._rev === undefined ? fields : { ...fields, _rev: kept._rev };
  await client.send({ database, path, method: 'PUT', body });
  return true;
}

/** Adds a role to the members of a database; those that it has stay. Without any member all accounts would be members. */
async function admit(client: CouchClient, database: string, role: string): Promise<boolean> {
  const there = await client.send({ database, path: '_security' });
  const security = isJsonObject(there) ? there : {};
  const members = isJsonObject(security.members) ? security.members : {};
  const roles = Array.isArray(members.roles) ? members.roles : [];
  if (roles.includes(role)) return false;
  const body = { ...security, members: { ...members, roles: [...roles, role] } };
  await client.send({ database, path: '_security', method: 'PUT', body });
  return true;
}

import type { Identity } from '@gpuwhisk/common/entities/identity';
import {
  managementFailure,
  noSuchApi,
  noSuchSubscription,
  tooManySubscriptions,
} from '@gpuwhisk/common/gateway-errors';
import type { JsonObject } from '@gpuwhisk/common/json';
import type { ApiRecord, ApiRegistry, Subscription } from './api-registry.js';
import { textAt } from './json-path.js';
import { apisNamed } from './manage-apis.js';
import type { ManagementOperation } from './manage-apis.js';
import { hashOfSecret } from './check-security.js';

/** Keys that one API may have: they are part of its document. */
const maxSubscriptions = 1000;

const keyPattern = /^[\x21-\x7e]{8,256}$/;

/** Lets a client call an API: with its id alone, or with a secret too. A second call replaces the secret. */
export const createSubscription: ManagementOperation = async ({ registry }, { fields, identity }) => {
  const caller = known(identity);
  const api = await apiOf(registry, caller, fields);
  const clientId = keyField(fields, 'client_id');
  const secret = fields.client_secret === undefined ? undefined : keyField(fields, 'client_secret');
  const subscription: Subscription = secret === undefined ? {} : { secretHash: hashOfSecret(secret) };
  await registry.put(caller, api.basePath, (before) => {
    if (before === undefined) throw managementFailure(noSuchApi(api.basePath));
    const subscriptions = { ...before.subscriptions, [clientId]: subscription };
    if (Object.keys(subscriptions).length > maxSubscriptions) {
      throw managementFailure(tooManySubscriptions(maxSubscriptions));
    }
    return { subscriptions };
  });
  return { message: `Subscription '${clientId}' created for API '${api.artifactId}'` };
};

/** The ids of an API's clients. */
export const getSubscriptions: ManagementOperation = async ({ registry }, { fields, identity }) => {
  const api = await apiOf(registry, known(identity), fields);
  return { subscriptions: Object.keys(api.subscriptions) };
};

/** Takes a client's access away. */
export const deleteSubscription: ManagementOperation = async ({ registry }, { fields, identity }) => {
  const caller = known(identity);
  const api = await apiOf(registry, caller, fields);
  const clientId = textAt(fields, 'client_id') ?? '';
  await registry.put(caller, api.basePath, (before) => {
    if (before === undefined || !Object.hasOwn(before.subscriptions, clientId)) {
      throw managementFailure(noSuchSubscription());
    }
    const left = Object.entries(before.subscriptions).filter(([id]) => id !== clientId);
    return { subscriptions: Object.fromEntries(left) };
  });
  return {};
};

function known(identity: Identity | undefined): Identity {
  if (identity === undefined) throw managementFailure('A valid auth key is required.');
  return identity;
}

async function apiOf(registry: ApiRegistry, identity: Identity, fields: JsonObject): Promise<ApiRecord> {
  const basePathOrName = textAt(fields, 'basepath') ?? '';
  if (basePathOrName === '') throw managementFailure('basepath is required.');
  const [api] = await apisNamed(registry, identity, basePathOrName);
  if (api === undefined) throw managementFailure(noSuchApi(basePathOrName));
  return api;
}

function keyField(fields: JsonObject, name: string): string {
  const value = textAt(fields, name);
  if (value === undefined || !keyPattern.test(value)) {
    throw managementFailure(`${name} must have 8 to 256 visible ASCII characters.`);
  }
  return value;
}

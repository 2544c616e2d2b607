import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { ArtifactStore, StoredDocument } from '@gpuwhisk/common/store/artifact-store';
import { StoreWriteError } from '@gpuwhisk/common/store/artifact-store';
import { actionPath, hello, startApi } from './harness.js';
import type { Api } from './harness.js';
import { TriggerCalls } from './trigger-calls.js';

/** Number of writes that succeed before the simulated crash. After them no request of the server reaches the store. */
let writesLeft: number;

/** A store that rejects all calls once `writesLeft` is used up. */
function mortal(store: ArtifactStore): ArtifactStore {
  return new Proxy(store, {
    get(target, property) {
      const value = Reflect.get(target, property) as unknown;
      // What is known of the store is asked of no database.
      if (typeof value !== 'function' || property === 'storedBytes') return value;
      return (...args: unknown[]): unknown => {
        if (property === 'put' && writesLeft > 0) writesLeft--;
        else if (property === 'put' || writesLeft <= 0) return Promise.reject(new StoreWriteError('gone'));
        return Reflect.apply(value, target, args) as unknown;
      };
    },
  });
}

let api: Api;
let calls: TriggerCalls;
beforeEach(async () => {
  writesLeft = Infinity;
  api = await startApi({ wrapStore: mortal });
  calls = new TriggerCalls(api);
  await calls.link('r', 't', 'old');
  await api.request('PUT', actionPath('new'), { body: hello });
});
afterEach(() => api.close());

interface Links {
  rules: Record<string, { action: { name: string }; status: string; replacing?: string }>;
}
const linkOf = (trigger: unknown): Links['rules'][string] | undefined => (trigger as Links).rules['alice/r'];
const stored = (): Promise<StoredDocument> => api.store.get('whisks', 'alice/t');

/** Names of the rule's action: as the rule has it, as its trigger has it, and as a fire runs it. */
async function actions(): Promise<unknown[]> {
  const rule = (await calls.rule('GET', 'r')).json as { action: { name: string } };
  const fired = await calls.fired('t');
  const trigger = (await calls.trigger('GET', 't')).json;
  const ran = (JSON.parse(fired.logs[0] ?? '') as { action: string }).action;
  expect(linkOf(trigger)).not.toHaveProperty('replacing');
  return [rule.action.name, linkOf(trigger)?.action.name, ran.replace('alice/', '')];
}

test.each([
  [0, 'old'],
  [1, 'old'],
  [2, 'new'],
])('an update of the action that ends after %i writes leaves one action everywhere', async (writes, action) => {
  writesLeft = writes;
  const { status } = await calls.rule('PUT', 'r?overwrite=true', { action: '/_/new' });
  writesLeft = Infinity;
  expect(status).toBe(500);
  expect(await actions()).toEqual([action, action, action]);
  const again = await calls.rule('PUT', 'r?overwrite=true', { action: '/_/new' });
  expect([again.status, await actions()]).toEqual([200, ['new', 'new', 'new']]);
  expect(linkOf(await stored())).toEqual({ action: { path: 'alice', name: 'new' }, status: 'active' });
});

test('the first who reads the trigger after the crash repairs the link', async () => {
  writesLeft = 2;
  await calls.rule('PUT', 'r?overwrite=true', { action: '/_/new' });
  writesLeft = Infinity;
  expect(linkOf(await stored())).toMatchObject({ action: { name: 'old' }, replacing: expect.any(String) });
  await calls.fired('t');
  expect(linkOf(await stored())).toEqual({ action: { path: 'alice', name: 'new' }, status: 'active' });
});

test('a rule disabled after the crash stays so, with the action of its document', async () => {
  writesLeft = 2;
  await calls.rule('PUT', 'r?overwrite=true', { action: '/_/new' });
  writesLeft = Infinity;
  await calls.rule('POST', 'r', { status: 'inactive' });
  expect(linkOf(await stored())).toEqual({ action: { path: 'alice', name: 'new' }, status: 'inactive' });
});

test('an update that is done leaves no mark', async () => {
  await calls.rule('PUT', 'r?overwrite=true', { action: '/_/new' });
  expect(linkOf(await stored())).toEqual({ action: { path: 'alice', name: 'new' }, status: 'active' });
});

import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { storeCode } from '@gpuwhisk/common/entities/exec-codec';
import { simulatedStore } from '@gpuwhisk/common/testing/simulated-store';
import type { SimulatedStore } from '@gpuwhisk/common/testing/simulated-store';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { ActionLoader } from '@gpuwhisk/invoker/activation/action-loader';
import type { ActionCode, RunnableAction } from '@gpuwhisk/invoker/activation/action-loader';
import { action } from '../contract/store/documents.js';

const source = `//${'x'.repeat(2 * 1024 * 1024)}`;
let store: SimulatedStore;
let shared: RunnableAction;

beforeEach(async () => {
  const random = seededRandom(1);
  store = simulatedStore({ clock: systemClock, random, latencyMs: 0 });
  const { reference, attachment } = storeCode(source, false, random);
  const exec = { kind: 'nodejs:20', code: { ...reference }, binary: false };
  const revision = await store.put('whisks', action('large', 1, { exec }), attachment ? [attachment] : []);
  const loader = new ActionLoader(
    store,
    systemClock,
    () => false,
    () => undefined,
  );
  const loaded = await loader.load({ path: 'guest', name: 'large', version: '0.0.1' }, revision);
  if (!('action' in loaded)) throw new Error(loaded.reason);
  shared = loaded.action;
});
afterEach(() => store.close());

test('large code of a shared action is read in turns of its callers: one with many cold starts holds up no other', async () => {
  const read: [string, ActionCode][] = [];
  const ask = (caller: string): Promise<void> => shared.code(caller).then((code) => void read.push([caller, code]));
  const many = Array.from({ length: 6 }, () => ask('alice'));
  await ask('bob');
  const readers = read.map(([caller]) => caller);
  expect([readers.filter((caller) => caller === 'alice').length, readers.at(-1)]).toEqual([3, 'bob']);
  // The others follow as the code is passed on.
  for (let passed = 0; passed < 7; passed++) {
    while (read.length <= passed) await new Promise((done) => setTimeout(done, 1));
    const large = read[passed]?.[1].large;
    expect(large?.bytes).toHaveLength(source.length);
    large?.passed();
  }
  await Promise.all(many);
});

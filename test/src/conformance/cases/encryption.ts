import { expect } from '@jest/globals';
import type { Caller } from '../caller.js';
import { table } from '../conformance-case.js';
import type { Row } from '../conformance-case.js';
import { echo } from '../functions.js';
import type { Entity, Trial } from '../trial.js';
import { pairs } from './json-arguments.js';

const exec = { kind: 'nodejs:default', code: echo };
const secret = { deep: [1, null], text: 'täglich' };
const needs = 'encryption';

/** An encrypted parameter as the API returns it: with the stored value. */
const locked = (key: string): object => ({
  key,
  value: expect.stringMatching(/^[A-Za-z0-9+/]{40,}={0,2}$/),
  encryption: expect.stringMatching(/^aes-(128|256)$/),
});

async function parametersOf(t: Trial, path: string, caller: Caller): Promise<Entity['parameters']> {
  return (await t.get(path, caller)).body.parameters;
}

async function resultOf(t: Trial, action: string, caller: Caller, payload?: object): Promise<unknown> {
  const { status, body } = await t.post(`actions/${action}?blocking=true&result=true`, payload, caller);
  expect(status).toBe(200);
  return body;
}

const rows: Row[] = [
  {
    fact: 'parameters of actions and packages are read as they are stored: encrypted, each for itself',
    needs,
    run: async (t) => {
      const caller = await t.encrypting();
      const [action, packageName] = [t.name('action'), t.name('package')];
      const parameters = pairs({ one: secret, two: secret });
      await t.replace(`actions/${action}`, { exec, parameters }, caller);
      await t.replace(`packages/${packageName}`, { parameters }, caller);
      for (const path of [`actions/${action}`, `packages/${packageName}`]) {
        const read = await parametersOf(t, path, caller);
        expect(read).toEqual([locked('one'), locked('two')]);
        expect(read[0]?.value).not.toBe(read[1]?.value);
        // IV length (4 bytes, big-endian), IV, ciphertext with its tag of 16 bytes.
        const bytes = Buffer.from(String(read[0]?.value), 'base64');
        expect(bytes.length).toBe(4 + bytes.readInt32BE(0) + Buffer.byteLength(JSON.stringify(secret)) + 16);
      }
    },
  },
  {
    fact: "functions get them decrypted: their own, their package's, a binding's; an argument is put over one",
    needs,
    run: async (t) => {
      const caller = await t.encrypting();
      const [packageName, binding] = [t.name('package'), t.name('binding')];
      await t.replace(`packages/${packageName}`, { parameters: pairs({ of: 'package', secret }) }, caller);
      await t.replace(`actions/${packageName}/a`, { exec, parameters: pairs({ own: 1 }) }, caller);
      const provider = { namespace: '_', name: packageName };
      await t.replace(`packages/${binding}`, { binding: provider, parameters: pairs({ of: 'binding' }) }, caller);
      expect(await resultOf(t, `${packageName}/a`, caller)).toEqual({ of: 'package', secret, own: 1 });
      expect(await resultOf(t, `${binding}/a`, caller)).toEqual({ of: 'binding', secret, own: 1 });
      expect(await resultOf(t, `${packageName}/a`, caller, { own: 2, of: null })).toEqual({ of: null, secret, own: 2 });
    },
  },
  {
    fact: 'put back as they were read, or not at all, they stay what they are',
    needs,
    run: async (t) => {
      const caller = await t.encrypting();
      const action = t.name('action');
      await t.replace(`actions/${action}`, { exec, parameters: pairs({ secret }) }, caller);
      const read = await parametersOf(t, `actions/${action}`, caller);
      await t.replace(`actions/${action}`, { parameters: read }, caller);
      await t.replace(`actions/${action}`, { exec }, caller);
      expect(await parametersOf(t, `actions/${action}`, caller)).toEqual(read);
      expect(await resultOf(t, action, caller)).toEqual({ secret });
    },
  },
  {
    fact: 'what a trigger has is not encrypted',
    source: 'core/controller/.../core/controller/Triggers.scala',
    needs,
    run: async (t) => {
      const caller = await t.encrypting();
      const trigger = t.name('trigger');
      await t.replace(`triggers/${trigger}`, { parameters: pairs({ secret }) }, caller);
      expect(await parametersOf(t, `triggers/${trigger}`, caller)).toEqual(pairs({ secret }));
    },
  },
];

/** Sheet 7: parameters on a server that encrypts them. */
export const encryptionCases = table('encryption', 'common/scala/.../core/entity/ParameterEncryption.scala', rows);

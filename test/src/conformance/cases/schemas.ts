import { expect } from '@jest/globals';
import type { SchemaObject } from 'ajv';
import { table } from '../conformance-case.js';
import type { Row } from '../conformance-case.js';
import { conforms } from '../json-schema.js';
import type { Trial } from '../trial.js';

const eggs: SchemaObject = { type: 'object', properties: { price: { type: 'number' }, name: { type: 'string' } } };

/** Whether a value conforms to the definition of an action in the API's description. */
async function isAction({ user }: Trial, value: unknown): Promise<boolean> {
  const { body } = await user.send<{ definitions: SchemaObject }>('GET', '/api/v1/api-docs');
  return conforms(value, { $ref: '#/definitions/Action' }, body.definitions);
}

const rows: Row[] = [
  {
    fact: 'an object of the types that a schema wants',
    stands: 'JsonSchemaTests: accept a correct object',
    run: async () => expect(conforms({ name: 'Eggs', price: 34.99 }, eggs)).toBe(true),
  },
  {
    fact: 'an object of other types',
    stands: 'JsonSchemaTests: reject a bad object',
    run: async () => expect(conforms({ name: 'Eggs', price: 'Invalid' }, eggs)).toBe(false),
  },
  {
    fact: 'an action, whose key-value pairs may be anything',
    stands: 'JsonSchemaTests: accept a properly structured Action',
    run: async (t) => {
      const named = { namespace: '_', name: 'foo', version: '1.1.1', publish: false };
      const exec = { code: 'foo', kind: 'nodejs:20' };
      const limits = { timeout: 1000, memory: 200 };
      expect(await isAction(t, { ...named, exec, parameters: ['key1', 'value1'], limits })).toBe(true);
      expect(await isAction(t, { ...named, exec, parameters: 'key1', limits })).toBe(false);
    },
  },
  {
    fact: 'an action without the fields that each has',
    stands: 'JsonSchemaTests: reject an improperly structured Action',
    run: async (t) => expect(await isAction(t, { sname: 'foo', spublish: false })).toBe(false),
  },
];

/** The API's description, used as a JSON schema. */
export const schemaCases = table('schemas', 'core/controller/src/main/resources/apiv1swagger.json', rows);

import { Ajv, type SchemaObject } from 'ajv';

// Swagger's formats (int32, byte) describe how numbers and texts are written; other tests check these.
const ajv = new Ajv({ strict: false, validateFormats: false });

/** Whether a value conforms to the JSON schema; references `#/definitions/...` are looked up in `definitions`. */
export function conforms(value: unknown, schema: SchemaObject, definitions: SchemaObject = {}): boolean {
  return ajv.validate({ ...schema, definitions }, value);
}

import { Ajv, type SchemaObject } from 'ajv';

// Swagger's formats (int32, byte) say how numbers and texts are written and are checked elsewhere.
const ajv = new Ajv({ strict: false, validateFormats: false });

/** Whether a value is what the JSON schema says; references (`#/definitions/...`) are to `definitions`. */
export function conforms(value: unknown, schema: SchemaObject, definitions: SchemaObject = {}): boolean {
  return ajv.validate({ ...schema, definitions }, value);
}

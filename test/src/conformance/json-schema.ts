/** As much of JSON Schema (draft 4) as definitions of APIs use. */
export interface Schema {
  $ref?: string;
  type?: string;
  enum?: unknown[];
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
}

const typeOf = (value: unknown): string => {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  return Number.isInteger(value) ? 'integer' : typeof value;
};

/** Whether a value is what the schema says; references are to `definitions`. A keyword is about its own type only. */
export function conforms(value: unknown, schema: Schema, definitions: Record<string, Schema> = {}): boolean {
  const { $ref, type, properties = {}, required = [], items } = schema;
  if ($ref !== undefined) {
    const referred = definitions[$ref.replace('#/definitions/', '')];
    return referred !== undefined && conforms(value, referred, definitions);
  }
  const actual = typeOf(value);
  if (type !== undefined && type !== actual && !(type === 'number' && actual === 'integer')) return false;
  if (schema.enum !== undefined && !schema.enum.includes(value)) return false;
  if (Array.isArray(value)) return items === undefined || value.every((item) => conforms(item, items, definitions));
  if (actual !== 'object') return true;
  const members = value as Record<string, unknown>;
  return (
    required.every((name) => name in members) &&
    Object.entries(properties).every(
      ([name, property]) => !(name in members) || conforms(members[name], property, definitions),
    )
  );
}

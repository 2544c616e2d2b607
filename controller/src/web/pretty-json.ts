import { isJsonObject } from '@gpuwhisk/common/json';
import type { JsonValue } from '@gpuwhisk/common/json';

/** JSON as OpenWhisk's printer (spray-json) lays it out: a line for each field of an object, arrays in one line. */
export function prettyJson(value: JsonValue, indent = ''): string {
  if (Array.isArray(value)) return `[${value.map((item) => prettyJson(item, indent)).join(', ')}]`;
  if (!isJsonObject(value)) return JSON.stringify(value);
  const deeper = `${indent}  `;
  const fields = Object.entries(value).map(
    ([key, field]) => `${deeper}${JSON.stringify(key)}: ${prettyJson(field, deeper)}`,
  );
  return `{\n${fields.join(',\n')}\n${indent}}`;
}

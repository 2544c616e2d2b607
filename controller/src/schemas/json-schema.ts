import type { JsonObject } from '@gpuwhisk/common/json';

/** A string. */
export const text = (description: string): JsonObject => ({ type: 'string', description });
/** A whole number. */
export const whole = (description: string): JsonObject => ({ type: 'integer', description });
/** A boolean. */
export const yesNo = (description: string): JsonObject => ({ type: 'boolean', description });
/** A reference, which the API documents write in their formats. */
export const ref = (name: string): JsonObject => ({ $ref: name });
/** An array. */
export const list = (items: JsonObject, description: string): JsonObject => ({ type: 'array', items, description });
/** An object; `required` names properties that are always present. */
export const object = (properties: JsonObject, required: string[] = []): JsonObject => ({
  type: 'object',
  properties,
  ...(required.length > 0 && { required }),
});

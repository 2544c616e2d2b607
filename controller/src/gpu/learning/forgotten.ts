import { isJsonObject } from '@gpuwhisk/common/json';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';

/** Where a controller tells the others what an operator has had forgotten there. */
export const forgottenChannel = 'gpu-forgotten';

/** What is to be forgotten: a function, what was measured of a set, or a predictor by `gpuType/mode`. */
export interface Forgotten {
  what: 'function' | 'quota' | 'model';
  name: string;
}

/** Whether a message of that channel is one; `from` is a controller's number. */
export function isForgotten(message: JsonValue): message is JsonObject & Forgotten & { from: number } {
  if (!isJsonObject(message) || typeof message.name !== 'string') return false;
  return ['function', 'quota', 'model'].some((what) => message.what === what);
}

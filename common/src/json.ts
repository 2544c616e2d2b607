/** Any value that JSON can carry. */
export type JsonValue = string | number | boolean | null | JsonValue[] | JsonObject;
/** A JSON object. */
export interface JsonObject {
  [key: string]: JsonValue;
}

/** Whether a value is a JSON object (not null, not an array). */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const halfPairs = /\\\\|\\u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|\\u[dD][89a-fA-F][\da-fA-F]{2}/g;

/**
 * JSON with U+FFFD in place of each escaped half of a surrogate pair. Such a half is no character: JSON.stringify writes it
 * as an escape, and parsers of other languages, CouchDB's among them, refuse the text.
 */
export function withoutHalfPairs(json: string): string {
  if (!json.includes('\\ud') && !json.includes('\\uD')) return json;
  return json.replace(halfPairs, (found) => (found.length === 6 ? '\ufffd' : found));
}

/** The value itself, or a copy without halves of surrogate pairs in its texts if it has any. */
export function withoutHalfPairsIn<Value extends JsonValue>(value: Value): Value {
  const json = JSON.stringify(value);
  const mended = withoutHalfPairs(json);
  return mended === json ? value : (JSON.parse(mended) as Value);
}

/**
 * Levels of arrays and objects that are accepted, as OpenWhisk's parser (spray-json) has it. JSON.parse takes any number, but
 * JSON.stringify recurses: what nests deeper could be read and never be written again.
 */
export const maxJsonDepth = 1000;

/** Whether `text`, which is valid JSON, nests arrays and objects deeper than maxJsonDepth. */
export function isNestedTooDeeply(text: string): boolean {
  if (text.length <= 2 * maxJsonDepth) return false;
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case 0x22: // "
        at = endOfString(text, at);
        break;
      case 0x5b: // [
      case 0x7b: // {
        if (++depth > maxJsonDepth) return true;
        break;
      case 0x5d: // ]
      case 0x7d: // }
        depth--;
        break;
    }
  }
  return false;
}

/** Where the string that begins at `start` ends. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let backslashes = 0;
    while (text[end - 1 - backslashes] === '\\') backslashes++;
    if (backslashes % 2 === 0) return end;
  }
  return text.length;
}

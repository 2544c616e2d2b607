import { randomBytes } from 'node:crypto';
import type { Flags } from '../../args/flags.js';
import { keyValue, valueOf } from '../../args/parameters.js';
import { usageError } from '../../errors.js';
import { asList, asMap, asText, NumberLiteral, type Json, type JsonMap } from '../../json/json.js';

const webKeys = ['web-export', 'raw-http', 'final'];
const secretKey = 'require-whisk-auth';

/** The three web annotations for each value of `--web`. */
const webModes: Record<string, boolean[]> = {
  yes: [true, false, true],
  true: [true, false, true],
  raw: [true, true, true],
  no: [false, false, false],
  false: [false, false, false],
};

/**
 * Adds what `--web` and `--web-secure` ask for to the annotations of `action`. On an update (`existing`) annotations
 * replace the old ones as a whole, so what must stay of those is repeated: all, or only those about the web if the
 * command line gives annotations of its own.
 */
export function withWebAnnotations(action: JsonMap, existing: JsonMap | undefined, flags: Flags): JsonMap {
  const result: JsonMap = new Map(action);
  const old = listOf(existing);
  if (flags.given('web')) {
    const values = webModes[flags.text('web').toLowerCase()];
    if (!values) throw invalidMode(flags.text('web'));
    const base = action.has('annotations') ? listOf(action) : old;
    const web = webKeys.map((key, index) => keyValue(key, values[index] ?? false));
    const others = base.filter((item) => !webKeys.includes(keyOf(item)));
    result.set(
      'annotations',
      merged(
        [...others, ...web],
        old.filter((item) => keyOf(item) === secretKey),
      ),
    );
  }
  if (flags.given('web-secure')) setSecret(result, existing, flags);
  return result;
}

function setSecret(action: JsonMap, existing: JsonMap | undefined, flags: Flags): void {
  const turnsOff = ['no', 'false'].includes(flags.text('web').toLowerCase());
  const wasWeb = existing !== undefined && valueOf(listOf(existing), 'web-export') === true;
  if (valueOf(listOf(action), 'web-export') !== true && !(wasWeb && !turnsOff)) {
    throw usageError('The --web-secure option is only valid when the --web option is enabled.');
  }
  const kept = listOf(existing).filter(
    (item) => !action.has('annotations') || [...webKeys, secretKey].includes(keyOf(item)),
  );
  const annotations = merged(listOf(action), kept);
  const before = valueOf(annotations, secretKey);
  const secret = secretFor(flags.text('web-secure'));
  const others = annotations.filter((item) => keyOf(item) !== secretKey);
  const isNumber = (value: Json | undefined): boolean => value instanceof NumberLiteral || typeof value === 'number';
  if (before !== undefined && before !== null && secret === false) {
    action.set('delAnnotations', [secretKey]);
    action.set('annotations', others);
  } else if (isNumber(before) && isNumber(secret)) {
    action.set('annotations', annotations); // a generated secret stays as it is
  } else {
    action.set('annotations', replaced(annotations, secretKey, secret));
  }
}

/** `true` makes up a secret below 2^53, so that every JSON reader keeps it exact; other words are the secret. */
function secretFor(mode: string): Json {
  if (mode.toLowerCase() === 'false') return false;
  if (mode.toLowerCase() !== 'true') return mode;
  return Number(randomBytes(8).readBigUInt64LE() >> 11n);
}

function replaced(annotations: JsonMap[], key: string, value: Json): JsonMap[] {
  if (!annotations.some((item) => keyOf(item) === key)) return [...annotations, keyValue(key, value)];
  return annotations.map((item) => (keyOf(item) === key ? keyValue(key, value) : item));
}

/** `annotations` and those of `more` whose keys are not among them. */
function merged(annotations: JsonMap[], more: JsonMap[]): JsonMap[] {
  return [...annotations, ...more.filter((item) => !annotations.some((other) => keyOf(other) === keyOf(item)))];
}

function keyOf(item: JsonMap): string {
  return asText(item.get('key'));
}

function listOf(action: JsonMap | undefined): JsonMap[] {
  return asList(action?.get('annotations')).map(asMap);
}

function invalidMode(mode: string): Error {
  return usageError(
    `Invalid argument '${mode}' for --web flag. Valid input consist of 'yes', 'true', 'raw', 'false', or 'no'.`,
  );
}

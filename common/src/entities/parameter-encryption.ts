import { createCipheriv, createDecipheriv, createSecretKey } from 'node:crypto';
import type { CipherGCMTypes, KeyObject } from 'node:crypto';
import { isJsonObject } from '../json.js';
import type { JsonObject, JsonValue } from '../json.js';
import type { Random } from '../system/random.js';
import type { Parameter } from './parameters.js';

/** OpenWhisk's ciphers of parameters, by the name that an encrypted parameter carries. */
const ciphers = {
  'aes-128': { algorithm: 'aes-128-gcm', keyBytes: 16, ivBytes: 12 },
  'aes-256': { algorithm: 'aes-256-gcm', keyBytes: 32, ivBytes: 128 },
} as const satisfies Record<string, { algorithm: CipherGCMTypes; keyBytes: number; ivBytes: number }>;

const tagBytes = 16;
const lengthBytes = 4;

/** The name of a cipher. */
export type ParameterCipher = keyof typeof ciphers;

/** How parameters of actions and packages are stored. */
export interface ParameterStorage {
  /** What new values are encrypted with; `off` and `noop` store them as they are. */
  current: 'off' | 'noop' | ParameterCipher;
  /** Keys in base64, the newest first: that one encrypts, all of them decrypt. */
  keys: { [Cipher in ParameterCipher]?: string[] | undefined };
  /** New values are readable in the document that they are stored in only. */
  bound: boolean;
}

/** Thrown for an encrypted value that cannot be read; `message` names the parameter and says why. */
export class LockedParameterError extends Error {
  override name = 'LockedParameterError';
}

/** Bytes of a cipher's key. */
export function keyBytesOf(cipher: ParameterCipher): number {
  return ciphers[cipher].keyBytes;
}

/**
 * Encrypts what is not encrypted yet, for the document with this id: a value is read in no other. What is encrypted without
 * being bound to a document, as OpenWhisk does, is bound, if there is the key for it.
 */
export type LockParameters = (parameters: readonly Parameter[], documentId: string) => Parameter[];

/** What encrypts parameters before they are stored. Throws Error where the current cipher has no key. */
export function createParameterLock({ current, keys, bound }: ParameterStorage, random: Random): LockParameters {
  if (current === 'off' || current === 'noop') return (parameters) => [...parameters];
  const [key] = keys[current] ?? [];
  if (key === undefined) throw new Error(`there is no key for ${current}`);
  const secret = secretKey(key);
  const secrets = secretsOf(keys);
  const encrypted = (parameter: Parameter, value: JsonValue, documentId: string): Parameter => ({
    ...parameter,
    value: encrypt(current, secret, value, random, bound ? placeOf(documentId, parameter.key) : undefined),
    encryption: current,
    lockedIn: documentId,
  });
  return (parameters, documentId) =>
    parameters.map((parameter) => {
      if (parameter.encryption === undefined) return encrypted(parameter, parameter.value, documentId);
      const text = bound ? openUnbound(parameter, secrets) : undefined;
      return text === undefined ? parameter : encrypted(parameter, JSON.parse(text) as JsonValue, documentId);
    });
}

/** The JSON text of a value that is encrypted and bound to no document; undefined if it is bound or there is no key. */
function openUnbound({ encryption = '', value }: Parameter, secrets: Secrets): string | undefined {
  return typeof value === 'string' ? decrypt(encryption, value, secrets, undefined) : undefined;
}

/** What a value is bound to: the document and its key there, so that no other parameter takes it. */
function placeOf(documentId: string, key: string): Buffer {
  return Buffer.from(JSON.stringify(['gpuwhisk parameter', documentId, key]));
}

/**
 * As OpenWhisk stores it: base64 of the IV's length (32 bits), the IV, the encrypted JSON text and its tag. The tag is over
 * `place`, too, which OpenWhisk knows nothing of.
 */
function encrypt(
  name: ParameterCipher,
  key: KeyObject,
  value: JsonValue,
  random: Random,
  place: Buffer | undefined,
): string {
  const { algorithm, ivBytes } = ciphers[name];
  const iv = random.bytes(ivBytes);
  const cipher = createCipheriv(algorithm, key, iv, { authTagLength: tagBytes });
  if (place !== undefined) cipher.setAAD(place);
  const length = Buffer.alloc(lengthBytes);
  length.writeUInt32BE(ivBytes);
  const text = [cipher.update(JSON.stringify(value), 'utf8'), cipher.final()];
  return Buffer.concat([length, iv, ...text, cipher.getAuthTag()]).toString('base64');
}

/** Arguments of an activation; only an object's can be encrypted. */
type Arguments = JsonObject | JsonValue[] | undefined;

/**
 * The arguments, decrypted: `lockedArgs` has the cipher's name of each encrypted key, `lockedIn` the document that it comes
 * from. A value that is bound to another document or key is not read.
 */
export type UnlockArguments = (content: Arguments, lockedArgs: JsonObject, lockedIn?: JsonObject) => Arguments;

type Secrets = ReadonlyMap<string, readonly KeyObject[]>;

function secretsOf(keys: ParameterStorage['keys']): Secrets {
  return new Map(Object.entries(keys).map(([name, all]) => [name, (all ?? []).map(secretKey)]));
}

/** What decrypts the arguments of an activation. The function throws LockedParameterError. */
export function createArgumentUnlock({ keys }: Pick<ParameterStorage, 'keys'>): UnlockArguments {
  const secrets = secretsOf(keys);
  return (content, lockedArgs, lockedIn = {}) => {
    const locked = Object.entries(lockedArgs);
    if (locked.length === 0 || !isJsonObject(content)) return content;
    const unlocked: JsonObject = { ...content };
    for (const [key, name] of locked) {
      const value = unlocked[key];
      if (typeof value === 'string') unlocked[key] = unlockOne(key, String(name), value, secrets, lockedIn[key]);
    }
    return unlocked;
  };
}

function unlockOne(
  parameter: string,
  name: string,
  value: string,
  secrets: Secrets,
  documentId: JsonValue | undefined,
): JsonValue {
  if (name === 'noop') return value;
  if (!isCipher(name) || (secrets.get(name) ?? []).length === 0) {
    throw new LockedParameterError(
      `The parameter '${parameter}' is encrypted with '${name}', for which there is no key.`,
    );
  }
  const place = typeof documentId === 'string' ? placeOf(documentId, parameter) : undefined;
  // What OpenWhisk has stored is bound to nothing.
  const text = (place && decrypt(name, value, secrets, place)) ?? decrypt(name, value, secrets, undefined);
  if (text !== undefined) return JSON.parse(text) as JsonValue;
  throw new LockedParameterError(`The parameter '${parameter}' cannot be decrypted with the keys for '${name}'.`);
}

/** The text, with the key that fits; undefined if none does, or the value is bound to another place. */
function decrypt(name: string, value: string, secrets: Secrets, place: Buffer | undefined): string | undefined {
  if (!isCipher(name)) return undefined;
  const stored = Buffer.from(value, 'base64');
  for (const key of secrets.get(name) ?? []) {
    const text = decryptWith(name, key, stored, place);
    if (text !== undefined) return text;
  }
  return undefined;
}

function isCipher(name: string): name is ParameterCipher {
  return Object.hasOwn(ciphers, name);
}

/** The text; undefined if it was not encrypted with this key for this place. */
function decryptWith(
  name: ParameterCipher,
  key: KeyObject,
  stored: Buffer,
  place: Buffer | undefined,
): string | undefined {
  const { algorithm, ivBytes } = ciphers[name];
  const textAt = lengthBytes + ivBytes;
  if (stored.length < textAt + tagBytes || stored.readUInt32BE() !== ivBytes) return undefined;
  const iv = stored.subarray(lengthBytes, textAt);
  const decipher = createDecipheriv(algorithm, key, iv, { authTagLength: tagBytes });
  if (place !== undefined) decipher.setAAD(place);
  decipher.setAuthTag(stored.subarray(-tagBytes));
  const start = decipher.update(stored.subarray(textAt, -tagBytes));
  try {
    return Buffer.concat([start, decipher.final()]).toString('utf8');
  } catch {
    // The tag tells whether key, place and text belong together.
    return undefined;
  }
}

function secretKey(base64: string): KeyObject {
  return createSecretKey(base64, 'base64');
}

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
}

/** Thrown for an encrypted value that cannot be read; `message` names the parameter and says why. */
export class LockedParameterError extends Error {
  override name = 'LockedParameterError';
}

/** Bytes of a cipher's key. */
export function keyBytesOf(cipher: ParameterCipher): number {
  return ciphers[cipher].keyBytes;
}

/** Encrypts what is not encrypted yet. */
export type LockParameters = (parameters: readonly Parameter[]) => Parameter[];

/** What encrypts parameters before they are stored. Throws Error where the current cipher has no key. */
export function createParameterLock({ current, keys }: ParameterStorage, random: Random): LockParameters {
  if (current === 'off' || current === 'noop') return (parameters) => [...parameters];
  const [key] = keys[current] ?? [];
  if (key === undefined) throw new Error(`there is no key for ${current}`);
  const secret = secretKey(key);
  return (parameters) =>
    parameters.map((parameter) =>
      parameter.encryption === undefined
        ? { ...parameter, value: encrypt(current, secret, parameter.value, random), encryption: current }
        : parameter,
    );
}

/** As OpenWhisk stores it: base64 of the IV's length (32 bits), the IV, the encrypted JSON text and its tag. */
function encrypt(name: ParameterCipher, key: KeyObject, value: JsonValue, random: Random): string {
  const { algorithm, ivBytes } = ciphers[name];
  const iv = random.bytes(ivBytes);
  const cipher = createCipheriv(algorithm, key, iv, { authTagLength: tagBytes });
  const length = Buffer.alloc(lengthBytes);
  length.writeUInt32BE(ivBytes);
  const text = [cipher.update(JSON.stringify(value), 'utf8'), cipher.final()];
  return Buffer.concat([length, iv, ...text, cipher.getAuthTag()]).toString('base64');
}

/** Arguments of an activation; only an object's can be encrypted. */
type Arguments = JsonObject | JsonValue[] | undefined;

/** The arguments, decrypted: `lockedArgs` has the cipher's name of each encrypted key. */
export type UnlockArguments = (content: Arguments, lockedArgs: JsonObject) => Arguments;

/** What decrypts the arguments of an activation. The function throws LockedParameterError. */
export function createArgumentUnlock({ keys }: Pick<ParameterStorage, 'keys'>): UnlockArguments {
  const secrets = new Map(Object.entries(keys).map(([name, all]) => [name, (all ?? []).map(secretKey)]));
  return (content, lockedArgs) => {
    const locked = Object.entries(lockedArgs);
    if (locked.length === 0 || !isJsonObject(content)) return content;
    const unlocked: JsonObject = { ...content };
    for (const [key, name] of locked) {
      const value = unlocked[key];
      if (typeof value === 'string') unlocked[key] = decrypt(key, String(name), value, secrets);
    }
    return unlocked;
  };
}

function decrypt(parameter: string, name: string, value: string, secrets: Map<string, KeyObject[]>): JsonValue {
  if (name === 'noop') return value;
  const keys = isCipher(name) ? (secrets.get(name) ?? []) : [];
  if (!isCipher(name) || keys.length === 0) {
    throw new LockedParameterError(
      `The parameter '${parameter}' is encrypted with '${name}', for which there is no key.`,
    );
  }
  for (const key of keys) {
    const text = decryptWith(name, key, Buffer.from(value, 'base64'));
    if (text !== undefined) return JSON.parse(text) as JsonValue;
  }
  throw new LockedParameterError(`The parameter '${parameter}' cannot be decrypted with the keys for '${name}'.`);
}

function isCipher(name: string): name is ParameterCipher {
  return Object.hasOwn(ciphers, name);
}

/** The text; undefined if it was not encrypted with this key. */
function decryptWith(name: ParameterCipher, key: KeyObject, stored: Buffer): string | undefined {
  const { algorithm, ivBytes } = ciphers[name];
  const textAt = lengthBytes + ivBytes;
  if (stored.length < textAt + tagBytes || stored.readUInt32BE() !== ivBytes) return undefined;
  const iv = stored.subarray(lengthBytes, textAt);
  const decipher = createDecipheriv(algorithm, key, iv, { authTagLength: tagBytes });
  decipher.setAuthTag(stored.subarray(-tagBytes));
  const start = decipher.update(stored.subarray(textAt, -tagBytes));
  try {
    return Buffer.concat([start, decipher.final()]).toString('utf8');
  } catch {
    // The tag tells whether key and text belong together.
    return undefined;
  }
}

function secretKey(base64: string): KeyObject {
  return createSecretKey(base64, 'base64');
}

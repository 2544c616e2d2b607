import { createPrivateKey, X509Certificate, type KeyObject } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { messageOf, WskError } from '../errors.js';

/**
 * The client certificate and its key, which the connection needs as PEM.
 * @throws WskError in the words of OpenWhisk's client if a file cannot be read, holds no PEM, or the two are no pair.
 */
export function loadKeyPair(certFile: string, keyFile: string): { cert: Buffer; key: Buffer } {
  try {
    const cert = read(certFile);
    const key = read(keyFile);
    check(cert, key);
    return { cert, key };
  } catch (error) {
    throw new WskError(`Unable to load the X509 key pair due to the following reason: ${messageOf(error)}`);
  }
}

const systemTexts: Readonly<Record<string, string>> = {
  ENOENT: 'no such file or directory',
  EACCES: 'permission denied',
  ENOTDIR: 'not a directory',
  EISDIR: 'is a directory',
};

function read(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    const reason = systemTexts[code] ?? messageOf(error);
    throw new Error(`${code === 'EISDIR' ? 'read' : 'open'} ${file}: ${reason}`, { cause: error });
  }
}

function check(cert: Buffer, key: Buffer): void {
  if (!/-----BEGIN CERTIFICATE-----/.test(cert.toString('latin1'))) {
    throw new Error('tls: failed to find any PEM data in certificate input');
  }
  if (!/-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----/.test(key.toString('latin1'))) {
    throw new Error('tls: failed to find any PEM data in key input');
  }
  let parsed: KeyObject;
  try {
    parsed = createPrivateKey(key);
  } catch {
    throw new Error('tls: failed to parse private key');
  }
  if (!certificateOf(cert).checkPrivateKey(parsed)) throw new Error('tls: private key does not match public key');
}

function certificateOf(cert: Buffer): X509Certificate {
  try {
    return new X509Certificate(cert);
  } catch {
    throw new Error('x509: malformed certificate');
  }
}

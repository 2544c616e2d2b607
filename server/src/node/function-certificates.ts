// Certificates of the operator's own that functions trust, such as those of a proxy that looks into TLS connections.
import { X509Certificate } from 'node:crypto';
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { rootCertificates } from 'node:tls';
import { ConfigError } from '@gpuwhisk/common/config';
import type { Bind, RuntimeCatalog, RuntimeLaunch } from '@gpuwhisk/invoker/containers/runtime-launch';

/** Files and variables by which functions trust certificates. */
export interface FunctionCertificates {
  binds: readonly Bind[];
  env: Readonly<Record<string, string>>;
}

/** Path of the certificates inside sandboxes and containers. */
const inside = '/run/gpuwhisk-certificates';
/** Variables that name all trusted certificates, of OpenSSL, Python's requests, curl, git and AWS's SDKs. */
const bundleVariables = ['SSL_CERT_FILE', 'REQUESTS_CA_BUNDLE', 'CURL_CA_BUNDLE', 'GIT_SSL_CAINFO', 'AWS_CA_BUNDLE'];
/** Variables that name certificates besides those that a program has: Node.js brings its own. */
const extraVariables = ['NODE_EXTRA_CA_CERTS'];
/** The certificates that the host trusts, in Debian, Fedora, SUSE and Alpine. */
const hostBundles = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/ca-bundle.pem',
  '/etc/ssl/cert.pem',
];

const pem = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/**
 * Puts the certificates of `file`, PEM, into the data folder for functions, alone and behind those that the host trusts.
 * Undefined without a file. Rejects with ConfigError for a file that holds no certificate, or one that cannot be read.
 */
export async function openFunctionCertificates(
  file: string | undefined,
  dataDir: string,
): Promise<FunctionCertificates | undefined> {
  if (file === undefined) return undefined;
  const own = await certificatesIn(resolve(file));
  const folder = join(resolve(dataDir), 'certificates');
  await mkdir(folder, { recursive: true });
  // Functions run as users of their own.
  await chmod(folder, 0o755);
  await writeFile(join(folder, 'own.pem'), own, { mode: 0o644 });
  await writeFile(join(folder, 'all.pem'), `${await trustedByHost()}\n${own}`, { mode: 0o644 });
  return {
    binds: [{ source: folder, target: inside }],
    env: Object.fromEntries([
      ...bundleVariables.map((name) => [name, `${inside}/all.pem`]),
      ...extraVariables.map((name) => [name, `${inside}/own.pem`]),
    ]) as Record<string, string>,
  };
}

async function certificatesIn(file: string): Promise<string> {
  const refuse = (reason: string): never => {
    throw new ConfigError(`'functionCertificates' names ${file}, which ${reason}.`);
  };
  const text = await readFile(file, 'utf8').catch((error: unknown) =>
    refuse(`cannot be read: ${(error as Error).message}`),
  );
  const found = text.match(pem) ?? refuse('holds no certificate (-----BEGIN CERTIFICATE-----)');
  for (const [at, one] of found.entries()) {
    try {
      new X509Certificate(one);
    } catch {
      refuse(`holds a malformed certificate, number ${at + 1}`);
    }
  }
  return `${found.join('\n')}\n`;
}

async function trustedByHost(): Promise<string> {
  for (const bundle of hostBundles) {
    try {
      return await readFile(bundle, 'utf8');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
  }
  return rootCertificates.join('\n');
}

/** The catalog with certificates in every runtime that functions run in. A runtime's own variables come first. */
export function withCertificates<Catalog extends RuntimeCatalog>(
  catalog: Catalog,
  certificates: FunctionCertificates | undefined,
): Catalog {
  if (certificates === undefined) return catalog;
  // Launches that are the same stay the same.
  const known = new WeakMap<RuntimeLaunch, RuntimeLaunch>();
  const trusting = (launch: RuntimeLaunch): RuntimeLaunch => {
    const before = known.get(launch);
    if (before !== undefined) return before;
    const made: RuntimeLaunch = {
      ...launch,
      binds: [...launch.binds, ...certificates.binds],
      env: { ...certificates.env, ...launch.env },
      ...(launch.pair && { pair: trusting(launch.pair) }),
    };
    known.set(launch, made);
    return made;
  };
  return {
    ...catalog,
    launch: async (...wanted: Parameters<RuntimeCatalog['launch']>) => trusting(await catalog.launch(...wanted)),
  };
}

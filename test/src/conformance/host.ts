import { isolationLack, networkLack } from '../support/machine.js';
import { startPlatform } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';
import { Caller, closeConnections } from './caller.js';
import type { Need } from './conformance-case.js';

/** The API host under test, and its identities. */
export interface Host {
  user: Caller;
  /** Another identity, with its own namespace. */
  other: Caller;
  /** An identity that may use /api/v1/admin, or undefined if none is known. */
  operator: Caller | undefined;
  /** The domain whose subdomains are namespaces, or undefined if none is known. */
  vanityDomain: string | undefined;
  /**
   * The user of a second server, which encrypts parameters and has a shorter blocking wait. The first call starts it.
   */
  encrypting(): Promise<Caller>;
  close(): Promise<void>;
}

const { CONFORMANCE_API_HOST, CONFORMANCE_AUTH, CONFORMANCE_OTHER_AUTH, CONFORMANCE_OPERATOR_AUTH } = process.env;
const { CONFORMANCE_VANITY_DOMAIN, CONFORMANCE_CONCURRENCY } = process.env;

/** Whether the environment names a running server; otherwise the suite starts one. */
const isForeign = CONFORMANCE_API_HOST !== undefined;

/** Why cases with a requirement are skipped, or undefined if they run. */
export const lacks: Record<Need, string | undefined> = {
  operator: isForeign && CONFORMANCE_OPERATOR_AUTH === undefined ? 'CONFORMANCE_OPERATOR_AUTH is not set' : undefined,
  network: isForeign ? undefined : networkLack,
  isolation: isForeign ? undefined : isolationLack,
  concurrency: isForeign && CONFORMANCE_CONCURRENCY !== 'true' ? 'CONFORMANCE_CONCURRENCY is not true' : undefined,
  encryption: isForeign ? 'the server that was named does not encrypt parameters' : undefined,
  vanityDomain:
    isForeign && CONFORMANCE_VANITY_DOMAIN === undefined ? 'CONFORMANCE_VANITY_DOMAIN is not set' : undefined,
};

/** OpenWhisk's published account whisk.system, which owns the catalog. */
const whiskSystem =
  '789c46b1-71f6-4ed5-8c54-816aa4f8c502:abczO3xZCLrMN6v2BKK1dXYFpXlPkccOFqm12CdAsMgRU4VrNZ9lyGVCGuMDGIwP';

const parameterKeys = JSON.stringify({ 'aes-256': [Buffer.alloc(32, 7).toString('base64')] });
/** Settings of the server that encrypts parameters; callers wait for 3 s there. */
const encryptionFlags = [
  'parameterStorage.current=aes-256',
  `parameterStorage.keys=${parameterKeys}`,
  'blockingWaitMs=3000',
].flatMap((setting) => ['--set', setting]);

/** A caller for the only namespace of an identity. Throws if the host refuses the credentials. */
export async function callerOf(url: string, auth: string): Promise<Caller> {
  const { status, text, body } = await new Caller(url, auth, '').send<string[]>('GET', '/api/v1/namespaces');
  if (status !== 200 || !body[0]) throw new Error(`${url} answered ${status} to ${auth.split(':')[0]}: ${text}`);
  return new Caller(url, auth, body[0]);
}

/** The server that the environment names, or a platform of ours that is started here. */
export async function openHost(): Promise<Host> {
  if (CONFORMANCE_API_HOST !== undefined) {
    if (CONFORMANCE_AUTH === undefined || CONFORMANCE_OTHER_AUTH === undefined)
      throw new Error('CONFORMANCE_API_HOST needs CONFORMANCE_AUTH and CONFORMANCE_OTHER_AUTH (uuid:key).');
    const operator = CONFORMANCE_OPERATOR_AUTH;
    return {
      user: await callerOf(CONFORMANCE_API_HOST, CONFORMANCE_AUTH),
      other: await callerOf(CONFORMANCE_API_HOST, CONFORMANCE_OTHER_AUTH),
      operator: operator === undefined ? undefined : new Caller(CONFORMANCE_API_HOST, operator, ''),
      vanityDomain: CONFORMANCE_VANITY_DOMAIN,
      encrypting: () => Promise.reject(new Error('There is no server that encrypts parameters.')),
      close: () => Promise.resolve(closeConnections()),
    };
  }
  const vanityDomain = 'functions.test';
  const platform = await startPlatform({ flags: ['--set', `vanityDomain=${vanityDomain}`] });
  let encrypting: Promise<RunningPlatform> | undefined;
  return {
    user: await callerOf(platform.url, platform.auth),
    other: await callerOf(platform.url, whiskSystem),
    operator: new Caller(platform.url, platform.operatorAuth, ''),
    vanityDomain,
    async encrypting() {
      encrypting ??= startPlatform({ flags: encryptionFlags });
      const { url, auth } = await encrypting;
      return callerOf(url, auth);
    },
    async close() {
      closeConnections();
      await (await encrypting)?.stop();
      await platform.stop();
    },
  };
}

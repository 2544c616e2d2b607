import { isolationLack, networkLack } from '../support/machine.js';
import { startPlatform } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';
import { Caller, closeConnections } from './caller.js';
import type { Need } from './conformance-case.js';

/** The API host that the cases are run against, and who calls it. */
export interface Host {
  user: Caller;
  /** Another identity, with a namespace of its own. */
  other: Caller;
  /** Who may use /api/v1/admin; undefined where no account is known to. */
  operator: Caller | undefined;
  /** Namespaces are hosts of it; undefined where they are not known to be. */
  vanityDomain: string | undefined;
  /** The user of another server, which encrypts parameters and waits less; started when it is first asked for. */
  encrypting(): Promise<Caller>;
  close(): Promise<void>;
}

const { CONFORMANCE_API_HOST, CONFORMANCE_AUTH, CONFORMANCE_OTHER_AUTH, CONFORMANCE_OPERATOR_AUTH } = process.env;
const { CONFORMANCE_VANITY_DOMAIN, CONFORMANCE_CONCURRENCY } = process.env;

/** Whether a running server was named in the environment, rather than that one is to be started. */
const isForeign = CONFORMANCE_API_HOST !== undefined;

/** Why a case that needs something does not run here; undefined if it does. */
export const lacks: Record<Need, string | undefined> = {
  operator: isForeign && CONFORMANCE_OPERATOR_AUTH === undefined ? 'CONFORMANCE_OPERATOR_AUTH is not set' : undefined,
  network: isForeign ? undefined : networkLack,
  isolation: isForeign ? undefined : isolationLack,
  concurrency: isForeign && CONFORMANCE_CONCURRENCY !== 'true' ? 'CONFORMANCE_CONCURRENCY is not true' : undefined,
  encryption: isForeign ? 'the server that was named does not encrypt parameters' : undefined,
  vanityDomain:
    isForeign && CONFORMANCE_VANITY_DOMAIN === undefined ? 'CONFORMANCE_VANITY_DOMAIN is not set' : undefined,
};

/** OpenWhisk's well-known account of the catalog. */
const whiskSystem =
  '789c46b1-71f6-4ed5-8c54-816aa4f8c502:abczO3xZCLrMN6v2BKK1dXYFpXlPkccOFqm12CdAsMgRU4VrNZ9lyGVCGuMDGIwP';

const parameterKeys = JSON.stringify({ 'aes-256': [Buffer.alloc(32, 7).toString('base64')] });
/** Of the server that encrypts parameters, on which callers wait for 3 s. */
const encryptionFlags = [
  'parameterStorage.current=aes-256',
  `parameterStorage.keys=${parameterKeys}`,
  'blockingWaitMs=3000',
].flatMap((setting) => ['--set', setting]);

/** The one namespace of an identity. Throws if the host does not let it in. */
export async function callerOf(url: string, auth: string): Promise<Caller> {
  const { status, text, body } = await new Caller(url, auth, '').send<string[]>('GET', '/api/v1/namespaces');
  if (status !== 200 || !body[0]) throw new Error(`${url} answered ${status} to ${auth.split(':')[0]}: ${text}`);
  return new Caller(url, auth, body[0]);
}

/** The server that the environment names, or a platform of ours, started here. */
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

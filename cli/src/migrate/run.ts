import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { apiBase } from '../client/transport.js';
import { messageOf, WskError } from '../errors.js';
import { defaultApiVersion, propertiesFile, readProperties } from '../settings.js';
import { migrateFromCouchdb } from './from-couchdb.js';
import { migrateFromRest } from './from-rest.js';
import { connectServer, RefusedError, UnreachableError, type Server } from './http.js';
import { createProgress, Report } from './report.js';

/** Longest silence of a server, ms: the transfer of 48 MiB of code must fit. */
const timeoutMs = 120_000;
const retryDelayMs = 250;

/** Runs `gpuwhisk migrate` and returns its exit code: 0, or 1. Throws UsageError and WskError. */
export async function runMigrate(words: readonly string[], environment: NodeJS.ProcessEnv): Promise<number> {
  const properties = readProperties(propertiesFile(environment));
  const options = readOptions(words, {
    host: environment['WHISK_APIHOST'] ?? properties.get('APIHOST'),
    key: environment['WHISK_AUTH'] ?? properties.get('AUTH'),
  });
  return options === undefined ? say(migrateHelp) : await migrate(options);
}

function say(text: string): number {
  process.stdout.write(text);
  return 0;
}

async function migrate(options: MigrateOptions): Promise<number> {
  const report = new Report(options.dryRun);
  const progress = createProgress(process.stderr);
  const { concurrency, insecure, source, target } = options;
  const opened: Server[] = [];
  const connect = (base: URL, auth: string | undefined): Server => {
    const server = connectServer({ base, auth, concurrency, insecure, timeoutMs, retryDelayMs });
    opened.push(server);
    return server;
  };
  const apiOf = (host: string, key: string | undefined): Server =>
    connect(new URL(`${apiBase(host.replace(/\/+$/, ''))}/${defaultApiVersion}/`), key);
  try {
    if (source.kind === 'rest') {
      const servers = source.keys.map((key, at) => ({
        source: apiOf(source.host, key),
        target: apiOf(target.host, target.keys[at]),
      }));
      await migrateFromRest({ ...options, servers }, report, progress);
    } else {
      const { url, prefix, identities, activations, namespaces } = source;
      const { username, password } = url;
      const auth = username === '' ? undefined : `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
      const base = new URL(url.pathname.replace(/\/*$/, '/'), url.origin);
      const servers = { source: connect(base, auth), target: apiOf(target.host, target.keys[0]) };
      const what = { prefix, identities, activations, namespaces };
      await migrateFromCouchdb({ ...options, ...servers, ...what }, report, progress);
    }
  } catch (error) {
    if (!(error instanceof RefusedError || error instanceof UnreachableError)) throw error;
    report.stop(error.message);
  } finally {
    progress.end();
    for (const server of opened) server.close();
  }
  say(report.toText());
  if (options.reportFile !== undefined) writeReport(options.reportFile, report);
  return report.exitCode;
}

function writeReport(file: string, report: Report): void {
  try {
    writeFileSync(file, `${JSON.stringify(report.toJson(), undefined, 2)}\n`);
  } catch (error) {
    throw new WskError(`the report cannot be written to '${file}': ${messageOf(error)}`);
  }
}

/** A mistake in the command line. */
export class UsageError extends Error {
  override name = 'UsageError';
}

/** Options of `gpuwhisk migrate`. */
interface MigrateOptions {
  source:
    | { kind: 'rest'; host: string; keys: string[] }
    | { kind: 'couchdb'; url: URL; prefix: string; identities: boolean; activations: boolean; namespaces: string[] };
  target: { host: string; keys: string[] };
  /** Source kind to target kind. */
  kinds: ReadonlyMap<string, string>;
  concurrency: number;
  dryRun: boolean;
  overwrite: boolean;
  insecure: boolean;
  reportFile: string | undefined;
}

const maxConcurrency = 256;

const flags = {
  from: { type: 'string' },
  auth: { type: 'string', multiple: true },
  'from-couchdb': { type: 'string' },
  'db-prefix': { type: 'string' },
  identities: { type: 'boolean' },
  activations: { type: 'boolean' },
  namespace: { type: 'string', multiple: true },
  to: { type: 'string' },
  'to-auth': { type: 'string', multiple: true },
  kind: { type: 'string', multiple: true },
  'dry-run': { type: 'boolean' },
  overwrite: { type: 'boolean' },
  concurrency: { type: 'string' },
  insecure: { type: 'boolean', short: 'i' },
  report: { type: 'string' },
  help: { type: 'boolean', short: 'h' },
} as const;

const migrateHelp = `usage: gpuwhisk migrate --from HOST --auth UUID:KEY --to HOST --to-auth UUID:KEY [options]
       gpuwhisk migrate --from-couchdb URL --db-prefix PREFIX --to HOST --to-auth UUID:KEY [options]

Copies packages, actions, sequences, triggers and rules from an OpenWhisk into this platform. What is at the target
already and is equal is left, so that it can be run again. Exit code: 0 when everything was carried, else 1.

From a running OpenWhisk, over its API:
  --from HOST           its API host, such as https://openwhisk.example.org
  --auth UUID:KEY       the key of a namespace there; several keys: the same number of --to-auth, in the same order

From OpenWhisk's CouchDB (all namespaces; --to-auth is an operator's key):
  --from-couchdb URL    with user and password, such as http://whisk:secret@couchdb.example.org:5984
  --db-prefix PREFIX    of the databases' names, such as whisk_local_
  --namespace NAME      only this namespace; may be given several times
  --identities          subjects with their keys, and namespaces' limits, too
  --activations         records of activations, too

To this platform:
  --to HOST             its API host; default: WHISK_APIHOST, else APIHOST of ~/.wskprops
  --to-auth UUID:KEY    the key; default: WHISK_AUTH, else AUTH of ~/.wskprops

  --kind FROM=TO        carry actions of kind FROM as kind TO; may be given several times
  --overwrite           replace what the target has under a name but differs; otherwise it is left and reported
  --dry-run             change nothing, report what would be done
  --report FILE         write the report as JSON, too
  --concurrency N       requests at a time, 1 to ${maxConcurrency}; default 16
  --insecure, -i        bypass certificate checking
`;

/**
 * Reads the words behind `migrate`; `defaults` has the target's host and key. Undefined if the command line asks for
 * help.
 */
function readOptions(
  words: readonly string[],
  defaults: { host: string | undefined; key: string | undefined },
): MigrateOptions | undefined {
  const values = parse(words);
  if (values.help === true) return undefined;
  const host = values.to ?? defaults.host;
  if (host === undefined || host === '') throw new UsageError('--to is missing: the host to migrate to');
  const keys = values['to-auth'] ?? (defaults.key === undefined || defaults.key === '' ? [] : [defaults.key]);
  if (keys.length === 0) throw new UsageError('--to-auth is missing: the key at the target');
  for (const key of [...keys, ...(values.auth ?? [])]) {
    if (!/^[^:]+:.+$/.test(key)) throw new UsageError('a key must be a uuid and a key with a colon between');
  }
  return {
    source: values.from === undefined ? couchSource(values, keys) : restSource(values, values.from, keys),
    target: { host, keys },
    kinds: new Map((values.kind ?? []).map(kindPair)),
    concurrency: concurrencyOf(values.concurrency),
    dryRun: values['dry-run'] === true,
    overwrite: values.overwrite === true,
    insecure: values.insecure === true,
    reportFile: values.report,
  };
}

type Values = ReturnType<typeof parse>;

function parse(words: readonly string[]) {
  try {
    return parseArgs({ args: [...words], options: flags, strict: true, allowPositionals: false }).values;
  } catch (error) {
    throw new UsageError(messageOf(error));
  }
}

function restSource(values: Values, host: string, targetKeys: readonly string[]): MigrateOptions['source'] {
  for (const flag of ['from-couchdb', 'db-prefix', 'namespace', 'identities', 'activations'] as const) {
    if (values[flag] !== undefined) throw new UsageError(`--${flag} does not go with --from`);
  }
  const keys = values.auth ?? [];
  if (keys.length === 0) throw new UsageError('--auth is missing: the key at the source');
  if (keys.length !== targetKeys.length) {
    throw new UsageError(`there are ${keys.length} keys of the source, but ${targetKeys.length} of the target`);
  }
  return { kind: 'rest', host, keys };
}

function couchSource(values: Values, targetKeys: readonly string[]): MigrateOptions['source'] {
  const text = values['from-couchdb'];
  if (text === undefined) throw new UsageError('--from or --from-couchdb is missing: where to migrate from');
  if (values.auth !== undefined) throw new UsageError("--auth does not go with --from-couchdb: the URL has CouchDB's");
  if (targetKeys.length !== 1) throw new UsageError("--from-couchdb takes one --to-auth: an operator's key");
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol)) {
    throw new UsageError('--from-couchdb must be an http or https URL');
  }
  const prefix = values['db-prefix'];
  if (prefix === undefined) throw new UsageError('--db-prefix is missing, such as whisk_local_');
  const { identities = false, activations = false, namespace: namespaces = [] } = values;
  return { kind: 'couchdb', url: new URL(text), prefix, identities, activations, namespaces };
}

function kindPair(text: string): [string, string] {
  const [from = '', to = '', ...more] = text.split('=');
  if (from === '' || to === '' || more.length > 0) throw new UsageError(`--kind must be FROM=TO, not '${text}'`);
  return [from, to];
}

function concurrencyOf(text = '16'): number {
  const number = Number(text);
  if (Number.isInteger(number) && number >= 1 && number <= maxConcurrency) return number;
  throw new UsageError(`--concurrency must be 1 to ${maxConcurrency}`);
}

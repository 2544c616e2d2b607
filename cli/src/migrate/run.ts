import { writeFileSync } from 'node:fs';
import { apiBase } from '../client/api-host.js';
import { messageOf, WskError } from '../errors.js';
import { defaultApiVersion, propertiesFile, readProperties } from '../settings.js';
import { migrateFromCouchdb } from './from-couchdb.js';
import { migrateFromRest } from './from-rest.js';
import { connectServer, RefusedError, UnreachableError, type Server } from './http.js';
import { migrateHelp, readOptions, type MigrateOptions } from './options.js';
import { createProgress } from './progress.js';
import { Report } from './report.js';

/** Longest silence of a server, ms: code of 48 MiB has to get through. */
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

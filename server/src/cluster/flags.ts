import { hostname } from 'node:os';
import { resolve } from 'node:path';
import { ConfigError, loadConfig } from '@gpuwhisk/common/config';
import type { Config } from '@gpuwhisk/common/config';
import { assign, readFlags, settingsFlags, settingsOf } from '../process/settings-flags.js';

/** The text of --help. */
export const usage = `Usage: gpuwhisk controller|invoker|databases [flags]

  databases makes what CouchDB lacks, with an administrator's account in --couchdb, and the account of invokers, whose name
  (default gpuwhisk-invoker) and password INVOKER_COUCHDB_USER and INVOKER_COUCHDB_PASSWORD give.

  --name TEXT            name of this process, which keeps its number by it (default: the host's)
  --port N               port of the API, of an invoker that of /ping and /metrics (default 3233; 0: a free one)
  --host ADDRESS         address to listen on (default 127.0.0.1)
  --data DIR             folder of this process alone (default .gpuwhisk)
  --couchdb URL          CouchDB (http://user:password@host:5984)
  --couchdb-prefix TEXT  prefix of its databases' names (default whisk_local_)
  --kafka HOST:PORT,...  Kafka's brokers
  --redis URL            Redis (redis://user:password@host:6379/0)
  --config FILE          JSON configuration file; flags and GPUWHISK_* variables come on top
  --set KEY=VALUE        any setting by its path, such as --set limits.maxTimeoutMs=600000; may be repeated
  --allow-weak-isolation   of an invoker: start where the host forbids a measure of isolation
  --print-config         print the configuration as JSON and stop
  --help                 this text
`;

const clusterFlags = { ...settingsFlags, name: { type: 'string' }, redis: { type: 'string' } } as const;

/** A configuration with the engines and the name that a process of a cluster requires. */
export type ClusterConfig = Config & Required<Pick<Config, 'couchdb' | 'kafka' | 'redis' | 'name'>>;

/** Settings of the command `databases`, and the account of invokers. */
export interface DatabasesConfig {
  couchdb: NonNullable<Config['couchdb']>;
  invoker: { user: string; password: string };
}

/** The parsed command line. */
type ClusterCommand =
  | { type: 'help' }
  | { type: 'print-config'; config: Config }
  | { type: 'databases'; config: DatabasesConfig }
  | { type: 'serve'; role: 'controller' | 'invoker'; config: ClusterConfig };

/** Parses the command line. Throws ConfigError. */
export function parseClusterCommand(args: string[], env: NodeJS.ProcessEnv): ClusterCommand {
  const [role, ...rest] = args;
  const values = readFlags(rest, clusterFlags);
  if (values.help || role === '--help') return { type: 'help' };
  if (role !== 'controller' && role !== 'invoker' && role !== 'databases') {
    throw new ConfigError(`gpuwhisk starts a controller or an invoker, or makes databases, not '${role ?? ''}'`);
  }
  const flags = settingsOf(values);
  if (values.name !== undefined) flags.name = values.name;
  if (values.redis !== undefined) assign(flags, `redis.url=${values.redis}`);
  const config = loadConfig({ ...(values.config !== undefined && { file: values.config }), env, flags });
  if (values['print-config']) return { type: 'print-config', config };
  if (role === 'databases') return { type: 'databases', config: databasesConfig(config, env) };
  return { type: 'serve', role, config: clusterConfig(config) };
}

function databasesConfig({ couchdb }: Config, env: NodeJS.ProcessEnv): DatabasesConfig {
  const { INVOKER_COUCHDB_USER: user = 'gpuwhisk-invoker', INVOKER_COUCHDB_PASSWORD: password = '' } = env;
  if (couchdb === undefined) throw new ConfigError('Databases need a CouchDB: --couchdb');
  if (password === '') throw new ConfigError("INVOKER_COUCHDB_PASSWORD must be set: the password of invokers' account");
  return { couchdb, invoker: { user, password } };
}

function clusterConfig(config: Config): ClusterConfig {
  const { couchdb, kafka, redis, name = hostname(), dataDir } = config;
  if (couchdb === undefined) throw new ConfigError('A cluster needs a CouchDB: --couchdb');
  if (kafka === undefined) throw new ConfigError('A cluster needs Kafka: --kafka');
  if (redis === undefined) throw new ConfigError('A cluster needs a Redis: --redis');
  return { ...config, couchdb, kafka, redis, name, dataDir: resolve(dataDir) };
}

import { hostname } from 'node:os';
import { resolve } from 'node:path';
import { ConfigError, loadConfig } from '@gpuwhisk/common/config';
import type { Config } from '@gpuwhisk/common/config';
import { assign, readFlags, settingsFlags, settingsOf } from '../settings-flags.js';

/** The text of --help. */
export const usage = `Usage: gpuwhisk controller|invoker [flags]

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
  --print-config         print the configuration as JSON and stop
  --help                 this text
`;

const clusterFlags = { ...settingsFlags, name: { type: 'string' }, redis: { type: 'string' } } as const;

/** What a process of a cluster cannot do without. */
export type ClusterConfig = Config & Required<Pick<Config, 'couchdb' | 'kafka' | 'redis' | 'name'>>;

/** What the command line asks for. */
export type ClusterCommand =
  | { type: 'help' }
  | { type: 'print-config'; config: Config }
  | { type: 'serve'; role: 'controller' | 'invoker'; config: ClusterConfig };

/** Parses the command line. Throws ConfigError. */
export function parseClusterCommand(args: string[], env: NodeJS.ProcessEnv): ClusterCommand {
  const [role, ...rest] = args;
  const values = readFlags(rest, clusterFlags);
  if (values.help || role === '--help') return { type: 'help' };
  if (role !== 'controller' && role !== 'invoker') {
    throw new ConfigError(`gpuwhisk starts a controller or an invoker, not '${role ?? ''}'`);
  }
  const flags = settingsOf(values);
  if (values.name !== undefined) flags.name = values.name;
  if (values.redis !== undefined) assign(flags, `redis.url=${values.redis}`);
  const config = loadConfig({ ...(values.config !== undefined && { file: values.config }), env, flags });
  if (values['print-config']) return { type: 'print-config', config };
  return { type: 'serve', role, config: clusterConfig(config) };
}

function clusterConfig(config: Config): ClusterConfig {
  const { couchdb, kafka, redis, name = hostname(), dataDir } = config;
  if (couchdb === undefined) throw new ConfigError('A cluster needs a CouchDB: --couchdb');
  if (kafka === undefined) throw new ConfigError('A cluster needs Kafka: --kafka');
  if (redis === undefined) throw new ConfigError('A cluster needs a Redis: --redis');
  return { ...config, couchdb, kafka, redis, name, dataDir: resolve(dataDir) };
}

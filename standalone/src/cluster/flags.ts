import { hostname } from 'node:os';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { ConfigError, loadConfig } from '@gpuwhisk/common/config';
import type { Config } from '@gpuwhisk/common/config';
import { assign } from '../flags.js';

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
  const values = parse(rest);
  if (values.help || role === '--help') return { type: 'help' };
  if (role !== 'controller' && role !== 'invoker') {
    throw new ConfigError(`gpuwhisk starts a controller or an invoker, not '${role ?? ''}'`);
  }
  const flags: Record<string, unknown> = {};
  for (const setting of values.set ?? []) assign(flags, setting);
  if (values.name !== undefined) flags.name = values.name;
  if (values.port !== undefined) flags.port = Number(values.port);
  if (values.host !== undefined) flags.host = values.host;
  if (values.data !== undefined) flags.dataDir = values.data;
  if (values.couchdb !== undefined) assign(flags, `couchdb.url=${values.couchdb}`);
  if (values['couchdb-prefix'] !== undefined) assign(flags, `couchdb.prefix=${values['couchdb-prefix']}`);
  if (values.kafka !== undefined) assign(flags, `kafka.brokers=${values.kafka}`);
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

function parse(args: string[]): ReturnType<typeof parseValues> {
  try {
    return parseValues(args);
  } catch (error) {
    throw new ConfigError((error as Error).message);
  }
}

function parseValues(args: string[]) {
  return parseArgs({
    args,
    options: {
      name: { type: 'string' },
      port: { type: 'string' },
      host: { type: 'string' },
      data: { type: 'string' },
      couchdb: { type: 'string' },
      'couchdb-prefix': { type: 'string' },
      kafka: { type: 'string' },
      redis: { type: 'string' },
      config: { type: 'string' },
      set: { type: 'string', multiple: true },
      'print-config': { type: 'boolean' },
      help: { type: 'boolean' },
    },
  }).values;
}

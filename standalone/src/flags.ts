import { ConfigError, loadConfig } from '@gpuwhisk/common/config';
import type { Config } from '@gpuwhisk/common/config';
import { jsonOrText, readFlags, settingsFlags, settingsOf } from '@gpuwhisk/server/process/settings-flags';
import type { AccountLimits } from './identities.js';

/** Standalone's defaults where they differ from a cluster's. */
const standaloneDefaults = {
  limits: {
    maxMemoryMiB: 4096,
    maxConcurrency: 500,
  },
};

/** The text of --help. */
export const usage = `Usage: npm start -- [flags]
       gpuwhisk serve [flags]

  --port N               port of the API (default 3233; 0 takes a free one)
  --gateway-port N|off   port of the API gateway (default one above the API's; 0 takes a free one)
  --console-port N|off   port of the console (default two above the API's; 0 takes a free one)
  --host ADDRESS         address to listen on (default 127.0.0.1)
  --data DIR             folder of all state (default .gpuwhisk)
  --couchdb URL          entities, identities and records in a CouchDB (http://user:password@host:5984)
  --couchdb-prefix TEXT  prefix of its databases' names (default whisk_local_)
  --kafka BROKERS        messages in a Kafka (host:port, or several with commas)
  --config FILE          JSON configuration file; flags and GPUWHISK_* variables come on top
  --set KEY=VALUE        any setting by its path, such as --set limits.maxTimeoutMs=600000; may be repeated
  --memory MIB           memory that containers may claim together (default 60 % of the host's)
  --stem-cells true|false   keep prewarmed containers (default true)
  --containers mscontainer|process|docker   inject functions into warm processes (default), start each in one of its own,
                         or in a container of the Docker engine of this host
  --gpus auto|none|sim:MODELxN[,MODELxN]   the GPUs that are here (default auto), none, or simulated ones such as
                         sim:a100-40x4 (models: rtx3090, v100-32, a100-40, a100-80, h100, h200)
  --runtimes FILE        runtimes manifest in OpenWhisk's shape (default runtimes/runtimes.json)
  --allow-weak-isolation   start where the host forbids a measure of isolation, on other addresses than loopback, too
  --limits standalone|openwhisk   guest and whisk.system have limits of their own that leave room (default), or
                         those that OpenWhisk gives everybody: 60 invocations a minute, 30 at once, 60 fires
  --log-level LEVEL      trace, debug, info, warn (default), error, silent
  --print-config         print the configuration as JSON and stop
  --check-data           say whether this release can open the data folder, and stop; a server may be using it
  --restore-backup       put back the data that an upgrade has kept when it changed the data's format, and stop
  --help                 this text
`;

const standaloneFlags = {
  ...settingsFlags,
  'gateway-port': { type: 'string' },
  'console-port': { type: 'string' },
  memory: { type: 'string' },
  'stem-cells': { type: 'string' },
  containers: { type: 'string' },
  gpus: { type: 'string' },
  runtimes: { type: 'string' },
  limits: { type: 'string' },
  'log-level': { type: 'string' },
  'check-data': { type: 'boolean' },
  'restore-backup': { type: 'boolean' },
} as const;

/** The parsed command line. */
type Command =
  | { type: 'help' }
  | { type: 'print-config'; config: Config }
  | { type: 'check-data'; config: Config }
  | { type: 'restore-backup'; config: Config }
  | { type: 'serve'; config: Config; accountLimits: AccountLimits };

/** Parses the command line. Throws ConfigError for an unknown flag or an impossible value. */
export function parseCommand(args: string[], env: NodeJS.ProcessEnv): Command {
  const values = readFlags(args, standaloneFlags);
  if (values.help) return { type: 'help' };
  const flags = settingsOf(values);
  const { 'gateway-port': gatewayPort, 'console-port': consolePort } = values;
  if (gatewayPort !== undefined) flags.gatewayPort = gatewayPort === 'off' ? false : Number(gatewayPort);
  if (consolePort !== undefined) flags.consolePort = consolePort === 'off' ? false : Number(consolePort);
  if (values.memory !== undefined) flags.poolMemoryMiB = Number(values.memory);
  if (values['stem-cells'] !== undefined) flags.stemCells = jsonOrText(values['stem-cells']);
  if (values.containers !== undefined) flags.containers = values.containers;
  if (values.gpus !== undefined) flags.gpus = values.gpus;
  if (values.runtimes !== undefined) flags.runtimesManifest = values.runtimes;
  if (values['log-level'] !== undefined) flags.logLevel = values['log-level'];
  const config = loadConfig({ base: standaloneDefaults, file: values.config, env, flags });
  for (const type of ['print-config', 'check-data', 'restore-backup'] as const)
    if (values[type]) return { type, config };
  return { type: 'serve', config, accountLimits: accountLimits(values.limits) };
}

function accountLimits(given = 'standalone'): AccountLimits {
  if (given === 'standalone' || given === 'openwhisk') return given;
  throw new ConfigError(`--limits takes standalone or openwhisk, not '${given}'`);
}

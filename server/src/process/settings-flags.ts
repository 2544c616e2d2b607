import { parseArgs } from 'node:util';
import type { ParseArgsConfig } from 'node:util';
import { ConfigError } from '@gpuwhisk/common/config';

/** The flags that standalone and the processes of a cluster have in common. */
export const settingsFlags = {
  port: { type: 'string' },
  host: { type: 'string' },
  data: { type: 'string' },
  couchdb: { type: 'string' },
  'couchdb-prefix': { type: 'string' },
  kafka: { type: 'string' },
  config: { type: 'string' },
  set: { type: 'string', multiple: true },
  'allow-weak-isolation': { type: 'boolean' },
  'print-config': { type: 'boolean' },
  help: { type: 'boolean' },
} as const;

type Values<Options extends ParseArgsConfig['options']> = ReturnType<typeof parseArgs<{ options: Options }>>['values'];

/** The flags' values. Throws ConfigError for an unknown one. */
export function readFlags<const Options extends NonNullable<ParseArgsConfig['options']>>(
  args: string[],
  options: Options,
): Values<Options> {
  try {
    return parseArgs({ args, options }).values as Values<Options>;
  } catch (error) {
    throw new ConfigError((error as Error).message);
  }
}

/** The tree of settings that the common flags describe. Throws ConfigError. */
export function settingsOf(values: Values<typeof settingsFlags>): Record<string, unknown> {
  const settings: Record<string, unknown> = {};
  for (const setting of values.set ?? []) assign(settings, setting);
  if (values.port !== undefined) settings.port = Number(values.port);
  if (values.host !== undefined) settings.host = values.host;
  if (values.data !== undefined) settings.dataDir = values.data;
  if (values.couchdb !== undefined) assign(settings, `couchdb.url=${values.couchdb}`);
  if (values['couchdb-prefix'] !== undefined) assign(settings, `couchdb.prefix=${values['couchdb-prefix']}`);
  if (values['allow-weak-isolation']) settings.allowWeakIsolation = true;
  if (values.kafka !== undefined) assign(settings, `kafka.brokers=${values.kafka}`);
  return settings;
}

/** Puts a setting `a.b=value` into a tree. Throws ConfigError. */
export function assign(tree: Record<string, unknown>, setting: string): void {
  const at = setting.indexOf('=');
  if (at < 1) throw new ConfigError(`--set takes KEY=VALUE, not '${setting}'`);
  const path = setting.slice(0, at).split('.');
  const last = path.pop() as string;
  let node = tree;
  for (const key of path) node = (node[key] ??= {}) as Record<string, unknown>;
  node[last] = jsonOrText(setting.slice(at + 1));
}

/** The JSON value of the text, or the text itself if it is not JSON. */
export function jsonOrText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

import type { Flags, FlagSpec } from '../args/flags.js';
import { apiBase } from '../client/transport.js';
import { validTls } from '../client/client.js';
import type { Command, CommandContext } from '../command.js';
import { wrapError, WskError } from '../errors.js';
import { asList, asMap, asText, type JsonMap } from '../json/json.js';
import { cliVersion, defaultApiVersion, propertiesFile, readProperties, writeProperties } from '../settings.js';
import { stdout } from '../terminal.js';

/** A property that can be set: its flag, its key in the properties file, and its name in messages. */
const settable = [
  { flag: 'cert', key: 'CERT', label: 'client cert', value: 'string' },
  { flag: 'key', key: 'KEY', label: 'client key', value: 'string' },
  { flag: 'auth', key: 'AUTH', label: 'whisk auth', value: '`KEY`' },
  { flag: 'apihost', key: 'APIHOST', label: 'whisk API host', value: '`HOST`' },
  { flag: 'apiversion', key: 'APIVERSION', label: 'whisk API version', value: '`VERSION`' },
] as const;

const helpOf: Record<string, string> = { key: 'Client key', auth: 'authorization key' };

async function set({ flags, settings }: CommandContext): Promise<void> {
  validTls(settings); // a certificate that cannot be used is not stored
  const file = propertiesFile();
  const properties = readProperties(file);
  const messages: string[] = [];
  let invalid: WskError | undefined;
  for (const { flag, key, label } of settable) {
    const value = flags.text(flag);
    if (value === '') continue;
    if (flag === 'apihost') {
      invalid = hostError(value);
      if (invalid) continue;
    }
    properties.set(key, value);
    const shown = flag === 'apihost' || flag === 'apiversion';
    const news = shown ? `to ${stdout.bold(value)}` : `. Run 'wsk property get --${flag}' to see the new value.`;
    messages.push(`${stdout.ok} ${label} set${shown ? ' ' : ''}${news}\n`);
  }
  save(file, properties, 'Unable to set the property value(s)');
  stdout.print(messages.join(''));
  if (invalid) throw invalid;
}

function hostError(host: string): WskError | undefined {
  try {
    apiBase(host);
    return undefined;
  } catch (error) {
    return wrapError(error, `Unable to set API host value; the API host value '${host}' is invalid`);
  }
}

async function unset({ flags }: CommandContext): Promise<void> {
  const file = propertiesFile();
  const properties = readProperties(file);
  const messages: string[] = [];
  for (const { flag, key, label } of settable) {
    if (!flags.bool(flag)) continue;
    properties.delete(key);
    const fallback = `; the default value of ${stdout.bold(defaultApiVersion)} will be used`;
    messages.push(`${stdout.ok} ${label} unset${flag === 'apiversion' ? fallback : ''}.\n`);
  }
  save(file, properties, 'Unable to unset the property value');
  stdout.print(messages.join(''));
}

function save(file: string, properties: Map<string, string>, failure: string): void {
  try {
    writeProperties(file, properties);
  } catch (error) {
    throw wrapError(error, failure);
  }
}

/** The properties that can be read, in the order in which `property get` prints them. */
const readable: {
  flag: string;
  label: string;
  tabs: string;
  /** Member of the server's answer that has the value; undefined for local properties. */
  fromServer?: 'build' | 'buildno';
  read?(context: CommandContext): string | Promise<string>;
}[] = [
  { flag: 'apihost', label: 'whisk API host', tabs: '\t\t', read: ({ settings }) => settings.apiHost },
  { flag: 'auth', label: 'whisk auth', tabs: '\t\t', read: ({ settings }) => settings.auth },
  { flag: 'namespace', label: 'whisk namespace', tabs: '\t\t', read: namespaceName },
  { flag: 'cert', label: 'client cert', tabs: '\t\t', read: ({ settings }) => settings.cert },
  { flag: 'key', label: 'Client key', tabs: '\t\t', read: ({ settings }) => settings.key },
  { flag: 'apiversion', label: 'whisk API version', tabs: '\t', read: ({ settings }) => settings.apiVersion },
  { flag: 'cliversion', label: 'whisk CLI version', tabs: '\t', read: cliVersion },
  { flag: 'apibuild', label: 'whisk API build', tabs: '\t\t', fromServer: 'build' },
  { flag: 'apibuildno', label: 'whisk API build number', tabs: '\t', fromServer: 'buildno' },
];

async function namespaceName(context: CommandContext): Promise<string> {
  try {
    return asText(asList(await context.client.namespaces())[0]) || '_';
  } catch (error) {
    if (error instanceof WskError) return '_'; // no server or no key: the name for "my own namespace"
    throw error;
  }
}

async function get(context: CommandContext): Promise<void> {
  const { flags } = context;
  const format = flags.text('output');
  if (format !== 'std' && format !== 'raw') throw new WskError('Supported output format are std|raw');
  const all = flags.bool('all') || !readable.some(({ flag }) => flags.bool(flag));
  if (all && format === 'raw') throw new WskError('--output|-o raw only supported with specific property type');
  const chosen = readable.filter(({ flag }) => all || flags.bool(flag));
  let build: { info: JsonMap; error?: unknown } | undefined;
  for (const property of chosen) {
    let value: string;
    if (property.fromServer) {
      build ??= await buildInfo(context);
      value = asText(build.info.get(property.fromServer));
    } else {
      value = (await property.read?.(context)) ?? '';
    }
    stdout.print(`${format === 'raw' ? '' : `${property.label}${property.tabs}`}${stdout.bold(value)}\n`);
  }
  if (build?.error) throw wrapError(build.error, 'Unable to obtain API build information');
}

async function buildInfo(context: CommandContext): Promise<{ info: JsonMap; error?: unknown }> {
  try {
    // The certificate is checked before the host, as in OpenWhisk's client.
    validTls(context.settings);
    return { info: asMap(await context.client.info()) };
  } catch (error) {
    return { info: new Map(Object.entries({ build: 'Unknown', buildno: 'Unknown' })), error };
  }
}

const getFlags: FlagSpec[] = [
  { name: 'all', type: 'bool', help: 'all properties' },
  { name: 'apibuild', type: 'bool', help: 'whisk API build version' },
  { name: 'apibuildno', type: 'bool', help: 'whisk API build number' },
  { name: 'cliversion', type: 'bool', help: 'whisk CLI version' },
  { name: 'namespace', type: 'bool', help: 'whisk namespace' },
  { name: 'output', short: 'o', type: 'string', default: 'std', help: 'Output format in std|raw' },
];

const switches: FlagSpec[] = settable.map(({ flag, label }) => ({
  name: flag,
  type: 'bool',
  help: helpOf[flag] ?? label,
}));

/** Flags whose properties are local: printing or setting one of them needs no server. */
const localOnly = ['auth', 'cert', 'key', 'apihost', 'apiversion', 'cliversion'];
const getNeedsServer = (flags: Flags): boolean => !localOnly.some((flag) => flags.bool(flag));

/** `wsk property`. */
export const propertyCommands: Command[] = [
  {
    name: 'set',
    summary: 'set property',
    flags: settable.map(({ flag, label, value }) => ({
      name: flag,
      ...(flag === 'auth' ? { short: 'u' } : {}),
      type: 'string',
      help: value === 'string' ? (helpOf[flag] ?? label) : `${flag === 'auth' ? 'authorization' : label} ${value}`,
    })),
    needsServer: (flags) => !['apihost', 'apiversion', 'auth'].some((flag) => flags.text(flag) !== ''),
    run: set,
  },
  { name: 'unset', summary: 'unset property', flags: switches, needsServer: () => false, run: unset },
  { name: 'get', summary: 'get property', flags: [...getFlags, ...switches], needsServer: getNeedsServer, run: get },
];

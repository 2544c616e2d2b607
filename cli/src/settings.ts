// Address and credentials of the CLI: flags, environment, the properties file, and a standalone server's own key.
import { readFileSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import type { Flags } from './args/flags.js';
import { messageOf, WskError } from './errors.js';

/** Address and credentials of the CLI. */
export interface Settings {
  apiHost: string;
  apiVersion: string;
  /** `uuid:key`, or empty. */
  auth: string;
  /** File names of a client certificate and its key, or empty. */
  cert: string;
  key: string;
  insecure: boolean;
  /** Token for the API gateway's management, and the tenant if it differs from the key's uuid. */
  gatewayToken: string;
  gatewayTenant: string;
}

/** The version in paths if the properties name none. */
export const defaultApiVersion = 'v1';

/** The properties file: WSK_CONFIG_FILE, even when empty, else ~/.wskprops. */
export function propertiesFile(environment: NodeJS.ProcessEnv = process.env): string {
  return environment['WSK_CONFIG_FILE'] ?? join(homedir(), '.wskprops');
}

/** Reads KEY=value lines; `#` starts a comment and other lines are ignored. A missing file is empty. */
export function readProperties(file: string): Map<string, string> {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch {
    return new Map(); // wsk uses its defaults after any error
  }
  const lines = text.split('\n').map((line) => line.replace(/#.*/, '').trim().split('='));
  return new Map(
    lines.flatMap(([key = '', value, ...more]) => (value === undefined || more.length > 0 ? [] : [[key, value]])),
  );
}

/** @throws WskError if the file cannot be written. */
export function writeProperties(file: string, properties: Map<string, string>): void {
  try {
    writeFileSync(file, [...properties].map(([key, value]) => `${key.toUpperCase()}=${value}\n`).join(''), {
      mode: 0o600,
    });
  } catch (error) {
    throw new WskError(`Whisk properties file write failure: ${messageOf(error)}`);
  }
}

/** Flags take precedence over environment variables, these over the properties file, and the file over the defaults. */
export function loadSettings(flags: Flags, given: (name: string) => string, file = propertiesFile()): Settings {
  const properties = readProperties(file);
  const choose = (flag: string, variable: string | undefined, property: string, fallback = ''): string =>
    given(flag) || (variable && process.env[variable]) || (properties.get(property) ?? fallback);
  return {
    apiHost: choose('apihost', 'WHISK_APIHOST', 'APIHOST').replace(/\/+$/, ''),
    apiVersion: choose('apiversion', 'WHISK_APIVERSION', 'APIVERSION', defaultApiVersion),
    auth: choose('auth', 'WHISK_AUTH', 'AUTH'),
    cert: choose('cert', undefined, 'CERT'),
    key: choose('key', undefined, 'KEY'),
    insecure: flags.bool('insecure'),
    gatewayToken: properties.get('APIGW_ACCESS_TOKEN') ?? '',
    gatewayTenant: properties.get('APIGW_TENANT_ID') ?? '',
  };
}

/** The folder of a standalone server's state, found by the server's own rules. */
export function dataFolderOf(environment: NodeJS.ProcessEnv): string {
  return environment['GPUWHISK_DATA_DIR'] ?? '.gpuwhisk';
}

/**
 * The operator's `uuid:secret` that a standalone server keeps in its data folder. Throws the system's error (ENOENT).
 */
export function readOperatorKey(folder: string): string {
  return readFileSync(join(folder, 'operator.key'), 'utf8').trim();
}

/** Whether an API host, with or without its scheme and port, is the loopback address of this machine. */
export function isLoopback(apiHost: string): boolean {
  const url = /^https?:\/\//.test(apiHost) ? apiHost : `http://${apiHost}`;
  if (!URL.canParse(url)) return false;
  return /^(localhost|127(\.\d+){3}|\[::1\])$/.test(new URL(url).hostname);
}

/** The CLI's version, from its package.json. */
export function cliVersion(): string {
  const text = readFileSync(new URL('../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}

const goArchitectures: Record<string, string> = { x64: 'amd64', ia32: '386' };

/** The User-Agent that wsk sends; operating system and processor have Go's names. */
export function userAgent(): string {
  const os = process.platform === 'win32' ? 'windows' : process.platform;
  return `OpenWhisk-CLI/1.0 (${cliVersion()}) ${os} ${goArchitectures[process.arch] ?? process.arch}`;
}

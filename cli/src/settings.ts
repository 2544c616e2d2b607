import { readFileSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import type { Flags } from './args/flags.js';
import { messageOf, WskError } from './errors.js';

/** Where the CLI connects to, and as whom. */
export interface Settings {
  apiHost: string;
  apiVersion: string;
  /** `uuid:key`, or empty. */
  auth: string;
  /** File names of a client certificate and its key, or empty. */
  cert: string;
  key: string;
  insecure: boolean;
  /** What the API gateway's management is told: its token, and the tenant where that is not the key's uuid. */
  gatewayToken: string;
  gatewayTenant: string;
}

/** The version in paths where the properties name none. */
export const defaultApiVersion = 'v1';

/** The properties file: WSK_CONFIG_FILE, even when empty, else ~/.wskprops. */
export function propertiesFile(environment: NodeJS.ProcessEnv = process.env): string {
  return environment['WSK_CONFIG_FILE'] ?? join(homedir(), '.wskprops');
}

/** Reads KEY=value lines; `#` starts a comment and lines of another form do not count. A missing file is empty. */
export function readProperties(file: string): Map<string, string> {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch {
    return new Map(); // wsk falls back to its defaults whatever the reason
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

/** Flags win over environment variables, those over the properties file, that over the defaults. */
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

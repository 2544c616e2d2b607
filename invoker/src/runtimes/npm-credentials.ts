// The operator's tokens and passwords of npm's registries, which npm itself does not list.
import { readFile } from 'node:fs/promises';

/** Names of npm's settings that tell who asks a registry: its address without the protocol, and what is told. */
const credential = /^\/\/\S+:(?:_authToken|_auth|username|_password)$/;
const variable = /^npm_config_(\/\/.*)$/i;

/**
 * Tokens and passwords for the given registries, by npm's name of the setting: from npm's files, a later one over an earlier one,
 * and from `npm_config_` variables of `env`, which come first. Those of other registries are left out. Rejects if a file that is
 * there cannot be read.
 */
export async function registryCredentials(
  registries: readonly string[],
  files: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for (const file of files) for (const [name, value] of credentialsIn(await textOf(file), env)) found.set(name, value);
  for (const [name, value] of Object.entries(env)) {
    const key = variable.exec(name)?.[1];
    if (key !== undefined && value && credential.test(key)) found.set(key, value);
  }
  const addresses = registries.flatMap(addressOf);
  for (const name of found.keys()) {
    const place = name.slice(0, name.lastIndexOf(':'));
    if (!addresses.some((address) => address.startsWith(place))) found.delete(name);
  }
  return found;
}

/** The tokens and passwords that an npmrc has; a name in braces, `${NAME}`, is a variable of `env`. */
export function credentialsIn(text: string, env: Readonly<Record<string, string | undefined>>): [string, string][] {
  return text.split('\n').flatMap((line): [string, string][] => {
    const at = line.indexOf('=');
    const name = expanded(line.slice(0, Math.max(at, 0)).trim(), env);
    const value = expanded(unquoted(line.slice(at + 1).trim()), env);
    return credential.test(name) && value !== '' ? [[name, value]] : [];
  });
}

/** A value of an npmrc: quoted, or up to a comment. */
function unquoted(value: string): string {
  const quoted = /^(["'])(.*)\1$/.exec(value);
  return quoted === null ? value.replace(/\s*[;#].*$/, '') : (quoted[2] ?? '');
}

/** npm leaves the name of a variable that is not there, and with a question mark nothing. */
function expanded(text: string, env: Readonly<Record<string, string | undefined>>): string {
  return text.replace(
    /\$\{([^${}?]+)(\?)?\}/g,
    (whole, name: string, optional) => env[name] ?? (optional ? '' : whole),
  );
}

async function textOf(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return '';
    throw error;
  }
}

/** `//host:port/path/` of a registry; none if the address is invalid, which npm tells. */
function addressOf(registry: string): string[] {
  if (!URL.canParse(registry)) return [];
  const { host, pathname } = new URL(registry);
  return [`//${host}${pathname.endsWith('/') ? pathname : `${pathname}/`}`];
}

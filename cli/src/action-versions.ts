// `gpuwhisk action`: the versions of an action, and the return to one of them.
import { parseArgs } from 'node:util';
import { globalFlags, parseFlags } from './args/flags.js';
import { parseQualifiedName } from './args/qualified-name.js';
import { createClient } from './client/client.js';
import { encodePath } from './client/transport.js';
import { messageOf } from './errors.js';
import { asList, asMap, asNumber, asText } from './json/json.js';
import type { JsonMap } from './json/json.js';
import { UsageError } from './migrate/run.js';
import { printable } from './printable.js';
import { loadSettings } from './settings.js';

const actionHelp = `usage: gpuwhisk action versions NAME
       gpuwhisk action rollback NAME [--version V [--updated TIME]]

versions  lists the present version of an action and up to ten before it, the newest first
rollback  makes an earlier version (V, else the one before the present one) the present one, under a new number;
          TIME, as 'versions' prints it, tells versions with one number apart

NAME is ACTION, PACKAGE/ACTION or /NAMESPACE/PACKAGE/ACTION. Code, parameters, limits and annotations return together.

  --apihost HOST  the platform (default: WHISK_APIHOST, then ~/.wskprops)
  --auth KEY      the key of the namespace (default: WHISK_AUTH, then ~/.wskprops)
  --insecure      do not check the platform's certificate
`;

const options = {
  apihost: { type: 'string' },
  auth: { type: 'string' },
  insecure: { type: 'boolean' },
  version: { type: 'string' },
  updated: { type: 'string' },
  help: { type: 'boolean', short: 'h' },
} as const;

/** Runs `gpuwhisk action` and returns its exit code. Throws UsageError and WskError. */
export async function runAction(words: readonly string[]): Promise<number> {
  const { values, positionals } = parse(words);
  if (values.help === true) {
    process.stdout.write(actionHelp);
    return 0;
  }
  const [verb, name, ...more] = positionals;
  if (verb !== 'versions' && verb !== 'rollback') throw new UsageError("'versions' or 'rollback' is needed");
  if (name === undefined || more.length > 0) throw new UsageError('one NAME is needed');
  const { flags } = parseFlags(values.insecure === true ? ['--insecure'] : [], globalFlags);
  const settings = loadSettings(flags, (flag) => (flag === 'auth' || flag === 'apihost' ? values[flag] : '') ?? '');
  const { namespace, path } = parseQualifiedName(name);
  const client = createClient(settings, 'off');
  const route = `versions/${encodePath(path)}`;
  if (verb === 'versions') {
    if (values.version !== undefined) throw new UsageError("'--version' belongs to 'rollback'");
    if (values.updated !== undefined) throw new UsageError("'--updated' belongs to 'rollback'");
    const versions = asList(await client.get(namespace, route)).map((one, at) => lineOf(asMap(one), at === 0));
    process.stdout.write(printable(versions.join('')));
    return 0;
  }
  const query = new URLSearchParams();
  if (values.version !== undefined) query.set('version', values.version);
  if (values.updated !== undefined) query.set('updated', String(timeOf(values.updated)));
  const restored = asMap(await client.post(namespace, `${route}?${query}`));
  console.log(`ok: rolled back action ${path}, which has version ${asText(restored.get('version'))} now`);
  return 0;
}

/** Epoch ms of a time as `versions` prints it. Throws UsageError. */
function timeOf(text: string): number {
  const time = Date.parse(text);
  if (Number.isNaN(time)) throw new UsageError(`'${text}' is no time such as 2026-01-31T12:00:00.000Z`);
  return time;
}

function lineOf(version: JsonMap, isPresent: boolean): string {
  const time = new Date(asNumber(version.get('updated'))).toISOString();
  const kind = asText(asMap(version.get('exec')).get('kind'));
  return `${asText(version.get('version')).padEnd(12)}${time}  ${kind}${isPresent ? '  present' : ''}\n`;
}

function parse(words: readonly string[]) {
  try {
    return parseArgs({ args: [...words], options, allowPositionals: true });
  } catch (error) {
    throw new UsageError(messageOf(error));
  }
}

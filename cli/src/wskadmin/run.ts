import { WskError } from '../errors.js';
import { printable } from '../printable.js';
import {
  dataFolderOf,
  defaultApiVersion,
  isLoopback,
  propertiesFile,
  readOperatorKey,
  readProperties,
  type Settings,
} from '../settings.js';
import {
  createAdminClient,
  exitCodes,
  parseGiven,
  takeOptions,
  UsageError,
  usageOf,
  type AdminCommand,
  type OptionSpec,
} from './command.js';
import { limitsCommands, userCommands } from './user-commands.js';
import { dataCommands, refusedCommands, retireCommands } from './platform-commands.js';

const commands: readonly AdminCommand[] = [
  ...userCommands,
  ...limitsCommands,
  ...dataCommands,
  ...refusedCommands,
  ...retireCommands,
];

const globalOptions: readonly OptionSpec[] = [
  { names: ['--apihost'], type: 'text', help: 'the platform, such as http://localhost:3233' },
  { names: ['--auth'], type: 'text', help: "an operator's key, uuid:key" },
  { names: ['--insecure', '-i'], type: 'flag', help: 'bypass certificate checking' },
  { names: ['--help', '-h'], type: 'flag', help: 'this text' },
];

const summary = `usage: wskadmin [--apihost HOST] [--auth UUID:KEY] [-i] COMMAND ...

${commands.map(({ words, help }) => `  ${words.join(' ').padEnd(20)}${help}`).join('\n')}

Host and key come from these flags, else from WHISK_APIHOST and WHISK_ADMIN_AUTH, else from APIHOST and ADMIN_AUTH of
~/.wskprops. The key must be an operator's. For a host on this machine it may be left out where a standalone server's data
folder, .gpuwhisk here or GPUWHISK_DATA_DIR, has it.`;

function settingsFrom(values: Map<string, unknown>, environment: NodeJS.ProcessEnv): Settings {
  const properties = readProperties(propertiesFile(environment));
  const text = (name: string): string | undefined => {
    const value = values.get(name);
    return typeof value === 'string' ? value : undefined;
  };
  const apiHost = text('apihost') ?? environment['WHISK_APIHOST'] ?? properties.get('APIHOST') ?? '';
  const given = text('auth') ?? environment['WHISK_ADMIN_AUTH'] ?? properties.get('ADMIN_AUTH');
  return {
    apiHost: apiHost.replace(/\/+$/, ''),
    apiVersion: defaultApiVersion,
    auth: given ?? localOperatorKey(apiHost, environment) ?? properties.get('AUTH') ?? '',
    cert: properties.get('CERT') ?? '',
    key: properties.get('KEY') ?? '',
    insecure: values.get('insecure') === true,
    gatewayToken: '',
    gatewayTenant: '',
  };
}

/**
 * The operator's key that this machine's standalone server keeps, if the request goes to this machine and the key is
 * readable.
 */
function localOperatorKey(apiHost: string, environment: NodeJS.ProcessEnv): string | undefined {
  if (!isLoopback(apiHost)) return undefined;
  try {
    return readOperatorKey(dataFolderOf(environment));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).syscall === undefined) throw error;
    return undefined;
  }
}

/** Runs one command line, without the leading `node wskadmin`, and returns its exit code. */
export async function runAdmin(commandLine: readonly string[], environment: NodeJS.ProcessEnv): Promise<number> {
  const print = (line: string): void => void process.stdout.write(`${printable(line)}\n`);
  let usage = summary;
  try {
    const words = [...commandLine];
    const values = takeOptions(words, globalOptions, () => false);
    if (values.has('help')) {
      print(summary);
      return exitCodes.done;
    }
    const [first = '', second = '', ...rest] = words;
    const command = commands.find((one) => one.words[0] === first && one.words[1] === second);
    if (command === undefined) throw new UsageError(`invalid choice: '${words.slice(0, 2).join(' ')}'`);
    usage = usageOf(command);
    if (rest.includes('--help') || rest.includes('-h')) {
      print([usage, '', command.help, ...command.options.map(describe)].join('\n'));
      return exitCodes.done;
    }
    const given = parseGiven(rest, command);
    return await command.run({ given, client: createAdminClient(settingsFrom(values, environment)), print });
  } catch (error) {
    if (error instanceof UsageError) {
      process.stderr.write(`${usage}\nwskadmin: error: ${printable(error.message)}\n`);
      return exitCodes.usage;
    }
    if (!(error instanceof WskError)) throw error;
    process.stderr.write(`wskadmin: error: ${printable(error.message)}\n`);
    return exitCodes.usage;
  }
}

function describe({ names, help }: OptionSpec): string {
  return `  ${names.join(', ').padEnd(28)}${help}`;
}

import type { Flags } from './args/flags.js';
import type { Pairs } from './args/parameters.js';
import type { Client } from './client/client.js';
import { argumentError } from './errors.js';
import type { Settings } from './settings.js';
import { globalFlags, helpFlag, versionFlag, type FlagSpec } from './args/flags.js';

/** Arguments and services of a running command. */
export interface CommandContext {
  args: string[];
  flags: Flags;
  pairs: Pairs;
  settings: Settings;
  /** Throws WskError if no valid API host is configured; commands that need no server do not read this member. */
  client: Client;
  /** A client for other settings than the command line's own. */
  clientFor(settings: Settings): Client;
}

/** One command, such as `action create`. */
export interface Command {
  name: string;
  /** The arguments as the usage line shows them: `ACTION_NAME [ACTION]`. */
  argsUsage?: string;
  summary: string;
  flags: FlagSpec[];
  /** False if the command, with these flags, works without an API host. Default: it needs one. */
  needsServer?(flags: Flags, args: string[]): boolean;
  run(context: CommandContext): Promise<void>;
}

/** A word after `wsk`: a command, or a group of commands, loaded when it is called. */
export interface CommandEntry {
  name: string;
  summary: string;
  /** Flags of all commands of a group, for its help. */
  flags?: FlagSpec[];
  load(): Promise<Command | Command[]>;
}

/** @throws WskError unless there are `least` to `most` arguments; `required` is the message for missing ones. */
export function checkArgs(args: string[], least: number, most: number, required: string): void {
  if (args.length < least) throw argumentError(`Invalid argument(s). ${required}`);
  if (args.length > most) throw argumentError(`Invalid argument(s): ${args.slice(most).join(', ')}. ${required}`);
}

const sortHelp =
  'sorts a list alphabetically by entity name; only applicable within the limit/skip returned entity block';

/** `-n`, of commands that list entities. */
export const nameSortFlag: FlagSpec = { name: 'name-sort', short: 'n', type: 'bool', help: sortHelp };

/** `-s` and `-l`, of commands that list `entities`. */
export function pageFlags(entities: string, limitNote = ''): FlagSpec[] {
  return [
    { name: 'skip', short: 's', type: 'int', help: `exclude the first \`SKIP\` number of ${entities} from the result` },
    {
      name: 'limit',
      short: 'l',
      type: 'int',
      default: 30,
      help: `only return \`LIMIT\` number of ${entities} from the collection${limitNote}`,
    },
  ];
}

/** `-p` and `-P`, of commands that take parameters. */
export const parameterFlags: FlagSpec[] = [
  { name: 'param', short: 'p', type: 'pair', help: 'parameter values in `KEY VALUE` format' },
  { name: 'param-file', short: 'P', type: 'string', help: '`FILE` containing parameter values in JSON format' },
];

/** `-a` and `-A`, of commands that take annotations. */
export const annotationFlags: FlagSpec[] = [
  { name: 'annotation', short: 'a', type: 'pair', help: 'annotation values in `KEY VALUE` format' },
  { name: 'annotation-file', short: 'A', type: 'string', help: '`FILE` containing annotation values in JSON format' },
];

/** Flags of all commands of `wsk project`. */
export const projectFlags: FlagSpec[] = [
  { name: 'config', type: 'string', help: 'config file (default is $HOME/.wskprops)', ofGroup: true },
  { name: 'deployment', type: 'string', help: 'path to deployment file', ofGroup: true },
  { name: 'manifest', type: 'string', help: 'path to manifest file', ofGroup: true },
  { name: 'namespace', short: 'n', type: 'string', help: 'namespace', ofGroup: true },
  { name: 'param', type: 'pair', help: 'parameter values in `KEY VALUE` format', ofGroup: true },
  { name: 'param-file', type: 'string', help: '`FILE` containing parameter values in JSON format', ofGroup: true },
  { name: 'preview', type: 'bool', help: 'show deployment/undeployment plan', ofGroup: true },
  { name: 'project', type: 'string', default: '.', help: 'path to serverless project', ofGroup: true },
  { name: 'projectname', type: 'string', help: 'project name', ofGroup: true },
  { name: 'strict', type: 'bool', help: 'allow user defined runtime version', ofGroup: true },
];

const title = 'gpuwhisk: OpenWhisk cloud computing command line interface.';

const helpEntry = { name: 'help', summary: 'Help about any command' };

/** Help for `wsk` itself. */
export function rootHelp(table: CommandEntry[]): string {
  return `${title}\n${rootUsage(table)}`;
}

/** The part of the root's help that is also shown after a wrong topic. */
export function rootUsage(table: CommandEntry[]): string {
  const flags = [...globalFlags, helpFlag('wsk'), versionFlag];
  return `Usage:\n  wsk [command]\n\n${listCommands([...table, helpEntry])}\nFlags:\n${listFlags(flags)}\n${more('wsk')}`;
}

/** Help for a group of commands, such as `wsk action`. */
export function groupHelp(entry: CommandEntry, commands: Command[]): string {
  const path = `wsk ${entry.name}`;
  const own = `Flags:\n${listFlags([...(entry.flags ?? []), helpFlag(entry.name)])}`;
  const globals = `Global Flags:\n${listFlags(globalFlags)}`;
  return `${entry.summary}\nUsage:\n  ${path} [command]\n\n${listCommands(commands)}\n${own}\n${globals}\n${more(path)}`;
}

/** Help for one command; `path` is the words that select it. */
export function commandHelp(path: string, command: Command): string {
  return `${command.summary}\n${commandUsage(path, command)}`;
}

/** Usage line of a command, without its description. */
export function commandUsage(path: string, command: Command): string {
  const usage = [path, command.argsUsage, '[flags]'].filter(Boolean).join(' ');
  const globals = globalFlags.filter((flag) => !command.flags.some(({ name }) => name === flag.name));
  const own = command.flags.filter(({ ofGroup }) => !ofGroup);
  const ofGroup = command.flags.filter((flag) => flag.ofGroup);
  const flags = listFlags([...own, helpFlag(command.name)]);
  return `Usage:\n  ${usage}\n\nFlags:\n${flags}\nGlobal Flags:\n${listFlags([...globals, ...ofGroup])}`;
}

function more(path: string): string {
  return `Use "${path} [command] --help" for more information about a command.\n`;
}

function listCommands(commands: { name: string; summary: string }[]): string {
  const sorted = [...commands].sort((a, b) => (a.name < b.name ? -1 : 1));
  const width = Math.max(11, ...sorted.map(({ name }) => name.length + 1));
  return `Available Commands:\n${sorted.map(({ name, summary }) => `  ${name.padEnd(width)} ${summary}\n`).join('')}`;
}

const typeNames: Record<FlagSpec['type'], string> = {
  bool: '',
  string: 'string',
  int: 'int',
  strings: 'stringArray',
  pair: 'strings',
};

function listFlags(flags: FlagSpec[]): string {
  const sorted = [...flags].sort((a, b) => (a.name < b.name ? -1 : 1));
  const rows = sorted.map((flag) => {
    const valueName = /`(.*?)`/.exec(flag.help)?.[1] ?? typeNames[flag.type];
    const left = `  ${flag.short ? `-${flag.short}, ` : '    '}--${flag.name}${valueName ? ` ${valueName}` : ''}`;
    return { left, right: `${flag.help.replace(/`/g, '')}${defaultNote(flag)}` };
  });
  const width = Math.max(...rows.map(({ left }) => left.length)) + 3;
  return rows.map(({ left, right }) => `${left.padEnd(width)}${right}\n`).join('');
}

function defaultNote(flag: FlagSpec): string {
  if (flag.default === undefined) return '';
  return ` (default ${typeof flag.default === 'string' ? `"${flag.default}"` : flag.default})`;
}

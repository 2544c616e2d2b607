import { globalFlags, helpFlag, versionFlag, type FlagSpec } from './args/flags.js';
import type { Command, CommandEntry } from './command.js';

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

/** Help for one command; `path` is the words that call it. */
export function commandHelp(path: string, command: Command): string {
  return `${command.summary}\n${commandUsage(path, command)}`;
}

/** How a command is called, without what it is for. */
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

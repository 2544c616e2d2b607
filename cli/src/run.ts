import { FlagError, globalFlags, helpFlag, parseFlags, versionFlag, withGlobals, type Flags } from './args/flags.js';
import { commandWords, distance, without } from './args/words.js';
import { takePairs, type Pairs } from './args/pairs.js';
import type { Client } from './client/client.js';
import type { TraceLevel } from './client/trace.js';
import type { Command, CommandEntry } from './commands/command.js';
import { commandTable } from './commands/table.js';
import { WskError, wrapError } from './errors.js';
import { commandHelp, groupHelp, rootHelp, rootUsage } from './help.js';
import { loadSettings, type Settings } from './settings.js';
import { printError, stderr, stdout } from './terminal.js';
import { cliVersion } from './version.js';

/** Runs one command line, without the leading `node wsk`, and returns its exit code. */
export async function run(commandLine: string[]): Promise<number> {
  try {
    const { words, pairs } = pairsOf(commandLine);
    await dispatch(words, pairs);
    return 0;
  } catch (error) {
    return report(error);
  }
}

function report(error: unknown): number {
  if (error instanceof FlagError) {
    stderr.print(`${error.message}\n`);
    return 1;
  }
  if (!(error instanceof WskError)) throw error;
  if (error.showMessage && !error.showPrefix) stderr.print(`${error.message}\n`);
  else if (error.showMessage) printError(error.message);
  if (error.showUsage) stderr.print("Run 'wsk --help' for usage.\n");
  return error.exitCode & 0xff;
}

function pairsOf(commandLine: string[]): ReturnType<typeof takePairs> {
  try {
    return takePairs(commandLine);
  } catch (error) {
    throw wrapError(error, 'Failed to parse arguments');
  }
}

async function dispatch(words: string[], pairs: Pairs): Promise<void> {
  const [first] = commandWords(words);
  if (first === undefined) return runRoot(words);
  if (first === 'help') return runHelp(words);
  const entry = commandTable.find(({ name }) => name === first);
  if (!entry) throw unknownCommand(first);
  const rest = without(words, first);
  const loaded = await entry.load();
  if (!Array.isArray(loaded)) return runCommand(`wsk ${first}`, loaded, rest, pairs);
  const [second] = commandWords(rest);
  const command = loaded.find(({ name }) => name === second);
  if (!command || second === undefined) return runGroup(entry, loaded, rest);
  return runCommand(`wsk ${first} ${second}`, command, without(rest, second), pairs);
}

function runRoot(words: string[]): void {
  const { flags } = asRootError(() => parseFlags(words, [...globalFlags, helpFlag('wsk'), versionFlag]));
  stdout.print(flags.bool('version') ? `wsk version ${cliVersion()}\n` : rootHelp(commandTable));
}

async function runHelp(words: string[]): Promise<void> {
  const [, ...topic] = commandWords(words);
  const [first, second] = topic;
  if (first === undefined || first === 'help') return stdout.print(rootHelp(commandTable));
  const entry = commandTable.find(({ name }) => name === first);
  if (!entry)
    return stderr.print(
      `Unknown help topic [${topic.map((word) => `\`${word}\``).join(' ')}]\n${rootUsage(commandTable)}`,
    );
  const loaded = await entry.load();
  if (!Array.isArray(loaded)) return stdout.print(commandHelp(`wsk ${first}`, loaded));
  const command = loaded.find(({ name }) => name === second);
  stdout.print(command ? commandHelp(`wsk ${first} ${second}`, command) : groupHelp(entry, loaded));
}

function runGroup(entry: CommandEntry, commands: Command[], words: string[]): void {
  asRootError(() => parseFlags(words, [...globalFlags, helpFlag(entry.name)]));
  stdout.print(groupHelp(entry, commands));
}

/** Mistakes above the level of a command are printed twice by wsk: with and without `Error: `. */
function asRootError<T>(parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    if (error instanceof FlagError) stderr.print(`Error: ${error.message}\n`);
    throw error;
  }
}

function unknownCommand(word: string): FlagError {
  const near = commandTable.filter(({ name }) => name.startsWith(word) || distance(name, word) <= 2);
  const hint = near.length > 0 ? `\n\nDid you mean this?\n${near.map(({ name }) => `\t${name}\n`).join('')}` : '';
  const message = `unknown command "${word}" for "wsk"${hint}`;
  stderr.print(`Error: ${message}\nRun 'wsk --help' for usage.\n`);
  return new FlagError(message);
}

async function runCommand(path: string, command: Command, words: string[], pairs: Pairs): Promise<void> {
  const specs = withGlobals(command.flags);
  const { flags, args } = parseFlags(words, [...specs, helpFlag(command.name)]);
  if (flags.bool('help')) return stdout.print(commandHelp(path, command));
  const isText = (name: string): boolean => specs.some((spec) => spec.name === name && spec.type === 'string');
  const settings = loadSettings(flags, (name) => (isText(name) ? flags.text(name) : ''));
  const { createClient } = await import('./client/client.js');
  let client: Client | undefined;
  const connect = (): Client => (client ??= createClient(settings, traceLevel(flags)));
  if (command.needsServer?.(flags, args) ?? true) connect(); // a wrong host is reported before wrong arguments
  const context = {
    args,
    flags,
    pairs,
    settings,
    clientFor: (other: Settings) => createClient(other, traceLevel(flags)),
    get client() {
      return connect();
    },
  };
  await command.run(context);
}

function traceLevel(flags: Flags): TraceLevel {
  if (flags.bool('debug') || process.env['WSK_CLI_DEBUG']) return 'debug';
  return flags.bool('verbose') ? 'verbose' : 'off';
}

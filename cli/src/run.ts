import {
  FlagError,
  globalFlags,
  helpFlag,
  parseFlags,
  versionFlag,
  withGlobals,
  type Flags,
  type FlagSpec,
} from './args/flags.js';
import { takePairs, type Pairs } from './args/parameters.js';
import type { Client, TraceLevel } from './client/client.js';
import type { Command, CommandEntry } from './command.js';
import { commandTable } from './commands/table.js';
import { wrapError, WskError } from './errors.js';
import { commandHelp, groupHelp, rootHelp, rootUsage } from './command.js';
import { cliVersion, loadSettings, type Settings } from './settings.js';
import { printError, stderr, stdout } from './terminal.js';

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
  const rest = withoutWord(words, first);
  const loaded = await entry.load();
  if (!Array.isArray(loaded)) return runCommand(`wsk ${first}`, loaded, rest, pairs);
  const [second] = commandWords(rest);
  const command = loaded.find(({ name }) => name === second);
  if (!command || second === undefined) return runGroup(entry, loaded, rest);
  return runCommand(`wsk ${first} ${second}`, command, withoutWord(rest, second), pairs);
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

/**
 * Prints a FlagError with `Error: ` and rethrows it: wsk prints mistakes outside commands twice, with and without
 * `Error: `.
 */
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

/** The words that are neither flags nor their values, as far as that is known before the command is. */
function commandWords(words: string[]): string[] {
  const found: string[] = [];
  for (let index = 0; index < words.length; index++) {
    const word = words[index] ?? '';
    if (word === '--') break;
    if (takesNextWord(word)) index++;
    else if (word !== '' && !word.startsWith('-')) found.push(word);
  }
  return found;
}

function takesNextWord(word: string): boolean {
  const isSwitch = (test: (flag: FlagSpec) => boolean): boolean =>
    [...globalFlags, helpFlag(''), versionFlag].some((flag) => flag.type === 'bool' && test(flag));
  if (word.startsWith('--')) return !word.includes('=') && !isSwitch(({ name }) => name === word.slice(2));
  return /^-[^-]$/.test(word) && !isSwitch(({ short }) => short === word[1]);
}

/** `words` without the first occurrence of `taken` that is not a flag's value. */
function withoutWord(words: string[], taken: string): string[] {
  for (let index = 0; index < words.length; index++) {
    const word = words[index] ?? '';
    if (takesNextWord(word)) index++;
    else if (word === taken) return [...words.slice(0, index), ...words.slice(index + 1)];
  }
  return words;
}

/** Number of letters to add, drop or change that turns one word into the other (Levenshtein). */
function distance(a: string, b: string): number {
  let row = [...b, ''].map((_, index) => index);
  [...a].forEach((letter, index) => {
    const next = [index + 1];
    [...b].forEach((other, column) => {
      const changed = (row[column] ?? 0) + (letter === other ? 0 : 1);
      next.push(Math.min(changed, (row[column + 1] ?? 0) + 1, (next[column] ?? 0) + 1));
    });
    row = next;
  });
  return row[b.length] ?? 0;
}

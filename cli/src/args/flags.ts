import { messageOf } from '../errors.js';

/**
 * One flag of a command. A word in backquotes in `help` names the flag's value in the help text. Flags of type `pair`
 * (`-p KEY VALUE`) take two words. parameters.ts takes them out of the command line before this parser runs.
 */
export interface FlagSpec {
  name: string;
  short?: string;
  type: 'bool' | 'string' | 'int' | 'strings' | 'pair';
  default?: string | number;
  help: string;
  /** All commands of the group have the flag, so help lists it with the flags that every command has. */
  ofGroup?: boolean;
}

/** A mistake in the flags; wsk prints its message bare, with exit code 1. */
export class FlagError extends Error {}

/** The flags of one command line. Asking for a flag that the command does not declare is a programming error. */
export interface Flags {
  bool(name: string): boolean;
  text(name: string): string;
  int(name: string): number;
  texts(name: string): string[];
  /** Whether the flag was on the command line. */
  given(name: string): boolean;
}

type FlagValue = boolean | string | number | string[];

/** Flags that every command understands. */
export const globalFlags: FlagSpec[] = [
  { name: 'apihost', type: 'string', help: 'whisk API `HOST`' },
  { name: 'apiversion', type: 'string', help: 'whisk API `VERSION`' },
  { name: 'auth', short: 'u', type: 'string', help: 'authorization `KEY`' },
  { name: 'cert', type: 'string', help: 'client cert' },
  { name: 'debug', short: 'd', type: 'bool', help: 'debug level output' },
  { name: 'insecure', short: 'i', type: 'bool', help: 'bypass certificate checking' },
  { name: 'key', type: 'string', help: 'client key' },
  { name: 'verbose', short: 'v', type: 'bool', help: 'verbose output' },
];

/** `-h`, which every command and group has; `name` is the command or group. */
export function helpFlag(name: string): FlagSpec {
  return { name: 'help', short: 'h', type: 'bool', help: `help for ${name}` };
}

/** `wsk --version`. */
export const versionFlag: FlagSpec = { name: 'version', type: 'bool', help: "print the CLI's version" };

/** The command's own flags, then the global ones that it does not replace with one of the same name. */
export function withGlobals(own: FlagSpec[]): FlagSpec[] {
  return [...own, ...globalFlags.filter((flag) => !own.some((other) => other.name === flag.name))];
}

/**
 * Splits a command line into flags and arguments by the rules of GNU long options: `--name value`, `--name=value`, `-n
 * value`, `-nvalue`, `-abc`; flags and arguments may mix until `--`.
 * @throws FlagError for an unknown flag, a missing value or one of the wrong type.
 */
export function parseFlags(words: string[], specs: FlagSpec[]): { flags: Flags; args: string[] } {
  const values = new Map<string, FlagValue>();
  const args: string[] = [];
  const rest = [...words];

  function set(spec: FlagSpec, text: string): void {
    const label = spec.short ? `-${spec.short}, --${spec.name}` : `--${spec.name}`;
    try {
      values.set(spec.name, convert(spec, text, values.get(spec.name)));
    } catch (error) {
      throw new FlagError(`invalid argument ${JSON.stringify(text)} for "${label}" flag: ${messageOf(error)}`);
    }
  }

  function parseLong(word: string): void {
    const [name = '', inline] = splitOnce(word.slice(2), '=');
    const spec = specs.find((flag) => flag.name === name);
    if (!spec) throw new FlagError(`unknown flag: --${name}`);
    if (inline !== undefined) return set(spec, inline);
    if (spec.type === 'bool') return set(spec, 'true');
    const value = rest.shift();
    if (value === undefined) throw new FlagError(`flag needs an argument: --${name}`);
    set(spec, value);
  }

  function parseShort(letters: string): void {
    const [letter = '', ...others] = letters;
    const spec = specs.find((flag) => flag.short === letter);
    if (!spec) throw new FlagError(`unknown shorthand flag: '${letter}' in -${letters}`);
    const tail = others.join('');
    if (tail.startsWith('=')) return set(spec, tail.slice(1));
    if (spec.type === 'bool') {
      set(spec, 'true');
      if (tail !== '') parseShort(tail);
      return;
    }
    const value = tail !== '' ? tail : rest.shift();
    if (value === undefined) throw new FlagError(`flag needs an argument: '${letter}' in -${letters}`);
    set(spec, value);
  }

  for (let word = rest.shift(); word !== undefined; word = rest.shift()) {
    if (word === '--') args.push(...rest.splice(0));
    else if (word.startsWith('--')) parseLong(word);
    else if (word.startsWith('-') && word.length > 1) parseShort(word.slice(1));
    else args.push(word);
  }
  return { flags: flagsFrom(values, specs), args };
}

function flagsFrom(values: Map<string, FlagValue>, specs: FlagSpec[]): Flags {
  function lookUp<T extends FlagValue>(name: string, type: FlagSpec['type'], none: T): T {
    const spec = specs.find((flag) => flag.name === name && flag.type === type);
    if (!spec) throw new Error(`flag --${name} of type ${type} is not declared`);
    return (values.get(name) ?? spec.default ?? none) as T;
  }
  return {
    bool: (name) => lookUp<boolean>(name, 'bool', false),
    text: (name) => lookUp<string>(name, 'string', ''),
    int: (name) => lookUp<number>(name, 'int', 0),
    texts: (name) => lookUp<string[]>(name, 'strings', []),
    given: (name) => values.has(name),
  };
}

function convert(spec: FlagSpec, text: string, before: FlagValue | undefined): FlagValue {
  switch (spec.type) {
    case 'bool':
      if (/^(1|t|true)$/i.test(text)) return true;
      if (/^(0|f|false)$/i.test(text)) return false;
      throw new Error(`strconv.ParseBool: parsing ${JSON.stringify(text)}: invalid syntax`);
    case 'int':
      if (!/^[+-]?(\d+|0x[\da-f]+)$/i.test(text)) {
        throw new Error(`strconv.ParseInt: parsing ${JSON.stringify(text)}: invalid syntax`);
      }
      if (!Number.isSafeInteger(Number(text))) {
        throw new Error(`strconv.ParseInt: parsing ${JSON.stringify(text)}: value out of range`);
      }
      return Number(text);
    case 'strings':
      return [...((before as string[] | undefined) ?? []), text];
    case 'pair':
      throw new Error('a key and a value are needed, as two words');
    case 'string':
      return text;
  }
}

function splitOnce(text: string, separator: string): [string, string | undefined] {
  const at = text.indexOf(separator);
  return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + separator.length)];
}

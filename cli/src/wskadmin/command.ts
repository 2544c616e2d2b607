import { apiBase, send, tlsOptions, type HttpRequest } from '../client/transport.js';
import { messageOf } from '../errors.js';
import type { Settings } from '../settings.js';

/** Arguments and services of a running command. */
export interface CommandContext {
  given: Given;
  client: AdminClient;
  /** Prints a line. */
  print(line: string): void;
}

/** A command with its implementation, which resolves with the exit code. Throws RequestError, UsageError. */
export interface AdminCommand extends CommandSpec {
  run(context: CommandContext): Promise<number>;
}

/** Exit codes of wskadmin. */
export const exitCodes = { done: 0, failed: 1, usage: 2 } as const;

/** Awaits `request`, and on failure prints `Failed to <what> (<reason>)`. */
export async function attempt(
  print: (line: string) => void,
  what: string,
  request: () => Promise<void>,
): Promise<number> {
  try {
    await request();
    return exitCodes.done;
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    print(`Failed to ${what} (${error.message})`);
    return exitCodes.failed;
  }
}

/** A value of JSON. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** An answer other than success; `message` is the server's text, or the reason if the server did not answer. */
export class RequestError extends Error {
  constructor(
    /** HTTP status; 0 if the server did not answer. */
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

/** Requests of /api/v1/admin. All methods throw RequestError. */
export interface AdminClient {
  request(method: HttpRequest['method'], path: string, body?: Json): Promise<Json>;
}

/** A client for the operator whose key is in `settings`. Throws WskError for an invalid host or certificate. */
export function createAdminClient(settings: Settings): AdminClient {
  const base = `${apiBase(settings.apiHost)}/${settings.apiVersion}/admin/`;
  const tls = tlsOptions(settings);
  const headers = { Authorization: `Basic ${Buffer.from(settings.auth).toString('base64')}` };
  return {
    async request(method, path, body) {
      const content = body === undefined ? {} : { body: JSON.stringify(body) };
      const typed = body === undefined ? headers : { ...headers, 'Content-Type': 'application/json' };
      const response = await send({ method, url: base + path, headers: typed, ...content }, tls).catch(
        (error: unknown) => {
          throw new RequestError(0, messageOf(error));
        },
      );
      const answer = parse(response.body);
      if (response.status >= 200 && response.status < 300) return answer;
      const text = isObject(answer) && typeof answer.error === 'string' ? answer.error : response.body;
      throw new RequestError(response.status, text);
    },
  };
}

/** Whether a value is a JSON object. */
export function isObject(value: Json | undefined): value is { [key: string]: Json } {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function parse(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    // The answer does not come from an API server: its status and text are reported.
    return null;
  }
}

/** An option of a command. */
export interface OptionSpec {
  /** Names with dashes: `--auth`, and shorter ones. */
  names: readonly [string, ...string[]];
  type: 'flag' | 'text' | 'whole' | 'boolean' | 'texts';
  help: string;
}

/** A command, such as `user create`. */
interface CommandSpec {
  words: readonly [string, string];
  help: string;
  /** Required arguments; the last may be repeated. */
  positionals: readonly { name: string; many?: 'some' | 'any' }[];
  options: readonly OptionSpec[];
}

type OptionValue = boolean | string | number | string[];

/** Arguments and options given to a command. Reading an undeclared one is a programming error. */
interface Given {
  positional(name: string): string;
  positionals(name: string): string[];
  flag(name: string): boolean;
  text(name: string): string | undefined;
  whole(name: string): number | undefined;
  /** The options that were given, by their first name without dashes. */
  values(): Map<string, OptionValue>;
}

/** A mistake in the command line: exit code 2. */
export class UsageError extends Error {}

const label = ({ names }: OptionSpec): string => names.join('/');

function convert(spec: OptionSpec, text: string): string | number | boolean {
  if (spec.type === 'whole') {
    if (/^[+-]?\d+$/.test(text) && Number.isSafeInteger(Number(text))) return Number(text);
    throw new UsageError(`argument ${label(spec)}: invalid int value: '${text}'`);
  }
  if (spec.type === 'boolean') {
    if (/^(yes|true)$/i.test(text)) return true;
    if (/^(no|false)$/i.test(text)) return false;
    throw new UsageError(`argument ${label(spec)}: ${text} is not a valid boolean.`);
  }
  return text;
}

/** Whether a word is an option, and not an argument such as `-1`. */
const isOption = (word: string): boolean => /^-[^\d]/.test(word);

/**
 * Reads options until the first word that matches none of `specs`, and removes them from `words`. Throws UsageError.
 */
export function takeOptions(
  words: string[],
  specs: readonly OptionSpec[],
  onWord: (word: string) => boolean,
): Map<string, OptionValue> {
  const values = new Map<string, OptionValue>();
  for (let word = words.shift(); word !== undefined; word = words.shift()) {
    if (!isOption(word)) {
      if (onWord(word)) continue;
      words.unshift(word);
      break;
    }
    const equals = word.startsWith('--') ? word.indexOf('=') : -1;
    const name = equals < 0 ? word : word.slice(0, equals);
    const spec = specs.find(({ names }) => names.includes(name));
    if (spec === undefined) throw new UsageError(`unrecognized arguments: ${word}`);
    const key = spec.names[0].replace(/^-+/, '');
    if (spec.type === 'flag') {
      if (equals >= 0) throw new UsageError(`argument ${label(spec)}: ignored explicit argument`);
      values.set(key, true);
      continue;
    }
    const first = equals < 0 ? words.shift() : word.slice(equals + 1);
    if (first === undefined || (equals < 0 && isOption(first))) {
      throw new UsageError(`argument ${label(spec)}: expected ${spec.type === 'texts' ? 'at least ' : ''}one argument`);
    }
    if (spec.type !== 'texts') {
      values.set(key, convert(spec, first));
      continue;
    }
    const texts = [first];
    while (words[0] !== undefined && !isOption(words[0])) texts.push(words.shift() as string);
    values.set(key, texts);
  }
  return values;
}

/** Reads the words after a command's name. Throws UsageError. */
export function parseGiven(words: string[], command: CommandSpec): Given {
  const args: string[] = [];
  const values = takeOptions([...words], command.options, (word) => {
    args.push(word);
    return true;
  });
  const positionals = new Map<string, string[]>();
  for (const { name, many } of command.positionals) {
    const taken = args.splice(0, many === undefined ? 1 : args.length);
    if (taken.length === 0 && many !== 'any') {
      throw new UsageError(`the following arguments are required: ${name}`);
    }
    positionals.set(name, taken);
  }
  if (args.length > 0) throw new UsageError(`unrecognized arguments: ${args.join(' ')}`);
  const of = <Value extends OptionValue>(name: string, isValue: (value: OptionValue) => value is Value) => {
    const value = values.get(name);
    return value !== undefined && isValue(value) ? value : undefined;
  };
  return {
    positional: (name) => positionals.get(name)?.[0] ?? '',
    positionals: (name) => positionals.get(name) ?? [],
    flag: (name) => values.get(name) === true,
    text: (name) => of(name, (value) => typeof value === 'string'),
    whole: (name) => of(name, (value) => typeof value === 'number'),
    values: () => values,
  };
}

/** `usage: wskadmin user create [-u AUTH] ... subject` */
export function usageOf({ words, positionals, options }: CommandSpec): string {
  const optional = options.map(({ names, type }) => {
    const shortest = names.at(-1) ?? names[0];
    const value = names[0].replace(/^-+/, '').toUpperCase();
    if (type === 'flag') return `[${shortest}]`;
    return `[${shortest} ${value}${type === 'texts' ? ` [${value} ...]` : ''}]`;
  });
  const required = positionals.map(({ name, many }) =>
    many === undefined ? name : many === 'any' ? `[${name} ...]` : `${name} [${name} ...]`,
  );
  return `usage: wskadmin ${[...words, ...optional, ...required].join(' ')}`;
}

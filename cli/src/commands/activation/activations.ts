import type { FlagSpec } from '../../args/flags.js';
import { ownNamespace } from '../../args/qualified-name.js';
import { encodePath, query } from '../../client/transport.js';
import type { Client } from '../../client/client.js';
import { checkArgs, type CommandContext } from '../../command.js';
import { argumentError, wrapError } from '../../errors.js';
import { asList, asMap, asNumber, asText, type Json, type JsonMap } from '../../json/json.js';
import { activationShape, conform } from '../../shapes.js';

/** Filters of a list of activations; times in milliseconds since 1970. */
interface ListOptions {
  name?: string | undefined;
  limit: number;
  skip: number;
  since?: number | undefined;
  upto?: number | undefined;
  /** Gives whole records instead of summaries. */
  docs?: boolean;
}

/** Lists activations of the key's own namespace, the newest first. */
export async function listActivations(client: Client, options: ListOptions): Promise<JsonMap[]> {
  const set = {
    ...options,
    since: options.since || undefined,
    upto: options.upto || undefined,
    docs: options.docs || undefined,
  };
  const found = await client.get(ownNamespace, `activations${query(set)}`);
  return asList(found).map((record) => conform(record, activationShape));
}

/** The number of activations of the key's own namespace that started at `since`, epoch ms, or later. */
export async function countActivations(
  client: Client,
  { name, since }: Pick<ListOptions, 'name' | 'since'>,
): Promise<number> {
  const found = await client.get(ownNamespace, `activations${query({ name, since: since || undefined, count: true })}`);
  return asNumber(asMap(found).get('activations'));
}

/** `-l`, of commands about one activation. */
export const lastFlag: FlagSpec = { name: 'last', short: 'l', type: 'bool', help: 'retrieves the last activation' };

/**
 * The arguments, at most `most`, with the id first: with `--last` that of the last activation.
 * @param what for the error messages: `activation`, `logs for activation`, `result for activation`.
 * @throws WskError if there are too few or too many arguments, or there is no activation yet.
 */
export async function withLastId(
  { args, client, flags }: CommandContext,
  what: string,
  most = 1,
): Promise<[string, ...string[]]> {
  // As in OpenWhisk's client, the id comes first, the other arguments next, and the former first argument last.
  const [first, ...others] = args;
  const moved = first === undefined ? [] : [...others, first];
  const withId = flags.bool('last') ? [await lastId(client, what), ...moved] : args;
  checkArgs(withId, 1, most, 'An activation ID is required.');
  const [id = '', ...more] = withId;
  return [id, ...more];
}

/**
 * Reads one activation, or the part of it that `suffix` (`/logs`, `/result`) names; `what` is its name in the error
 * message.
 */
export async function readActivation(client: Client, id: string, what: string, suffix = ''): Promise<Json> {
  try {
    return await client.get(ownNamespace, `activations/${encodePath(id)}${suffix}`);
  } catch (error) {
    throw wrapError(error, `Unable to get ${what} '${id}'`);
  }
}

async function lastId(client: Client, what: string): Promise<string> {
  try {
    const [last] = await listActivations(client, { limit: 1, skip: 0 });
    if (last) return asText(last.get('activationId'));
    throw argumentError('Activation list does not contain any activations.');
  } catch (error) {
    throw wrapError(error, `Unable to get ${what}`);
  }
}

/** The lines of a record's `logs`. */
export function logLines(activation: Json): string[] {
  return asList(asMap(activation).get('logs')).map(asText);
}

const stamp = /\d{4}-[01]\d-[0-3]\dT[0-2]\d:[0-6]\d:[0-6]\d.\d+Z( *(stdout|stderr):)?\s(.*)/;

/** A log line without time stamp and stream, if it has them. */
export function stripStamp(line: string): string {
  return stamp.exec(line)?.[3] || line;
}

const two = (number: number): string => String(number).padStart(2, '0');

/** `YYYY-MM-DD hh:mm:ss` in the local time zone. */
export function formatLocalTime(timeMs: number): string {
  const time = new Date(timeMs);
  const date = `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())}`;
  return `${date} ${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}`;
}

/** A length of time in Go's format: `0s`, `12ms`, `1.234s`, `1m5.5s`, `2h0m0s`. */
export function formatDuration(durationMs: number): string {
  const length = Math.abs(durationMs);
  const sign = durationMs < 0 ? '-' : '';
  if (length === 0) return '0s';
  if (length < 1000) return `${sign}${length}ms`;
  const hours = Math.floor(length / 3_600_000);
  const minutes = Math.floor(length / 60_000) % 60;
  const seconds = `${(length % 60_000) / 1000}s`;
  if (hours > 0) return `${sign}${hours}h${minutes}m${seconds}`;
  return minutes > 0 ? `${sign}${minutes}m${seconds}` : `${sign}${seconds}`;
}

/** Shortens a text longer than `most` characters: `...` replaces its middle. */
export function shorten(text: string, most: number): string {
  if (text.length <= most) return text;
  const half = Math.floor(most / 2);
  return `${text.slice(0, half + (most % 2))}...${text.slice(text.length - half + 3)}`;
}

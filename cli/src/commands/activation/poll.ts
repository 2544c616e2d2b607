import { setTimeout as sleep } from 'node:timers/promises';
import type { Flags } from '../../args/flags.js';
import type { Client } from '../../client/client.js';
import { checkArgs, type Command, type CommandContext } from '../../command.js';
import { WskError } from '../../errors.js';
import { asNumber, asText, type JsonMap } from '../../json/json.js';
import { stdout } from '../../terminal.js';
import { countActivations, listActivations } from './activations.js';

const intervalMs = 2000;
/** Records that existed before and are told apart from later ones, at least. */
const knownBefore = 1000;
/** Ids that are remembered; records that start before the oldest of them are no longer looked for. */
const mostKnown = 100_000;
/** How long before its end an activation may have begun to be shown, at least, ms. */
const longestRunMs = 3_600_000;
/** Records of a page, without and with their logs. */
const [summariesPage, recordsPage] = [200, 50];

/** The activations that have a record and need not be shown, among those that started at `since` or later. */
interface Known {
  since: number;
  /** Starts, epoch ms, by id. */
  starts: Map<string, number>;
}

async function poll({ args, client, flags }: CommandContext): Promise<void> {
  checkArgs(args, 0, 1, 'An optional namespace is the only valid argument.');
  endOnSignal();
  stdout.print('Enter Ctrl-c to exit.\n');
  const [name] = args;
  const exitAfterS = flags.int('exit');
  let begun = Date.now();
  const isOver = (): boolean => exitAfterS > 0 && Math.floor((Date.now() - begun) / 1000) > exitAfterS;
  const known = await knownAtStart(client, name, flags, isOver);
  if (known === undefined) return;
  stdout.print('Polling for activation logs\n');
  begun = Date.now();
  while (!isOver()) {
    for (const activation of (await lenient(() => news(client, name, known))) ?? []) report(activation);
    await sleep(intervalMs);
  }
}

/**
 * The activations whose records have come since the last call, the newest first. Records come at the end of an activation,
 * in another order than their starts: the number of records tells whether there are new ones, and pages are read until
 * all of them are found.
 */
async function news(client: Client, name: string | undefined, known: Known): Promise<JsonMap[]> {
  const { since, starts } = known;
  const lacking = (await countActivations(client, { name, since })) - starts.size;
  if (lacking === 0) {
    forgetUntil(known, Date.now() - longestRunMs);
    return [];
  }
  const found = new Map<string, JsonMap>();
  const listed = new Set<string>();
  for (let skip = 0; ; skip += recordsPage) {
    const page = await listActivations(client, { name, since, limit: recordsPage, skip, docs: true });
    for (const activation of page) {
      const id = asText(activation.get('activationId'));
      listed.add(id);
      if (!starts.has(id)) found.set(id, activation);
    }
    if (lacking > 0 && found.size >= lacking) break;
    if (page.length >= recordsPage) continue;
    // All were listed: the others have been removed.
    for (const id of starts.keys()) if (!listed.has(id)) starts.delete(id);
    break;
  }
  for (const [id, activation] of found) starts.set(id, asNumber(activation.get('start')));
  forgetOldest(known, mostKnown);
  forgetUntil(known, Date.now() - longestRunMs);
  return [...found.values()];
}

/** Keeps the ids of at most so many activations, those that started last. */
function forgetOldest(known: Known, most: number): void {
  if (known.starts.size <= most) return;
  const starts = [...known.starts.values()].sort((a, b) => b - a);
  forgetUntil(known, starts[most - 1] ?? 0);
}

/** Forgets the activations that started at `startMs` or earlier. */
function forgetUntil(known: Known, startMs: number): void {
  if (startMs < known.since) return;
  known.since = startMs + 1;
  for (const [id, start] of known.starts) if (start < known.since) known.starts.delete(id);
}

function report(activation: JsonMap): void {
  stdout.print(`\nActivation: '${asText(activation.get('name'))}' (${asText(activation.get('activationId'))})\n`);
  stdout.printJson(activation.get('logs') ?? null);
}

/**
 * The activations that are not shown: with a `--since-...` flag those that started before, else those with a record. Repeats
 * failed requests; returns undefined if `isOver` meanwhile.
 */
async function knownAtStart(
  client: Client,
  name: string | undefined,
  flags: Flags,
  isOver: () => boolean,
): Promise<Known | undefined> {
  const seconds =
    flags.int('since-seconds') +
    60 * (flags.int('since-minutes') + 60 * (flags.int('since-hours') + 24 * flags.int('since-days')));
  const known: Known = { since: 0, starts: new Map() };
  if (seconds !== 0) return { ...known, since: Math.floor(Date.now() / 1000) * 1000 - seconds * 1000 };
  const longAgo = Date.now() - longestRunMs;
  for (let skip = 0; ;) {
    const options = { name, limit: summariesPage, skip };
    const page = await lenient(() => listActivations(client, options));
    if (page === undefined) {
      if (isOver()) return undefined;
      await sleep(intervalMs);
      continue;
    }
    for (const one of page) known.starts.set(asText(one.get('activationId')), asNumber(one.get('start')));
    if (page.length < summariesPage) {
      forgetUntil(known, longAgo);
      return known;
    }
    skip += summariesPage;
    const oldest = asNumber(page.at(-1)?.get('start'));
    if (known.starts.size < knownBefore || (oldest >= longAgo && known.starts.size < mostKnown)) continue;
    // Others may have started in the same millisecond as the oldest.
    forgetUntil(known, oldest);
    return known;
  }
}

/** Undefined if a request has failed: the next one may succeed. */
async function lenient<Result>(request: () => Promise<Result>): Promise<Result | undefined> {
  try {
    return await request();
  } catch (error) {
    if (error instanceof WskError && error.exitCode !== 2) return undefined;
    throw error;
  }
}

function endOnSignal(): void {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => process.stdout.write('Poll terminated\n', () => process.exit(1)));
  }
}

const sinceFlag = (unit: string): { name: string; type: 'int'; help: string } => ({
  name: `since-${unit}`,
  type: 'int',
  help: `start polling for activations \`${unit.toUpperCase()}\` ${unit} ago`,
});

/** `wsk activation poll`. */
export const pollCommand: Command = {
  name: 'poll',
  argsUsage: '[ NAMESPACE | ACTION_NAME ]',
  summary: 'poll continuously for log messages from currently running actions',
  flags: [
    { name: 'exit', short: 'e', type: 'int', help: 'stop polling after `SECONDS` seconds' },
    ...['days', 'hours', 'minutes', 'seconds'].map(sinceFlag),
  ],
  run: poll,
};

import { setTimeout as sleep } from 'node:timers/promises';
import type { Flags } from '../../args/flags.js';
import type { Client } from '../../client/client.js';
import { checkArgs, type Command, type CommandContext } from '../../command.js';
import { WskError } from '../../errors.js';
import { asNumber, asText, type JsonMap } from '../../json/json.js';
import { stdout } from '../../terminal.js';
import { listActivations } from './activations.js';

const intervalMs = 2000;

async function poll({ args, client, flags }: CommandContext): Promise<void> {
  checkArgs(args, 0, 1, 'An optional namespace is the only valid argument.');
  endOnSignal();
  stdout.print('Enter Ctrl-c to exit.\n');
  let since = await startOfPolling(client, flags);
  stdout.print('Polling for activation logs\n');
  const begun = Date.now();
  const exitAfterS = flags.int('exit');
  const reported = new Set<string>();
  while (exitAfterS <= 0 || Math.floor((Date.now() - begun) / 1000) <= exitAfterS) {
    const found = await lenientList(client, { name: args[0], limit: 0, skip: 0, since, docs: true });
    const current = found.map((activation) => asText(activation.get('activationId')));
    for (const activation of found) {
      if (!reported.has(asText(activation.get('activationId')))) report(activation);
      if (asNumber(activation.get('start')) > since) since = asNumber(activation.get('start')) + 1;
    }
    remember(reported, current);
    await sleep(intervalMs);
  }
}

/** Keeps the ids of the last answer only: older activations are before `since` and do not come again. */
function remember(reported: Set<string>, current: string[]): void {
  if (current.length === 0) return;
  reported.clear();
  current.forEach((id) => reported.add(id));
}

function report(activation: JsonMap): void {
  stdout.print(`\nActivation: '${asText(activation.get('name'))}' (${asText(activation.get('activationId'))})\n`);
  stdout.printJson(activation.get('logs') ?? null);
}

/** With no `--since-...`, polling starts just after the newest activation there is. */
async function startOfPolling(client: Client, flags: Flags): Promise<number> {
  const seconds =
    flags.int('since-seconds') +
    60 * (flags.int('since-minutes') + 60 * (flags.int('since-hours') + 24 * flags.int('since-days')));
  if (seconds !== 0) return Math.floor(Date.now() / 1000) * 1000 - seconds * 1000;
  const [last] = await lenientList(client, { limit: 1, skip: 0, docs: true });
  return last ? asNumber(last.get('start')) + 1 : 0;
}

/** A failed request does not end the polling; the next one may succeed. */
async function lenientList(client: Client, options: Parameters<typeof listActivations>[1]): Promise<JsonMap[]> {
  try {
    return await listActivations(client, options);
  } catch (error) {
    if (error instanceof WskError && error.exitCode !== 2) return [];
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

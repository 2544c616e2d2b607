import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf, WskError } from '../../errors.js';
import type { JsonMap } from '../../json/json.js';
import { stdout } from '../../terminal.js';
import { checkArgs, type CommandContext } from '../command.js';
import { deviceTable, processRows, table } from './format.js';
import { readDevices } from './gpus.js';

const refreshMs = 1000;
const clearScreen = '\u001b[H\u001b[2J';

/** `wsk gpu top`: once, or every second while somebody watches. */
export async function top({ args, client, flags }: CommandContext): Promise<void> {
  checkArgs(args, 0, 0, 'No arguments are required.');
  const isWatched = process.stdout.isTTY === true && !flags.bool('once');
  stdout.print((isWatched ? clearScreen : '') + picture(await readDevices(client)));
  if (!isWatched) return;
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(0));
  for (;;) {
    await sleep(refreshMs);
    try {
      stdout.print(clearScreen + picture(await readDevices(client)));
    } catch (error) {
      // The server may come back; a wrong command line does not get better.
      if (!(error instanceof WskError) || error.exitCode === 2) throw error;
      stdout.print(`${clearScreen}${messageOf(error)}\n`);
    }
  }
}

/** Devices, and below them what is on each. */
function picture(devices: JsonMap[]): string {
  if (devices.length === 0) return 'There is no GPU.\n';
  const summary = deviceTable(devices);
  const processes = devices.map(processRows);
  const titles = ['Function', 'Share', 'MiB', 'Holds', 'Running', ''];
  const details = table(titles, processes.flat(), ['Share', 'MiB', 'Holds', 'Running']);
  let taken = 0;
  const blocks = devices.map((_, at) => {
    const count = processes[at]?.length ?? 0;
    const rows = details.rows.slice(taken, (taken += count));
    return (summary.rows[at] ?? '') + rows.map((row) => `    ${row}`).join('');
  });
  const head = processes.some((rows) => rows.length > 0) ? `${summary.header}    ${details.header}` : summary.header;
  return stdout.bold(head) + blocks.join('');
}

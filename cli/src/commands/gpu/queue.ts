import { wrapError } from '../../errors.js';
import { asList, asMap, asNumber, asText, type Json } from '../../json/json.js';
import { stdout } from '../../terminal.js';
import { checkArgs, type CommandContext } from '../command.js';
import { table } from './format.js';

const titles = ['#', 'Activation', 'Action', 'Waited ms', 'SLO ms', 'MiB', 'GPUs'];
const numbers = ['#', 'Waited ms', 'SLO ms', 'MiB', 'GPUs'];

/** `wsk gpu queue`. */
export async function listQueue({ args, client }: CommandContext): Promise<void> {
  checkArgs(args, 0, 0, 'No arguments are required.');
  let queued: Json;
  try {
    queued = await client.callRoute('GET', 'gpu/queue');
  } catch (error) {
    throw wrapError(error, 'Unable to obtain the queue for GPUs');
  }
  const rows = asList(queued)
    .map(asMap)
    .map((one) => {
      const slo = one.get('sloMs');
      return [
        String(asNumber(one.get('position'))),
        asText(one.get('activationId')),
        asText(one.get('action')),
        String(asNumber(one.get('waitedMs'))),
        slo === undefined ? '-' : String(asNumber(slo)),
        String(asNumber(one.get('memoryMiB'))),
        String(asNumber(one.get('gpus'))),
      ];
    });
  const { header, rows: lines } = table(titles, rows, numbers);
  stdout.print(stdout.bold(header) + lines.join(''));
}

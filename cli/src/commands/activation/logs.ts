import { stdout } from '../../terminal.js';
import type { Command, CommandContext } from '../command.js';
import { lastFlag, logLines, readActivation, stripStamp, withLastId } from './activations.js';

async function logs(context: CommandContext): Promise<void> {
  const what = 'logs for activation';
  const [id] = await withLastId(context, what);
  const answer = await readActivation(context.client, id, what, '/logs');
  const strip = context.flags.bool('strip');
  stdout.print(
    logLines(answer)
      .map((line) => `${strip ? stripStamp(line) : line}\n`)
      .join(''),
  );
}

/** `wsk activation logs`. */
export const logsCommand: Command = {
  name: 'logs',
  argsUsage: '(ACTIVATION_ID | --last)',
  summary: 'get the logs of an activation',
  flags: [lastFlag, { name: 'strip', short: 'r', type: 'bool', help: 'strip timestamp and stream information' }],
  run: logs,
};

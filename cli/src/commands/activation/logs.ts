import { stdout } from '../../terminal.js';
import type { Command, CommandContext } from '../command.js';
import { lastFlag, logLines, readActivation, stripStamp } from './activations.js';

async function logs(context: CommandContext): Promise<void> {
  const { answer } = await readActivation(context, 'logs for activation', '/logs');
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

import { asMap, sortKeys } from '../../json/json.js';
import { stdout } from '../../terminal.js';
import type { Command, CommandContext } from '../command.js';
import { lastFlag, readActivation, withLastId } from './activations.js';

async function result(context: CommandContext): Promise<void> {
  const what = 'result for activation';
  const [id] = await withLastId(context, what);
  const answer = await readActivation(context.client, id, what, '/result');
  stdout.printJson(sortKeys(asMap(answer).get('result') ?? null));
}

/** `wsk activation result`. */
export const resultCommand: Command = {
  name: 'result',
  argsUsage: '(ACTIVATION_ID | --last)',
  summary: 'get the result of an activation',
  flags: [lastFlag],
  run: result,
};

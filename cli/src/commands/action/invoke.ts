import { mergeObjects } from '../../args/parameters.js';
import { parseQualifiedName, type QualifiedName } from '../../args/qualified-name.js';
import { InvocationError } from '../../client/answer.js';
import { encodePath } from '../../client/api-host.js';
import { wrapError } from '../../errors.js';
import { asMap, asText, sortKeys, type Json } from '../../json/json.js';
import { stderr, stdout, type Printer } from '../../terminal.js';
import { checkArgs, parameterFlags, type Command, type CommandContext } from '../command.js';

async function invoke({ args, client, flags, pairs }: CommandContext): Promise<void> {
  checkArgs(args, 1, 1, 'An action name is required.');
  const name = parseQualifiedName(args[0] ?? '');
  const parameters = sortKeys(mergeObjects(pairs.parameters, 'parameter'));
  const result = flags.bool('result');
  const blocking = result || flags.bool('blocking');
  try {
    const answer = await client.invoke(name.namespace, `actions/${encodePath(name.path)}`, parameters, {
      blocking,
      result,
    });
    if (!result) printInvoked(stdout, name, answer);
    if (blocking) stdout.printJson(sortKeys(answer));
  } catch (error) {
    if (blocking && error instanceof InvocationError) printUnsuccessful(error, name, result);
    throw blocking && error instanceof InvocationError
      ? error
      : wrapError(error, `Unable to invoke action '${name.path}'`, { showUsage: true });
  }
}

/**
 * Prints what came of an invocation that did not succeed to stderr, so that stdout holds results only; the line before
 * the record is left out with `recordOnly`.
 */
export function printUnsuccessful(error: InvocationError, name: QualifiedName, recordOnly: boolean): void {
  if (error.outcome === 'still running') {
    printInvoked(stderr, name, error.answer, ', but the request has not yet finished,');
    return;
  }
  if (!recordOnly) printInvoked(stderr, name, error.answer);
  stderr.printJson(sortKeys(error.answer));
}

/** Prints `ok: invoked /ns/name with id ...`. */
export function printInvoked(printer: Printer, name: QualifiedName, answer: Json, remark = ''): void {
  const id = printer.bold(asText(asMap(answer).get('activationId')));
  const action = `/${printer.bold(name.namespace)}/${printer.bold(name.path)}`;
  printer.print(`${printer.ok} invoked ${action}${remark} with id ${id}\n`);
}

/** `wsk action invoke`. */
export const invokeCommand: Command = {
  name: 'invoke',
  argsUsage: 'ACTION_NAME',
  summary: 'invoke action',
  flags: [
    { name: 'blocking', short: 'b', type: 'bool', help: 'blocking invoke' },
    ...parameterFlags,
    {
      name: 'result',
      short: 'r',
      type: 'bool',
      help: 'blocking invoke; show only activation result (unless there is a failure)',
    },
  ],
  run: invoke,
};

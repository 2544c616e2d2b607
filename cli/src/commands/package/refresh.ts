import { exitCodes, WskError, wrapError } from '../../errors.js';
import { asList, asMap, asText, type JsonMap } from '../../json/json.js';
import { stdout } from '../../terminal.js';
import type { Command, CommandContext } from '../command.js';
import { namespaceArgument } from '../entities.js';

const notImplemented = 501 - 256;

async function refresh(context: CommandContext): Promise<void> {
  const namespace = namespaceArgument(context);
  let changes: JsonMap;
  try {
    changes = asMap(await context.client.post(namespace, 'packages/refresh'));
  } catch (error) {
    if (error instanceof WskError && error.exitCode === notImplemented) {
      const message = 'The package refresh feature is not implemented in the target deployment';
      throw new WskError(message, { exitCode: exitCodes.network });
    }
    throw wrapError(error, `Package refresh for namespace '${namespace}' failed`);
  }
  const lines = (title: string, member: string): string[] => [title, ...asList(changes.get(member)).map(asText)];
  const report = [
    `'${namespace}' refreshed successfully`,
    ...lines('created bindings:', 'added'),
    ...lines('updated bindings:', 'updated'),
    ...lines('deleted bindings:', 'deleted'),
  ];
  stdout.print(report.map((line) => `${line}\n`).join(''));
}

/** `wsk package refresh`. */
export const refreshCommand: Command = {
  name: 'refresh',
  argsUsage: '[NAMESPACE]',
  summary: 'refresh package bindings',
  flags: [],
  run: refresh,
};

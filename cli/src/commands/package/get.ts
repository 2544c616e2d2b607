import { asList, asMap, type JsonMap } from '../../json/json.js';
import { stdout } from '../../terminal.js';
import type { Command, CommandContext } from '../command.js';
import { printEntity, read, summaryFlag, targetWithField, textOf } from '../entities.js';
import { summaryOf } from '../summary.js';
import { packages } from './packages.js';

async function get(context: CommandContext): Promise<void> {
  const { target, field } = targetWithField(context, packages);
  const entity = await read(context, packages, target);
  if (context.flags.bool('summary')) stdout.print(summary(entity));
  else printEntity(packages, target, entity, field);
}

/** The package, its actions and its feeds, two lines each. */
function summary(entity: JsonMap): string {
  const name = `/${textOf(entity, 'namespace')}/${textOf(entity, 'name')}`;
  const inside = (kind: string, members: string): string[] =>
    asList(entity.get(members))
      .map(asMap)
      .map((member) => summaryOf(kind, member, `${name}/${textOf(member, 'name')}`));
  return [summaryOf('package', entity, name), ...inside(' action', 'actions'), ...inside(' feed  ', 'feeds')].join('');
}

/** `wsk package get`. */
export const getCommand: Command = {
  name: 'get',
  argsUsage: 'PACKAGE_NAME [FIELD_FILTER]',
  summary: 'get package',
  flags: [summaryFlag('package', '; parameters with prefix "*" are bound')],
  run: get,
};

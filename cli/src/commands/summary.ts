import { valueOf } from '../args/parameters.js';
import { asList, asMap, asText, type JsonMap } from '../json/json.js';
import { stdout } from '../terminal.js';
import { annotationsOf } from './lists.js';

/**
 * Two lines about an entity: its name and description, and its parameters. Bound parameters are marked `*`, or `**` if
 * they are final; without a `description` annotation the parameters make up for one.
 */
export function summaryOf(
  kind: string,
  entity: JsonMap,
  name = `/${asText(entity.get('namespace'))}/${asText(entity.get('name'))}`,
): string {
  const annotations = annotationsOf(entity);
  const names = parameterNames(entity, annotations);
  const description = asText(valueOf(annotations, 'description')) || describe(names.map(({ plain }) => plain));
  const shown = names.map(({ marked }) => marked).join(', ') || 'none defined';
  const colon = description === '' ? '' : ': ';
  return `${stdout.bold(kind)} ${name}${colon}${description}\n   (${stdout.bold('parameters')}: ${shown})\n`;
}

function parameterNames(entity: JsonMap, annotations: JsonMap[]): { plain: string; marked: string }[] {
  const bound = asList(entity.get('parameters')).map((item) => asText(asMap(item).get('key')));
  const described = asList(valueOf(annotations, 'parameters')).map((item) => asText(asMap(item).get('name')));
  const mark = valueOf(annotations, 'final') === true ? '**' : '*';
  const all = [...new Set([...bound, ...described])].filter((name) => name !== '').sort();
  return all.map((plain) => ({ plain, marked: bound.includes(plain) ? `${mark}${plain}` : plain }));
}

function describe(names: string[]): string {
  const last = names[names.length - 1];
  if (last === undefined) return '';
  if (names.length === 1) return `Returns a result based on parameter ${last}`;
  return `Returns a result based on parameters ${names.slice(0, -1).join(', ')} and ${last}`;
}

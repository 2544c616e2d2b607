import { valueOf } from '../args/parameters.js';
import { asList, asMap, asText, type Json, type JsonMap } from '../json/json.js';
import { stdout } from '../terminal.js';

/** How one kind of entity is listed. */
export interface ListFormat {
  title: string;
  row(entity: JsonMap): string;
  /** What `-n` sorts by. */
  sortKey(entity: JsonMap): string;
}

const fullName = (entity: JsonMap): string => `/${asText(entity.get('namespace'))}/${asText(entity.get('name'))}`;
const lowerCaseName = (entity: JsonMap): string =>
  `${asText(entity.get('namespace'))}${asText(entity.get('name'))}`.toLowerCase();

/** The annotations of an entity. */
export function annotationsOf(entity: JsonMap): JsonMap[] {
  return asList(entity.get('annotations')).map(asMap);
}

/** Actions outside packages first, by name as it is written; then packaged ones. */
function actionSortKey(entity: JsonMap): string {
  const packaged = asText(entity.get('namespace')).includes('/');
  return packaged ? `1${lowerCaseName(entity)}` : `0${asText(entity.get('name'))}`;
}

export const listFormats = {
  actions: {
    title: 'actions',
    row: (entity) => `${fullName(entity).padEnd(70)} private ${asText(valueOf(annotationsOf(entity), 'exec'))}`,
    sortKey: actionSortKey,
  },
  packages: {
    title: 'packages',
    row: (entity) => `${fullName(entity).padEnd(70)} ${entity.get('publish') === true ? 'shared' : 'private'}`,
    sortKey: lowerCaseName,
  },
  triggers: {
    title: 'triggers',
    row: (entity) => `${fullName(entity).padEnd(70)} private`,
    sortKey: lowerCaseName,
  },
  rules: {
    title: 'rules',
    row: (entity) => `${fullName(entity).padEnd(70)} ${'private'.padEnd(20)} ${asText(entity.get('status'))}`,
    sortKey: lowerCaseName,
  },
} satisfies Record<string, ListFormat>;

/** Prints a title and a row for each entity, in the server's order or, with `sorted`, by name. */
export function printList(entities: Json, format: ListFormat, sorted: boolean): void {
  const list = asList(entities).map(asMap);
  if (sorted) list.sort((a, b) => (format.sortKey(a) < format.sortKey(b) ? -1 : 1));
  stdout.print(`${stdout.bold(`${format.title}\n`)}${list.map((entity) => `${format.row(entity)}\n`).join('')}`);
}

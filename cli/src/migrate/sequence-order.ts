import type { JsonObject } from '@gpuwhisk/common/json';
import { fullName } from './namespace.js';
import { isObject, textOf } from './values.js';

/**
 * Sequences in groups, each after those that its sequences are made of. Sequences that contain each other come last,
 * together: the target says what is wrong with them. `providers` has the package of each binding, both in full.
 */
export function sequenceGroups<Item extends { entity: JsonObject }>(
  items: readonly Item[],
  providers: ReadonlyMap<string, string>,
): Item[][] {
  let left: readonly Item[] = items;
  const groups: Item[][] = [];
  while (left.length > 0) {
    const waiting = new Set(left.map(({ entity }) => fullName(entity)));
    const isReady = ({ entity }: Item): boolean =>
      componentsOf(entity).every((name) => !waiting.has(behindBinding(name, providers)));
    const ready = left.filter(isReady);
    groups.push(ready.length > 0 ? ready : [...left]);
    left = ready.length > 0 ? left.filter((item) => !isReady(item)) : [];
  }
  return groups;
}

function componentsOf({ exec }: JsonObject): string[] {
  if (!isObject(exec) || !Array.isArray(exec.components)) return [];
  return exec.components.map((one) =>
    (isObject(one) ? `${textOf(one.path)}/${textOf(one.name)}` : textOf(one)).replace(/^\//, ''),
  );
}

function behindBinding(name: string, providers: ReadonlyMap<string, string>): string {
  const slash = name.lastIndexOf('/');
  const provider = providers.get(name.slice(0, slash));
  return provider === undefined ? name : provider + name.slice(slash);
}

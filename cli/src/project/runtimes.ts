import type { Client } from '../client/client.js';
import { extensionForFamily, familyForExtension } from '../code-extensions.js';
import { asList, asMap, asText } from '../json/json.js';

/** The runtimes that the platform offers. */
export interface Runtimes {
  /** The kinds of each family that are not deprecated, with `family:default`. */
  kinds: Map<string, string[]>;
  /** The default kind of each family. */
  defaults: Map<string, string>;
}

/** Asks the platform. */
export async function fetchRuntimes(client: Client): Promise<Runtimes> {
  const families = asMap(asMap(await client.platform()).get('runtimes'));
  const runtimes: Runtimes = { kinds: new Map(), defaults: new Map() };
  for (const [family, list] of families) {
    const usable = asList(list)
      .map(asMap)
      .filter((one) => one.get('deprecated') !== true);
    const kinds = usable.map((one) => asText(one.get('kind')));
    const standard = usable.find((one) => one.get('default') === true);
    if (standard) runtimes.defaults.set(family, asText(standard.get('kind')));
    runtimes.kinds.set(family, standard ? [...kinds, `${family}:default`] : kinds);
  }
  return runtimes;
}

/** The default kind for a file extension without its dot; undefined if there is none. */
export function kindForExtension({ defaults }: Runtimes, extension: string): string | undefined {
  const family = familyForExtension('wskdeploy', extension);
  return family === undefined ? undefined : defaults.get(family);
}

/** Whether a kind runs files of this extension. */
export function isKindOf({ kinds }: Runtimes, extension: string, kind: string): boolean {
  return (kinds.get(familyForExtension('wskdeploy', extension) ?? '') ?? []).includes(kind);
}

/** Whether the platform has this kind at all. */
export function isSupported(runtimes: Runtimes, kind: string): boolean {
  return allKinds(runtimes).includes(kind);
}

/** Every kind that can be asked for. */
export function allKinds({ kinds }: Runtimes): string[] {
  return [...kinds.values()].flat();
}

/** The extension of source files of a kind, without its dot; empty if none is known. */
export function extensionForKind(kind: string): string {
  const [family = ''] = kind.split(':');
  return extensionForFamily('wskdeploy', family) ?? '';
}

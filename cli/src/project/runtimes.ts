// Runtime families by the extension of code files, as in OpenWhisk's wsk and wskdeploy, and the platform's kinds.
import type { Client } from '../client/client.js';
import { asList, asMap, asText } from '../json/json.js';

/** OpenWhisk's tools whose rules the commands follow: `wsk action` follows wsk, `wsk project` follows wskdeploy. */
type Tool = 'wsk' | 'wskdeploy';

interface CodeExtension {
  /** Without its dot. */
  extension: string;
  family: string;
  /** Whether such files are sent in base64. */
  isBinary?: true;
  /** The only tool that knows the extension; absent if both do. */
  only?: Tool;
}

const codeExtensions: readonly CodeExtension[] = [
  { extension: 'js', family: 'nodejs' },
  // Beyond OpenWhisk's tools, which know `js` alone.
  ...['mjs', 'cjs', 'ts', 'mts', 'cts'].map((extension) => ({ extension, family: 'nodejs' })),
  { extension: 'py', family: 'python' },
  { extension: 'swift', family: 'swift' },
  { extension: 'php', family: 'php' },
  { extension: 'java', family: 'java', only: 'wskdeploy' },
  { extension: 'jar', family: 'java', isBinary: true },
  { extension: 'rb', family: 'ruby' },
  { extension: 'rs', family: 'rust' },
  { extension: 'go', family: 'go' },
  { extension: 'cs', family: 'dotnet', only: 'wskdeploy' },
  { extension: 'balx', family: 'ballerina', isBinary: true, only: 'wsk' },
];

function knownTo(tool: Tool): CodeExtension[] {
  return codeExtensions.filter(({ only }) => only === undefined || only === tool);
}

/** The family that a tool assigns to files of this extension (without its dot); undefined if it knows none. */
export function familyForExtension(tool: Tool, extension: string): string | undefined {
  return knownTo(tool).find((one) => one.extension === extension)?.family;
}

/**
 * The extension, without its dot, that a tool gives code of a family: the first one of the table; undefined if the tool
 * knows none.
 */
export function extensionForFamily(tool: Tool, family: string): string | undefined {
  return knownTo(tool).find((one) => one.family === family)?.extension;
}

/** Whether a tool sends files of this extension (without its dot) in base64. */
export function isBinaryExtension(tool: Tool, extension: string): boolean {
  return extension === 'zip' || knownTo(tool).some((one) => one.extension === extension && one.isBinary === true);
}

/** The runtimes that the platform offers. */
export interface Runtimes {
  /** The kinds of each family that are not deprecated, with `family:default`. */
  kinds: Map<string, string[]>;
  /** The default kind of each family. */
  defaults: Map<string, string>;
}

/** Reads the runtimes from the platform. */
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

/** Whether the platform has this kind. */
export function isSupported(runtimes: Runtimes, kind: string): boolean {
  return allKinds(runtimes).includes(kind);
}

/** Every kind that a request may name. */
export function allKinds({ kinds }: Runtimes): string[] {
  return [...kinds.values()].flat();
}

/** The extension of source files of a kind, without its dot; empty if none is known. */
export function extensionForKind(kind: string): string {
  const [family = ''] = kind.split(':');
  return extensionForFamily('wskdeploy', family) ?? '';
}

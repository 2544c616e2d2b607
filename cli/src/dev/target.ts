import { existsSync, statSync } from 'node:fs';
import { basename, dirname, extname, join, resolve } from 'node:path';
import { WskError } from '../errors.js';
import { asMap, type Json, type JsonMap } from '../json/json.js';
import { compose, type ComposeOptions } from '../project/compose.js';
import { readManifest, textOf, type Manifest } from '../project/manifest.js';
import { pathOf, type Plan, type PlannedAction } from '../project/plan.js';

/** A file or folder with the code of one action. */
export interface Target {
  /** Absolute path. */
  path: string;
  isFolder: boolean;
  /** Paths at which a manifest of the action may be; the first that exists counts. */
  manifests: readonly string[];
}

/** What is to be sent of a target. */
export interface ReadTarget {
  plan: Plan;
  action: PlannedAction;
  /** `package/action`, or the action's name alone. */
  name: string;
}

/** Files of a folder that tell its kind. */
const kindByFile: readonly [file: string, kind: string][] = [
  ['package.json', 'nodejs:default'],
  ...['index.js', 'index.mjs', 'index.cjs', 'index.ts', 'index.mts', 'index.cts'].map((file): [string, string] => [
    file,
    'nodejs:default',
  ]),
  ['__main__.py', 'python:default'],
];

/** @throws WskError if there is nothing at the path. */
export function targetAt(given: string): Target {
  const path = resolve(given);
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) throw new WskError(`There is no file or folder '${given}'.`);
  const isFolder = found.isDirectory();
  const folders = isFolder ? [path, dirname(path)] : [dirname(path)];
  const manifests = folders.flatMap((folder) => [join(folder, 'manifest.yaml'), join(folder, 'manifest.yml')]);
  return { path, isFolder, manifests };
}

/**
 * Reads the code of a target, with what the manifest beside it says of the action whose `function` it is: kind, limits,
 * inputs, annotations, package.
 * @throws WskError for a manifest or code that cannot be read.
 */
export async function readTarget(target: Target, options: ComposeOptions): Promise<ReadTarget> {
  for (const file of target.manifests.filter((one) => existsSync(one))) {
    const own = ownPart(await readManifest(file), target.path);
    if (own !== undefined) return composed(own, options);
  }
  return composed(bareManifest(target), { ...options, strict: true });
}

async function composed(manifest: Manifest, options: ComposeOptions): Promise<ReadTarget> {
  const plan = await compose(manifest, options);
  const [planned] = plan.packages.values();
  const [action] = planned?.actions.values() ?? [];
  if (planned === undefined || action === undefined) throw new WskError(`There is no action in '${manifest.file}'.`);
  return { plan, action, name: pathOf(planned.name, action.name) };
}

/** The manifest without all that does not belong to the action whose code is at `path`; undefined if it has none. */
function ownPart(manifest: Manifest, path: string): Manifest | undefined {
  const { file } = manifest;
  for (const [packageName, declared] of manifest.packages) {
    for (const [name, value] of asMap(declared.get('actions'))) {
      const source = textOf(asMap(value), 'function') || textOf(asMap(value), 'location');
      if (source === '' || resolve(dirname(file), source) !== path) continue;
      const own: JsonMap = new Map([...declared].filter(([member]) => !members.includes(member)));
      own.set('actions', new Map([[name, value]]));
      return { ...manifest, packages: new Map([[packageName, own]]) };
    }
  }
  return undefined;
}

/** Members of a package that belong to its other entities. */
const members = ['actions', 'triggers', 'feeds', 'rules', 'sequences', 'apis', 'dependencies'];

/** What a manifest would say of an action with all defaults. */
function bareManifest({ path, isFolder }: Target): Manifest {
  const name = basename(path, isFolder ? '' : extname(path));
  const declared = new Map<string, Json>([['function', path]]);
  if (isFolder) declared.set('runtime', kindOfFolder(path));
  const actions: JsonMap = new Map([[name, declared]]);
  const packages = new Map([['default', new Map<string, Json>([['actions', actions]])]]);
  return { file: join(dirname(path), 'manifest.yaml'), project: new Map(), packages, inProject: false };
}

function kindOfFolder(path: string): string {
  const found = kindByFile.find(([file]) => existsSync(join(path, file)));
  if (found !== undefined) return found[1];
  const names = kindByFile.map(([file]) => file).join(', ');
  throw new WskError(
    `The folder '${path}' has none of ${names}; a manifest.yaml beside it can name the runtime of its action.`,
  );
}

import { readFile } from 'node:fs/promises';
import { ConfigError } from '@gpuwhisk/common/config';
import { parseManifest } from '@gpuwhisk/common/runtimes';
import type { RuntimeEntry, RuntimeManifest } from '@gpuwhisk/common/runtimes';
import { imageOfKind } from '../../runtimes/proxy-runtime.js';
import type { ImageCatalog } from './factory-options.js';

/** The runtimes that images of a manifest are. */
export interface ManifestImages extends ImageCatalog {
  readonly manifest: RuntimeManifest;
  /** Plain lines about kinds that have no image, for the start-up. */
  readonly notes: readonly string[];
}

function nameOf({ prefix, name, tag }: RuntimeEntry['image']): string {
  return `${prefix === '' ? '' : `${prefix}/`}${name}:${tag}`;
}

/**
 * The images of a manifest, and any that an action names. Those of the manifest, its `blackboxes` and those whose names
 * begin with one of `localImages` are taken as the engine has them. Rejects with ConfigError.
 */
export async function readImageCatalog(file: string, localImages: readonly string[]): Promise<ManifestImages> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    throw new ConfigError(`The runtimes manifest '${file}' cannot be read: ${(error as Error).message}`);
  }
  const listed = parseManifest(text, file);
  const commands = Object.values(listed.runtimes)
    .flat()
    .filter(({ command }) => command !== undefined);
  const manifest = { ...listed, runtimes: withoutCommands(listed.runtimes) };
  const entries = Object.values(manifest.runtimes).flat();
  const images = new Map(entries.map((entry) => [entry.kind, nameOf(entry.image)]));
  const local = new Set([...images.values(), ...(manifest.blackboxes ?? []).map(nameOf)]);
  const kinds = commands.map(({ kind }) => kind).join(', ');
  return {
    manifest,
    notes: kinds === '' ? [] : [`Kinds that are commands of the host, which containers do not have: ${kinds}.`],
    supports: (kind) => images.has(kind) || imageOfKind(kind) !== undefined,
    imageOf: (kind) => images.get(kind) ?? imageOfKind(kind),
    isLocal: (image) => local.has(image) || localImages.some((prefix) => image.startsWith(prefix)),
  };
}

function withoutCommands(families: RuntimeManifest['runtimes']): RuntimeManifest['runtimes'] {
  const kept = Object.entries(families).map(([family, entries]): [string, RuntimeEntry[]] => [
    family,
    entries.filter(({ command }) => command === undefined),
  ]);
  return Object.fromEntries(kept.filter(([, entries]) => entries.length > 0));
}

// Images of the Docker engine: fetching as in OpenWhisk, labels, and the images of kinds.
import { readFile } from 'node:fs/promises';
import { ConfigError } from '@gpuwhisk/common/config';
import { parseManifest } from '@gpuwhisk/common/runtimes';
import type { RuntimeEntry, RuntimeManifest } from '@gpuwhisk/common/runtimes';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { SharedWork, bounded } from '@gpuwhisk/common/concurrency';
import { imageOfKind } from '../../runtimes/proxy-runtime.js';
import { ProvisioningError } from '../container-factory.js';
import { EngineError } from './engine-client.js';
import type { Engine, ImageFacts } from './engine.js';

/** Images that are fetched at once. */
const maxPulls = 3;
const maxWaitingPulls = 100;
/** Time after a fetch during which the image is not fetched again, ms. */
const freshMs = 300_000;
/** How long a registry's refusal is remembered, ms. */
const refusalKeptMs = 10_000;

/** The engine's operations on images. */
type ImageEngine = Pick<Engine, 'image' | 'pull'>;

/**
 * The images of containers, fetched as in OpenWhisk. Images of the manifest and local ones are fetched only if the engine
 * lacks them; others are fetched before their use. If that fetch fails, the engine's copy is used only if the image has a
 * fixed tag other than `latest`.
 */
export class Images {
  private readonly pulls: SharedWork<void>;
  private readonly inTurn = bounded(maxPulls, maxWaitingPulls);

  constructor(
    private readonly engine: ImageEngine,
    private readonly clock: Clock,
    /** Whether the engine's copy of an image is used without a fetch. */
    private readonly isLocal: (image: string) => boolean,
  ) {
    this.pulls = new SharedWork(clock, refusalKeptMs);
  }

  /** Fetches the image if needed and returns its facts. Rejects with ProvisioningError. */
  async ready(image: string): Promise<ImageFacts> {
    const name = withTag(image);
    if (this.isLocal(image)) {
      const facts = await this.find(name);
      if (facts) return facts;
    }
    const refusal = await this.pull(name);
    const facts = refusal === undefined || !name.endsWith(':latest') ? await this.find(name) : undefined;
    if (facts) return facts;
    throw new ProvisioningError(
      `The image '${image}' cannot be fetched: ${refusal ?? 'its registry gave another one'}.`,
      `Failed to pull container image '${image}'.`,
      true,
    );
  }

  private async find(name: string): Promise<ImageFacts | undefined> {
    try {
      return await this.engine.image(name);
    } catch (error) {
      throw new ProvisioningError((error as Error).message);
    }
  }

  /** Fetches an image; the reason of a failure, or undefined. */
  private async pull(name: string): Promise<string | undefined> {
    const pulled = this.pulls.do(name, async () => {
      await this.inTurn(() => this.engine.pull(name));
      this.clock.setBackgroundTimer(freshMs, () => this.pulls.forget(name));
    });
    try {
      await pulled;
      return undefined;
    } catch (error) {
      if (error instanceof EngineError && !error.isUnreachable) return error.message;
      throw new ProvisioningError((error as Error).message);
    }
  }
}

/** The name of an image with its tag: `latest` if the name has neither a tag nor a digest. */
export function withTag(image: string): string {
  return /[:@][^/]*$/.test(image) ? image : `${image}:latest`;
}

/** Labels of our images (the first five), and of all containers that we create. */
export const labels = {
  /** `framed`: the runtime connects to the mounted socket and speaks the framed protocol. Absent: `/init` and `/run`. */
  protocol: 'gpuwhisk.protocol',
  /** Program of containers that functions are injected into, a JSON list of words. */
  pair: 'gpuwhisk.pair',
  /** `true`: a proxy unloads functions, from outside of their process. */
  traces: 'gpuwhisk.traces',
  /** Programs that take a socket for runs: `pair`, that of the label `pair`; `all`, the image's own program, too. */
  runs: 'gpuwhisk.runs',
  /** Program of containers that compile source, that is code other than an ELF file; a JSON list of words. */
  build: 'gpuwhisk.build',
  /** The platform that a container belongs to. */
  platform: 'gpuwhisk.platform',
  kind: 'gpuwhisk.kind',
} as const;

/** Command by which each of our images holds a PID namespace; native/entry, their first program, interprets it. */
export const holdCommand = ['--hold'];

/** Whether an image's runtime speaks the framed protocol. Callers drop the labels of foreign images before. */
export function speaksFrames(facts: ImageFacts): boolean {
  return facts.labels[labels.protocol] === 'framed';
}

/** Whether a program of an image takes a socket for runs: that of its pair, or its own. */
export function takesRuns(facts: ImageFacts, isPair: boolean): boolean {
  const runs = facts.labels[labels.runs];
  return speaksFrames(facts) && (runs === 'all' || (runs === 'pair' && isPair));
}

/** The program that a label of an image with the framed protocol names; undefined if there is none. */
export function commandOf(facts: ImageFacts, label: string): string[] | undefined {
  const text = facts.labels[label];
  if (text === undefined || !speaksFrames(facts)) return undefined;
  let words: unknown;
  try {
    words = JSON.parse(text);
  } catch {
    return undefined;
  }
  const isCommand = Array.isArray(words) && words.length > 0 && words.every((word) => typeof word === 'string');
  return isCommand ? (words as string[]) : undefined;
}

/** The images of kinds. */
export interface ImageCatalog {
  supports(kind: string): boolean;
  /** The image's name with its tag; undefined if there is no such kind. */
  imageOf(kind: string): string | undefined;
  /** Whether the engine's copy of the image is used, and the image is fetched only if the engine lacks it. */
  isLocal(image: string): boolean;
}

/** The runtimes of a manifest that have images. */
interface ManifestImages extends ImageCatalog {
  readonly manifest: RuntimeManifest;
  /** Lines of text about kinds without an image, for the start-up. */
  readonly notes: readonly string[];
}

function nameOf({ prefix, name, tag }: RuntimeEntry['image']): string {
  return `${prefix === '' ? '' : `${prefix}/`}${name}:${tag}`;
}

/**
 * The images of a manifest, and images that actions name. Images of the manifest, its `blackboxes` and images whose names
 * begin with one of `localImages` are used as the engine has them. Rejects with ConfigError.
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
    notes: kinds === '' ? [] : [`Kinds without an image, as they are commands of the host: ${kinds}.`],
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

import { z } from 'zod';
import { ConfigError } from './config.js';

/** Stem cells of one size, as runtimes.json configures them. */
export interface StemCell {
  initialCount: number;
  /** Such as `256 MB`. */
  memory: string;
  reactive?: { minCount: number; maxCount: number; ttl: string; threshold: number; increment: number };
}

/** One kind of the runtimes manifest, in OpenWhisk's shape. */
export interface RuntimeEntry {
  kind: string;
  image: { prefix: string; name: string; tag: string };
  default: boolean;
  deprecated: boolean;
  /** Beyond OpenWhisk: the date from which the version gets no more fixes, such as `2026-04-30`; actions of it go on. */
  ended?: string;
  attached?: { attachmentName: string; attachmentType: string };
  requireMain: boolean;
  sentinelledLogs: boolean;
  stemCells: StemCell[];
  /** Beyond OpenWhisk: a program of the machine and its arguments that serves `/init` and `/run` on port 8080. */
  command?: readonly string[];
  /** Files and folders that the command needs besides those that its words name; seen read-only at their own paths. */
  binds?: readonly string[];
  /** Variables of the command. */
  env?: Readonly<Record<string, string>>;
}

/** The runtimes manifest: families of kinds. */
export interface RuntimeManifest {
  runtimes: Record<string, RuntimeEntry[]>;
  /** Images that OpenWhisk pulls ahead of their use. */
  blackboxes?: { prefix: string; name: string; tag: string }[];
}

const count = z.number().int().nonnegative();
const image = z.object({ prefix: z.string(), name: z.string(), tag: z.string() });

const stemCell = z
  .object({
    initialCount: count.optional(),
    /** The older name of initialCount. */
    count: count.optional(),
    memory: z.string(),
    reactive: z
      .object({ minCount: count, maxCount: count, ttl: z.string(), threshold: count.min(1), increment: count.min(1) })
      .refine((given) => given.minCount <= given.maxCount, 'minCount is more than maxCount')
      .optional(),
  })
  .transform(({ initialCount, count: older, ...rest }) => ({ initialCount: initialCount ?? older ?? 0, ...rest }));

const entrySchema = z
  .object({
    kind: z.string().regex(/^[a-z][\w-]*:[\w.-]+$/, 'must be such as family:1'),
    default: z.boolean().optional(),
    deprecated: z.boolean().default(false),
    ended: z.iso.date().optional(),
    image: image.optional(),
    attached: z.object({ attachmentName: z.string(), attachmentType: z.string() }).optional(),
    requireMain: z.boolean().default(false),
    sentinelledLogs: z.boolean().default(true),
    stemCells: z.array(stemCell).default([]),
    command: z.array(z.string()).min(1).optional(),
    binds: z.array(z.string().startsWith('/')).optional(),
    env: z.record(z.string(), z.string()).optional(),
  })
  .refine((entry) => entry.image !== undefined || entry.command !== undefined, 'needs an image or a command');

const manifestSchema = z.object({
  runtimes: z.record(z.string(), z.array(entrySchema)),
  blackboxes: z.array(image).optional(),
});

/**
 * A runtimes manifest in OpenWhisk's shape, from JSON; `file` is its name in messages. Every family has exactly one
 * default, a lone entry without being marked. Throws ConfigError.
 */
export function parseManifest(text: string, file: string): RuntimeManifest {
  const fail = (reason: string): never => {
    throw new ConfigError(`The runtimes manifest '${file}' is not valid: ${reason}`);
  };
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    return fail((error as Error).message);
  }
  const parsed = manifestSchema.safeParse(json);
  if (!parsed.success) {
    return fail(parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`).join('; '));
  }
  const families = Object.entries(parsed.data.runtimes).map(([family, entries]): [string, RuntimeEntry[]] => {
    const defaults = entries.filter((entry) => entry.default);
    const lone = entries.length === 1;
    if (defaults.length !== 1 && !lone) fail(`family '${family}' has ${defaults.length} defaults instead of one`);
    const misplaced = entries.find((entry) => !entry.kind.startsWith(`${family}:`));
    if (misplaced) fail(`'${misplaced.kind}' is in family '${family}'`);
    const kinds = entries.map((entry) => entry.kind);
    const twice = kinds.find((kind, at) => kinds.indexOf(kind) !== at);
    if (twice !== undefined) fail(`'${twice}' is listed twice`);
    return [
      family,
      entries.map((entry) => ({ ...entry, default: lone || entry.default === true, image: imageOf(entry) })),
    ];
  });
  const { blackboxes } = parsed.data;
  return { runtimes: Object.fromEntries(families), ...(blackboxes && { blackboxes }) };
}

/** The image's name, or for a command, which has none, one that says what it is. */
function imageOf(entry: { kind: string; image?: RuntimeEntry['image'] }): RuntimeEntry['image'] {
  return entry.image ?? { prefix: 'command', name: entry.kind.replace(':', '-'), tag: 'latest' };
}

/** The part of a manifest that says which kinds there are, without how they are started. */
export function offeredManifest({ runtimes }: RuntimeManifest): RuntimeManifest {
  const shown = (entry: RuntimeEntry): RuntimeEntry => {
    const offered: RuntimeEntry = { ...entry, stemCells: [] };
    for (const own of ['command', 'binds', 'env'] as const) delete offered[own];
    return offered;
  };
  const families = Object.entries(runtimes).map(([family, entries]) => [family, entries.map(shown)] as const);
  return { runtimes: Object.fromEntries(families) };
}

/**
 * The kinds that several machines offer together, in the order of `listed`; `listed` itself if there are no machines. The default of
 * a family is the one that most machines have for it.
 */
export function joinedManifest(listed: RuntimeManifest, offered: readonly RuntimeManifest[]): RuntimeManifest {
  if (offered.length === 0) return listed;
  const families = new Set([listed, ...offered].flatMap(({ runtimes }) => Object.keys(runtimes)));
  const joined = [...families].map((family): [string, RuntimeEntry[]] => {
    const all = offered.flatMap(({ runtimes }) => runtimes[family] ?? []);
    const kinds = new Map(all.map((entry) => [entry.kind, entry]));
    const order = (listed.runtimes[family] ?? []).map(({ kind }) => kind);
    const defaultsOf = (kind: string): number => all.filter((entry) => entry.kind === kind && entry.default).length;
    const sorted = [...kinds.values()].sort((one, other) => placeIn(order, one.kind) - placeIn(order, other.kind));
    const [preferred] = [...sorted].sort((one, other) => defaultsOf(other.kind) - defaultsOf(one.kind));
    return [family, sorted.map((entry) => ({ ...entry, default: entry.kind === preferred?.kind }))];
  });
  return { ...listed, runtimes: Object.fromEntries(joined.filter(([, entries]) => entries.length > 0)) };
}

const placeIn = (order: readonly string[], kind: string): number => {
  const at = order.indexOf(kind);
  return at < 0 ? order.length : at;
};

/**
 * A manifest whose default of a family is a version that is there: the default itself, or else the newest of `versions`, with the
 * default's stem cells. Without any of them the manifest is returned as it is.
 */
export function withDefaultThere(
  manifest: RuntimeManifest,
  family: string,
  versions: readonly string[],
): RuntimeManifest {
  const entries = manifest.runtimes[family] ?? [];
  const there = entries.filter((entry) => versions.some((version) => entry.kind === `${family}:${version}`));
  const listed = entries.find((entry) => entry.default);
  const [newest] = there.filter((entry) => !entry.deprecated).sort((a, b) => compareKinds(b.kind, a.kind));
  if (listed === undefined || there.includes(listed) || newest === undefined) return manifest;
  const moved = entries.map((entry) => {
    if (entry === newest) return { ...entry, default: true, stemCells: listed.stemCells };
    return entry === listed ? { ...entry, default: false, stemCells: [] } : entry;
  });
  return { ...manifest, runtimes: { ...manifest.runtimes, [family]: moved } };
}

/** Compares the versions of two kinds of a family, number by number. */
export function compareKinds(a: string, b: string): number {
  return a.localeCompare(b, 'en', { numeric: true });
}

/** All kinds of a manifest, in its order. */
export function kindsOf(manifest: RuntimeManifest): string[] {
  return Object.values(manifest.runtimes).flatMap((entries) => entries.map((entry) => entry.kind));
}

/**
 * The entry that a kind given by a user means: an exact kind, `<family>:default`, or a major version
 * (`python:3`) that the family's default belongs to. Trims and lower-cases. Undefined if there is none.
 */
export function resolveKind(manifest: RuntimeManifest, given: string): RuntimeEntry | undefined {
  const kind = given.trim().toLowerCase();
  const family = kind.split(':')[0] ?? '';
  const entries = manifest.runtimes[family] ?? [];
  const exact = entries.find((entry) => entry.kind === kind);
  if (exact) return exact;
  const preferred = entries.find((entry) => entry.default) ?? entries[0];
  if (kind === `${family}:default`) return preferred;
  return preferred?.kind.startsWith(`${kind}.`) ? preferred : undefined;
}

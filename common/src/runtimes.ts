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
  attached?: { attachmentName: string; attachmentType: string };
  requireMain: boolean;
  sentinelledLogs: boolean;
  stemCells: StemCell[];
}

/** The runtimes manifest: families of kinds. */
export interface RuntimeManifest {
  runtimes: Record<string, RuntimeEntry[]>;
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

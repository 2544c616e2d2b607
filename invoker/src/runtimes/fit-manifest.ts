import type { RuntimeEntry, RuntimeManifest } from '@gpuwhisk/common/runtimes';

/** What was found on the machine. */
export interface MachineRuntimes {
  /** Versions of the other families that the machine has, such as `{python: '3.11', java: '17'}`. */
  versions: Readonly<Record<string, string>>;
}

/**
 * The manifest as it holds on this machine. Node.js is as it is listed, since any release can be fetched; an entry such as `python:3` becomes the minor version that the machine has; entries of
 * versions and families that it lacks are left out, unless they bring a command of their own.
 */
export function fitManifest(manifest: RuntimeManifest, machine: MachineRuntimes): RuntimeManifest {
  const families = Object.entries(manifest.runtimes)
    .map(([family, entries]) => [family, fitFamily(family, entries, machine)] as const)
    .filter(([, entries]) => entries.length > 0);
  return { ...manifest, runtimes: Object.fromEntries(families) };
}

function fitFamily(family: string, entries: RuntimeEntry[], machine: MachineRuntimes): RuntimeEntry[] {
  if (family === 'nodejs') return entries;
  const version = machine.versions[family];
  const fitted = entries.flatMap((entry) => {
    if (entry.command) return [entry];
    const listed = entry.kind.slice(family.length + 1);
    if (version === listed) return [entry];
    return version?.startsWith(`${listed}.`) ? [withVersion(entry, family, listed, version)] : [];
  });
  const kept = fitted.filter((entry, at) => fitted.findIndex((other) => other.kind === entry.kind) === at);
  if (kept.some((entry) => entry.default)) return kept;
  return kept.map((entry, at) => ({ ...entry, default: at === 0 }));
}

function withVersion(entry: RuntimeEntry, family: string, listed: string, version: string): RuntimeEntry {
  const { image } = entry;
  const name = image.name.endsWith(`v${listed}`) ? image.name.slice(0, -listed.length) + version : image.name;
  return { ...entry, kind: `${family}:${version}`, image: { ...image, name } };
}

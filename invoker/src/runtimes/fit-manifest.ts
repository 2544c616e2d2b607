import type { RuntimeEntry, RuntimeManifest } from '@gpuwhisk/common/runtimes';

/** What was found on the machine. */
export interface MachineRuntimes {
  /** Major version of the platform's own Node.js. */
  nodeMajor: number;
  /** Minor version of Python 3; absent if there is none. */
  pythonMinor?: number;
}

/**
 * The manifest as it holds on this machine: the platform's own Node.js is the default kind, where it is listed,
 * and has the stem cells; Python is named by its minor version, or left out.
 */
export function fitManifest(manifest: RuntimeManifest, machine: MachineRuntimes): RuntimeManifest {
  const { python, ...families } = manifest.runtimes;
  return {
    runtimes: {
      ...families,
      nodejs: preferKind(families.nodejs ?? [], `nodejs:${machine.nodeMajor}`),
      ...(python && machine.pythonMinor !== undefined
        ? { python: python.map((entry) => withPythonMinor(entry, machine.pythonMinor)) }
        : {}),
    },
  };
}

function preferKind(entries: RuntimeEntry[], kind: string): RuntimeEntry[] {
  if (!entries.some((entry) => entry.kind === kind)) return entries;
  const stemCells = entries.find((entry) => entry.default)?.stemCells ?? [];
  return entries.map((entry) => {
    const preferred = entry.kind === kind;
    return { ...entry, default: preferred, stemCells: preferred ? stemCells : [] };
  });
}

function withPythonMinor(entry: RuntimeEntry, minor: number | undefined): RuntimeEntry {
  if (entry.kind !== 'python:3') return entry;
  return { ...entry, kind: `python:3.${minor}`, image: { ...entry.image, name: `action-python-v3.${minor}` } };
}

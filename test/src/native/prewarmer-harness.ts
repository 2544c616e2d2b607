import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { createRuntimeCatalog } from '@gpuwhisk/invoker/runtimes/create-runtime-catalog';
import type { RuntimeLaunch } from '@gpuwhisk/invoker/containers/runtime-launch';
import { RuntimeProcess } from '../runtimes/runtime-harness.js';

const runtimesDir = fileURLToPath(new URL('../../../runtimes', import.meta.url));

/** A kind of this machine, and the folder of its runtime; undefined if the machine lacks the language. */
export interface Language {
  kind: string;
  launch(): Promise<RuntimeLaunch>;
  remove(): void;
}

/** Finds the runtime of `family`. */
export async function findLanguage(family: 'nodejs' | 'java'): Promise<Language | undefined> {
  const dataDir = mkdtempSync(join(tmpdir(), 'gpuwhisk-prewarmer-'));
  const catalog = await createRuntimeCatalog({ runtimesDir, dataDir, clock: systemClock });
  const own = `nodejs:${process.versions.node.split('.')[0]}`;
  const entries = catalog.manifest.runtimes[family] ?? [];
  const kind = entries.find((entry) => family !== 'nodejs' || entry.kind === own)?.kind;
  if (kind === undefined) return undefined;
  return {
    kind,
    launch: () => catalog.launch(kind, [], 256),
    remove: () => rmSync(dataDir, { recursive: true, force: true }),
  };
}

/** A pre-warmer that has said hello; the caller closes it. `scratch` are folders that an unload empties. */
export async function startPrewarmer(
  launch: RuntimeLaunch,
  { scratch = [] }: { scratch?: readonly string[] } = {},
): Promise<RuntimeProcess> {
  const runtime = new RuntimeProcess(launch, { GPUWHISK_PREWARM: 'true', GPUWHISK_SCRATCH: scratch.join(':') });
  await runtime.frame((frame) => frame.type === 1);
  return runtime;
}

/** The environment of an init in `namespace`. */
export function envOf(namespace: string): Record<string, string> {
  return { __OW_NAMESPACE: namespace };
}

/** Two folders, the first with a file in it; `remove` deletes both. */
export function makeScratch(): { folders: string[]; remove: () => void } {
  const root = mkdtempSync(join(tmpdir(), 'gpuwhisk-scratch-'));
  const folders = ['a', 'b'].map((name) => join(root, name));
  for (const folder of folders) mkdirSync(folder);
  writeFileSync(join(root, 'outside'), 'stays');
  writeFileSync(join(root, 'a', 'before'), 'stays');
  return { folders, remove: () => rmSync(root, { recursive: true, force: true }) };
}

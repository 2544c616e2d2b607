import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { JsonObject } from '@gpuwhisk/common/json';
import type { Prewarmer } from '@gpuwhisk/common/prewarmer';
import { parseManifest, withDefaultThere } from '@gpuwhisk/common/runtimes';
import type { ApiActivation } from './api-client.js';
import { until } from './running-platform.js';
import type { RunningPlatform } from './running-platform.js';

const own = fileURLToPath(new URL('../../../runtimes/runtimes.json', import.meta.url));
/** A runtime may be compiled before its first stem cell starts. */
const readyMs = 60_000;

/** Another namespace's `uuid:key`: whisk.system's. */
export const otherAuth =
  '789c46b1-71f6-4ed5-8c54-816aa4f8c502:abczO3xZCLrMN6v2BKK1dXYFpXlPkccOFqm12CdAsMgRU4VrNZ9lyGVCGuMDGIwP';

/** The containers that are ready for a future action. */
export async function prewarmersOf({ api, operatorAuth }: RunningPlatform): Promise<Prewarmer[]> {
  const { status, body } = await api.as(operatorAuth).request<Prewarmer[]>('GET', '../admin/prewarmers');
  if (status !== 200) throw new Error(`Listing them was answered with ${status}.`);
  return body;
}

/** The repository's manifest with this Node.js as the default: as an operator's file, its default would be fetched. */
export function ownManifest(): { runtimes: Record<string, JsonObject[]> } {
  const [major = ''] = process.versions.node.split('.');
  const manifest = withDefaultThere(parseManifest(readFileSync(own, 'utf8'), own), 'nodejs', [major]);
  return JSON.parse(JSON.stringify(manifest)) as { runtimes: Record<string, JsonObject[]> };
}

/**
 * Writes the repository's manifest with a stem cell for each of these families' default kinds, and none for other
 * kinds.
 */
export function manifestWithStemCells(folder: string, families: readonly string[]): string {
  const manifest = ownManifest();
  for (const [family, entries] of Object.entries(manifest.runtimes)) {
    const stemCells = families.includes(family) ? [{ initialCount: 1, memory: '256 MB' }] : [];
    manifest.runtimes[family] = entries.map((entry) => ({
      ...entry,
      stemCells: entry.default === true ? stemCells : [],
    }));
  }
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const file = join(folder, 'runtimes.json');
  writeFileSync(file, JSON.stringify(manifest));
  return file;
}

async function readyStarts(url: string, kind: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const lines = ['prewarmed', 'injected'].flatMap((start) =>
    text.split('\n').filter((each) => each.includes(`kind="${kind}",start="${start}"`)),
  );
  return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}

/** Invokes new actions until a stem cell serves one, and resolves with the record of that one. */
export async function servedByStemCell(
  { api, url }: RunningPlatform,
  kind: string,
  exec: JsonObject,
  payload: JsonObject,
): Promise<ApiActivation> {
  const before = await readyStarts(url, kind);
  let record: ApiActivation | undefined;
  let tries = 0;
  const served = async (): Promise<boolean> => {
    const name = `${kind.replace(':', '-')}-${++tries}`;
    await api.request('PUT', `_/actions/${name}`, { exec });
    ({ record } = await api.run(name, payload));
    return (await readyStarts(url, kind)) > before;
  };
  await until(`a stem cell of ${kind} serves an action`, served, readyMs);
  return record as ApiActivation;
}

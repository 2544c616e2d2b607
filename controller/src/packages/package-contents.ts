import type { PackageBinding } from '@gpuwhisk/common/entities/package';
import { packageId } from '@gpuwhisk/common/entities/package-codec';
import { isJsonObject } from '@gpuwhisk/common/json';
import type { JsonValue } from '@gpuwhisk/common/json';
import type { ArtifactStore } from '@gpuwhisk/common/store/artifact-store';
import { afterAll } from '../http/view-range.js';

/** An action as its package shows it. */
export interface PackagedAction {
  name: string;
  version: JsonValue;
  annotations: JsonValue;
}

/** The actions of a package, last written first. */
export async function packageContents(store: ArtifactStore, name: PackageBinding): Promise<PackagedAction[]> {
  const path = packageId(name);
  const range = { view: 'actions', startKey: [path, 0], endKey: [path, afterAll, afterAll] } as const;
  const rows = await store.query('whisks', { ...range, descending: true });
  return rows.flatMap(({ value }) => {
    if (!isJsonObject(value) || typeof value.name !== 'string') return [];
    return [{ name: value.name, version: value.version ?? null, annotations: value.annotations ?? [] }];
  });
}

/** Whether an action is a feed: it has the annotation, whatever its value. */
export function isFeed({ annotations }: PackagedAction): boolean {
  return Array.isArray(annotations) && annotations.some((each) => isJsonObject(each) && each.key === 'feed');
}

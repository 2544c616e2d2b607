import { saturationOf, stretchTable } from '../model/gpu-model.js';
import type { CatalogueEntry } from '../workloads/catalogue.js';
import { invented } from '../workloads/catalogue.js';

/**
 * An entry with every invented figure multiplied by `factor`: its memory (at most `mostMiB`), the share
 * that it fills, its traffic.
 */
export function perturbed(entry: CatalogueEntry, factor: number, mostMiB: number): CatalogueEntry {
  const { sources, model } = entry;
  const isOurs = (source: string): boolean => source === invented;
  const saturation = Math.min(1, model.saturation * factor);
  const stretch = isOurs(sources.stretch) ? stretchTable((share) => Math.max(1, saturation / share)) : model.stretch;
  const traffic = isOurs(sources.traffic) ? factor : 1;
  return {
    ...entry,
    memoryMiB: isOurs(sources.memoryMiB) ? Math.min(mostMiB, Math.round(entry.memoryMiB * factor)) : entry.memoryMiB,
    model: {
      ...model,
      stretch,
      saturation: saturationOf(stretch),
      l2Util: Math.min(1, model.l2Util * traffic),
      dramUtil: Math.min(1, model.dramUtil * traffic),
    },
  };
}

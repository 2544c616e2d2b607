import type { ContainerSpec, GpuGrant, Match } from './container-factory.js';

/**
 * How well a container made for `prewarmed` serves `wanted`. Only what was loaded ahead may differ: a subset of the
 * wanted imports still has to load the rest; and a GPU's share may be larger than wanted.
 */
export function matchSpecs(prewarmed: ContainerSpec, wanted: ContainerSpec): Match {
  const same =
    prewarmed.kind === wanted.kind &&
    prewarmed.memoryMiB === wanted.memoryMiB &&
    prewarmed.concurrency === wanted.concurrency &&
    prewarmed.requirements.join(' ') === wanted.requirements.join(' ');
  if (!same || (prewarmed.cuda && !wanted.cuda)) return 'none';
  const gpu = matchGrants(prewarmed.gpu, wanted.gpu);
  const imports = new Set(wanted.imports);
  if (gpu === 'none' || !prewarmed.imports.every((name) => imports.has(name))) return 'none';
  const isExact = prewarmed.imports.length === imports.size && prewarmed.cuda === wanted.cuda && gpu === 'exact';
  return isExact ? 'exact' : 'subset';
}

/** A process keeps the device, the class and the memory limit that it was started with. */
function matchGrants(had: GpuGrant | undefined, wanted: GpuGrant | undefined): Match {
  if (had === undefined || wanted === undefined) return had === wanted ? 'exact' : 'none';
  const { share } = had;
  const isEnough = share.shareClass >= wanted.share.shareClass && share.memoryMiB >= wanted.share.memoryMiB;
  if (had.device !== wanted.device || had.slice !== wanted.slice || !isEnough) return 'none';
  const isEqual = share.shareClass === wanted.share.shareClass && share.memoryMiB === wanted.share.memoryMiB;
  return isEqual ? 'exact' : 'subset';
}

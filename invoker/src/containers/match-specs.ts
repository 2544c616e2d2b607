import type { ContainerSpec, GpuGrant, Match } from './container-factory.js';

/**
 * How well a container made for `prewarmed` serves `wanted`. Only what was loaded ahead may differ: a subset of the
 * wanted imports still has to load the rest.
 */
export function matchSpecs(prewarmed: ContainerSpec, wanted: ContainerSpec): Match {
  const same =
    prewarmed.kind === wanted.kind &&
    prewarmed.memoryMiB === wanted.memoryMiB &&
    prewarmed.concurrency === wanted.concurrency &&
    prewarmed.requirements.join(' ') === wanted.requirements.join(' ');
  if (!same || (prewarmed.cuda && !wanted.cuda)) return 'none';
  const imports = new Set(wanted.imports);
  if (!isSameGrant(prewarmed.gpu, wanted.gpu) || !prewarmed.imports.every((name) => imports.has(name))) return 'none';
  const isExact = prewarmed.imports.length === imports.size && prewarmed.cuda === wanted.cuda;
  return isExact ? 'exact' : 'subset';
}

/**
 * A process keeps the devices, the class and the memory limit that it was started with: in one of a larger class a function
 * would take from its neighbours what they were promised, in one of a smaller memory limit fail.
 */
function isSameGrant(had: GpuGrant | undefined, wanted: GpuGrant | undefined): boolean {
  if (had === undefined || wanted === undefined) return had === wanted;
  const { shareClass, memoryMiB } = wanted.share;
  const isSame = had.share.shareClass === shareClass && had.share.memoryMiB === memoryMiB;
  return isSame && had.devices.join(' ') === wanted.devices.join(' ') && had.slice === wanted.slice;
}

import type { ContainerSpec, Match } from './container-factory.js';

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
  if (!prewarmed.imports.every((name) => imports.has(name))) return 'none';
  return prewarmed.imports.length === imports.size && prewarmed.cuda === wanted.cuda ? 'exact' : 'subset';
}

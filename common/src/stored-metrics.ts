import type { Registry } from 'prom-client';
import { showMetricsIn } from './shown-metrics.js';
import type { ArtifactStore } from './store/artifact-store.js';

/** Namespaces that are shown, those with the most bytes. */
const mostShown = 50;

/** Shows in `registry` the bytes that namespaces have stored, as `gpuwhisk_controller_stored_bytes`. */
export function showStored(registry: Registry, store: Pick<ArtifactStore, 'storedNamespaces'>): void {
  const help = `What namespaces have stored, of the ${mostShown} with the most`;
  const values = (): [Record<string, string>, number][] =>
    largest(store.storedNamespaces()).map(([namespace, bytes]) => [{ namespace }, bytes]);
  showMetricsIn(registry).gauge('gpuwhisk_controller_stored_bytes', help, values, ['namespace']);
}

/** The largest of many, in no order. */
function largest(all: Iterable<[namespace: string, bytes: number]>): [string, number][] {
  let found: [string, number][] = [];
  for (const one of all) {
    found.push(one);
    if (found.length === 2 * mostShown) found = cut(found);
  }
  return cut(found);
}

const cut = (some: [string, number][]): [string, number][] =>
  some.sort(([, one], [, other]) => other - one).slice(0, mostShown);

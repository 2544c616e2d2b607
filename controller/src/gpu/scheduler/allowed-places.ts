import { isClosedTo } from '@gpuwhisk/gpu/place/least-loaded';
import type { PlacementRequest } from '@gpuwhisk/gpu/place/least-loaded';
import type { SeenPlace } from './gpu-snapshot.js';

/**
 * The places that isolation leaves to requests, of nodes that have been heard of since they refused them, for one
 * decision: worked out once for all requests of a function.
 */
export class AllowedPlaces {
  private readonly open = new Map<string, ReadonlySet<string>>();

  /** `heardSince` gives the nodes that have been heard of since they refused, by node when, monotonic ms. */
  constructor(
    private readonly places: readonly SeenPlace[],
    private readonly heardSince: (refusedAtMs: ReadonlyMap<string, number>) => ReadonlySet<string>,
  ) {}

  /** Ids of places. */
  of(request: PlacementRequest, refusedAtMs: ReadonlyMap<string, number>): ReadonlySet<string> {
    const open = this.openTo(request);
    // All places are of nodes that are heard of.
    if (refusedAtMs.size === 0) return open;
    const heard = this.heardSince(refusedAtMs);
    const ids = this.places.filter(({ place, gpu }) => open.has(gpu.id) && heard.has(place.node.invoker));
    return new Set(ids.map(({ gpu }) => gpu.id));
  }

  private openTo(request: PlacementRequest): ReadonlySet<string> {
    const { action, namespace, isolation, gpus } = request;
    const key = JSON.stringify([action, namespace, isolation, gpus]);
    let open = this.open.get(key);
    if (open === undefined) {
      const places = this.places.filter(({ place, occupants }) => !isClosedTo(place, occupants, request));
      open = new Set(places.map(({ gpu }) => gpu.id));
      this.open.set(key, open);
    }
    return open;
  }
}

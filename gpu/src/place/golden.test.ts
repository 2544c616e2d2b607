// Placements in random clusters, kept as digests: a change that alters one shows here.
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import type { NodeStatus } from '@gpuwhisk/common/gpu';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { placeLeastLoaded, placesToKeep } from './least-loaded.js';
import type { PlacementView } from './least-loaded.js';
import { settleReservations } from '../view/occupancy.js';
import type { Reservation } from '../view/occupancy.js';
import { walkCluster } from './random-cluster.js';
import type { PlacerOnTrial } from './random-cluster.js';

const seeds = Array.from({ length: 60 }, (_, at) => at + 1);

function leastLoaded(): PlacerOnTrial {
  const rows = new Map<string, NodeStatus>();
  let reservations: Reservation[] = [];
  const view = (kept: ReadonlySet<string>): PlacementView => ({
    nodes: [...rows.values()].sort((one, other) => (one.invoker < other.invoker ? -1 : 1)),
    ...{ reservations, kept, epoch: 1, at: 0 },
  });
  return {
    heard(node) {
      rows.set(node.invoker, node);
      reservations = settleReservations(reservations, node);
    },
    silent: (invoker) => void rows.delete(invoker),
    place(activationId, request, kept) {
      const choice = placeLeastLoaded(view(kept), request);
      const { placement, reuses } = choice;
      const { action, namespace, subject, isolation } = request;
      if (placement !== undefined) {
        reservations.push({
          ...{ activationId, action, namespace, isolation, placement, ended: false },
          ...(subject !== undefined && { subject }),
          ...(reuses !== undefined && { reuses }),
        });
      }
      return choice;
    },
    placesToKeep: (request, kept) => placesToKeep(view(kept), request),
    ended(id) {
      reservations = reservations.map((one) => (one.activationId === id ? { ...one, ended: true } : one));
    },
    returned(id) {
      reservations = reservations.filter(({ activationId }) => activationId !== id);
    },
  };
}

function digestOf(seed: number): string {
  const digest = createHash('sha256');
  let placed = 0;
  let refused = 0;
  walkCluster(seededRandom(seed), leastLoaded(), 400, ({ placement, reuses }, kept) => {
    if (placement === undefined) refused += 1;
    else placed += 1;
    digest.update(JSON.stringify([placement, reuses, kept]));
  });
  return `${digest.digest('hex').slice(0, 12)}, ${placed} placed, ${refused} refused`;
}

const found = Object.fromEntries(seeds.map((seed) => [seed, digestOf(seed)]));
const kept = new URL('../../src/place/golden-placements.json', import.meta.url);

test('the least loaded place is found where it was', () => {
  // For a change that is meant to change them, and says why.
  if (process.env['GOLDEN_UPDATE'] === '1') writeFileSync(kept, `${JSON.stringify(found, undefined, 2)}\n`);
  expect(found).toEqual(JSON.parse(readFileSync(kept, 'utf8')));
});

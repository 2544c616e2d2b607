// Placements in random clusters, kept as digests: a change that alters one shows here.
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import type { NodeStatus, Placement } from '@gpuwhisk/common/gpu';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { placeLeastLoaded, placesToKeep } from '../stages/place/least-loaded.js';
import type { PlacementLimits } from '../stages/place/least-loaded.js';
import { Ledger } from '../ledger/ledger.js';
import type { Occupant } from '../ledger/occupancy.js';
import { walkCluster } from '../testing/random-cluster.js';
import type { PlacerOnTrial } from '../testing/random-cluster.js';

const seeds = Array.from({ length: 60 }, (_, at) => at + 1);

function leastLoaded(ledger = new Ledger()): PlacerOnTrial {
  const limits = (kept: ReadonlySet<string>): PlacementLimits => ({ kept, isOpen: () => true });
  return {
    heard: (node) => void ledger.heard(node, 0),
    silent: (invoker) => ledger.silent(invoker),
    place(activationId, request, kept) {
      const choice = placeLeastLoaded(ledger, request, limits(kept), { epoch: 1, at: 0 });
      const { placement, reuses } = choice;
      const { action, namespace, subject, isolation } = request;
      if (placement !== undefined) {
        ledger.hold(
          {
            ...{ activationId, action, namespace, isolation, placement, ended: false },
            ...(subject !== undefined && { subject }),
            ...(reuses !== undefined && { reuses }),
          },
          Infinity,
        );
      }
      return choice;
    },
    placesToKeep: (request, kept) => placesToKeep(ledger, request, limits(kept)),
    ended: (id) => ledger.end(id),
    returned: (id) => ledger.release(id),
  };
}

/** With its fields in one order, whatever they were set in. */
function inOrder({ invoker, devices, slice, share, reclaim, joins, simulated, at, epoch, version }: Placement): object {
  return { invoker, devices, slice, share, reclaim, joins, simulated, at, epoch, version };
}

function digestOf(seed: number): string {
  const digest = createHash('sha256');
  let placed = 0;
  let refused = 0;
  walkCluster(seededRandom(seed), leastLoaded(), 400, ({ placement, reuses }, kept) => {
    if (placement === undefined) refused += 1;
    else placed += 1;
    digest.update(JSON.stringify([placement && inOrder(placement), reuses, kept]));
  });
  return `${digest.digest('hex').slice(0, 12)}, ${placed} placed, ${refused} refused`;
}

const found = Object.fromEntries(seeds.map((seed) => [seed, digestOf(seed)]));
const kept = new URL('../../src/policies/golden-placements.json', import.meta.url);

test('the least loaded place is found where it was', () => {
  // For a change that is meant to change them, and says why.
  if (process.env['GOLDEN_UPDATE'] === '1') writeFileSync(kept, `${JSON.stringify(found, undefined, 2)}\n`);
  expect(found).toEqual(JSON.parse(readFileSync(kept, 'utf8')));
});

/** The accounts, with those who are on each place in the order of their names. */
function countedIn(ledger: Ledger): unknown {
  const byId = (all: readonly object[]): unknown =>
    (all as readonly Occupant[]).toSorted((a, b) => (a.id < b.id ? -1 : 1));
  return ledger.accounts().map(({ occupants, staying, ...sums }) => ({
    ...{ ...sums, occupants: byId(occupants), staying: byId(staying) },
  }));
}

test('accounts that are kept up to date are those that are counted from nothing', () => {
  for (const seed of seeds.slice(0, 20)) {
    const kept = new Ledger();
    const rows = new Map<string, NodeStatus>();
    const placer = leastLoaded(kept);
    const watched: PlacerOnTrial = {
      ...placer,
      heard(node) {
        rows.set(node.invoker, node);
        placer.heard(node);
      },
      silent(invoker) {
        rows.delete(invoker);
        placer.silent(invoker);
      },
    };
    walkCluster(seededRandom(seed), watched, 200, () => {
      const fresh = new Ledger();
      for (const account of kept.accounts()) {
        for (const one of kept.heldOn(account.id)) fresh.hold({ ...one }, Infinity);
      }
      for (const row of rows.values()) fresh.heard(row, 0);
      expect(countedIn(kept)).toEqual(countedIn(fresh));
    });
  }
});

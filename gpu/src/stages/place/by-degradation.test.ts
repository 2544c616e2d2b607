// The cheapest place by figures that are kept, against a look at each place by itself.
import { expect, test } from '@jest/globals';
import type { NodeStatus } from '@gpuwhisk/common/gpu';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { degradationDefaults } from '../../algorithms/smore/degradation-plan.js';
import type { DegradationModel } from '../../predict/degradation.js';
import { walkCluster } from '../../testing/random-cluster.js';
import type { PlacementChoice, PlacementRequest } from '../../ledger/account.js';
import { Ledger } from '../../ledger/ledger.js';
import { functionKey } from '../../ledger/occupancy.js';
import type { Task, WorkloadState } from '../../view/view.js';
import { reservationOf } from './bind.js';
import { placeByDegradation } from './by-degradation.js';
import type { PlacementLimits } from './candidate.js';
import { placesToKeep } from './least-loaded.js';
import { costOf, PlaceCosts } from './place-costs.js';
import { SetEffects } from './set-effects.js';

/** Larger numbers in a name do more harm, and none is as much as another. */
const byName: DegradationModel = {
  term: (victim, neighbour, neighbours) => {
    const number = (name: string): number => Number(/\d+/.exec(name)?.[0] ?? 0) + 1;
    return (number(victim.name) * Math.sqrt(number(neighbour.name)) * neighbour.share) / (200 * neighbours);
  },
};

/** Devices whose number is odd have a workload; in some seconds one of them is too slow. */
function workloadsOn(nodes: Iterable<NodeStatus>, at: number): WorkloadState[] {
  const devices = [...nodes].flatMap((node) => node.devices.map(({ uuid }) => ({ node: node.invoker, uuid })));
  return devices.flatMap(({ node, uuid }, index): WorkloadState[] => {
    if (index % 2 === 0) return [];
    const measured = (Math.floor(at / 1000) + index) % 5 === 0 ? 0.2 : 0.01;
    return [{ id: `w${index}`, name: `m${index % 3}`, node, device: uuid, tolerated: 0.1, measured }];
  });
}

test.each([
  ['instances first', degradationDefaults],
  ['by cost alone', { ...degradationDefaults, warmFirst: 0 }],
])('no other place that would do is better than the chosen one: %s', (_, settings) => {
  let placed = 0;
  for (let seed = 1; seed <= 20; seed += 1) {
    const random = seededRandom(seed);
    const ledger = new Ledger();
    const effects = new SetEffects(() => byName);
    const costs = new PlaceCosts(effects, settings);
    const rows = new Map<string, NodeStatus>();
    const risky = new Set<string>();
    let now = 0;
    const search = { effects, costs, settings, takesFirst: false, risky };

    const choose = (
      task: Task,
      request: PlacementRequest,
      kept: ReadonlySet<string>,
      only?: string,
    ): PlacementChoice => {
      const limits: PlacementLimits = {
        kept,
        isOpen: () => true,
        ...(only !== undefined && { allowed: new Set([only]) }),
      };
      return placeByDegradation(ledger, task, request, limits, { epoch: 1, at: now }, search);
    };
    /** Whether a place would do, and its rank. */
    const rankOf = (task: Task, request: PlacementRequest, kept: ReadonlySet<string>, order: number): number[] => {
      const account = ledger.accounts()[order]!;
      const { placement, reuses } = choose(task, request, kept, account.id);
      if (placement === undefined) return [];
      const newcomer = effects.newcomer(functionKey(request), Math.round(request.share.smLimit * 1000));
      const cost = costOf(effects.effectOn(account, newcomer), account.busy, settings);
      const isCold = settings.warmFirst > 0 && reuses === undefined;
      const isRisky = risky.has(account.id);
      return [Number(isRisky), Number(isCold), Number(placement.reclaim !== undefined), cost, order];
    };

    walkCluster(
      random,
      {
        heard(row) {
          ledger.heard(row, 0);
          rows.set(row.invoker, row);
        },
        silent(invoker) {
          ledger.silent(invoker);
          rows.delete(invoker);
        },
        place(id, request, kept) {
          now += 300;
          const drawn = random.uint32() % 16;
          if (drawn === 0) risky.clear();
          if (drawn === 1) for (const one of ledger.accounts().slice(0, 1)) risky.add(one.id);
          effects.begin(now, workloadsOn(rows.values(), now));
          const task: Task = {
            ...{
              id,
              function: request.action,
              version: '',
              namespace: request.namespace,
              batch: 1,
              gpus: request.gpus,
            },
            ...{
              memoryMiB: request.memoryMiB,
              soloMs: 100,
              startMs: 30,
              sloMs: 160,
              arrivedAt: now,
              class: 'inference',
            },
          };
          const choice = choose(task, request, kept);
          if (request.gpus === 1) {
            const ranks = ledger.accounts().map(({ order }) => rankOf(task, request, kept, order));
            const able = ranks.filter((rank) => rank.length > 0);
            able.sort((one, other) => one.map((value, at) => value - other[at]!).find((by) => by !== 0) ?? 0);
            const best = able[0] && ledger.accounts()[able[0].at(-1)!]!;
            expect(choice.placement?.slice ?? choice.placement?.devices[0]).toBe(best?.id);
            placed += best === undefined ? 0 : 1;
          }
          if (choice.placement !== undefined) {
            ledger.hold(reservationOf(id, request, { ...choice, placement: choice.placement }), Infinity);
          }
          return choice;
        },
        placesToKeep: (request, kept) => placesToKeep(ledger, request, { kept, isOpen: () => true }),
        ended: (id) => ledger.end(id),
        returned: (id) => ledger.release(id),
      },
      200,
      () => undefined,
    );
  }
  expect(placed).toBeGreaterThan(500);
});

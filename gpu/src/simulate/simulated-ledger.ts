import { groupedBy } from '@gpuwhisk/common/collections';
import { Ledger } from '../ledger/ledger.js';
import type { OpenLedger } from '../ledger/used-places.js';
import { nodeRow } from './node-rows.js';
import type { ReportedPlace } from './node-rows.js';

/** What a place is told by. Its lists are made again when they change. */
type Told = Pick<ReportedPlace, 'running' | 'idle' | 'isClosed' | 'id'>;

/** The ledger of simulated nodes. It hears of a node when something there has changed. */
export class SimulatedLedger {
  private readonly ledger = new Ledger();
  /** By node, its places as they were told last. */
  private readonly told = new Map<string, readonly Told[]>();

  /** The ledger at `at`, ms. What decisions have held before is released, as all that began is in the rows. */
  open(places: readonly ReportedPlace[], at: number): OpenLedger {
    for (const { activationId } of this.ledger.reservations()) this.ledger.release(activationId);
    const byNode = groupedBy(places, ({ node }) => node);
    for (const [node, there] of byNode) {
      if (isTold(this.told.get(node), there)) continue;
      this.ledger.heard(nodeRow(node, there, at), at);
      this.told.set(
        node,
        there.map(({ id, running, idle, isClosed }) => ({
          id,
          running,
          ...(idle && { idle }),
          ...(isClosed && { isClosed }),
        })),
      );
    }
    for (const node of this.told.keys()) {
      if (byNode.has(node)) continue;
      this.ledger.silent(node);
      this.told.delete(node);
    }
    return { ledger: this.ledger, isOpen: () => true, epoch: 0 };
  }
}

function isTold(told: readonly Told[] | undefined, places: readonly ReportedPlace[]): boolean {
  if (told?.length !== places.length) return false;
  return places.every(({ id, running, idle, isClosed = false }, at) => {
    const one = told[at];
    return one?.id === id && one.running === running && one.idle === idle && (one.isClosed ?? false) === isClosed;
  });
}

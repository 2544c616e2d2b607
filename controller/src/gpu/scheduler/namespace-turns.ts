import { servesSeveral, waitsForNamespaces } from '@gpuwhisk/gpu/stages/place/namespace-turns';
import type { WaitingRequest } from '@gpuwhisk/gpu/stages/place/namespace-turns';
import type { Task, View } from '@gpuwhisk/gpu/view/view';
import type { Logger } from '@gpuwhisk/common/logging';
import { every } from '@gpuwhisk/common/system/clock';
import type { Clock, Timer } from '@gpuwhisk/common/system/clock';
import type { DesiredState } from '../state/desired-state.js';

/** Dependencies of NamespaceTurns. */
interface NamespaceTurnsParts {
  scheduler: {
    /** Undefined while another controller is the leader. */
    readonly epoch: number | undefined;
    /** Number of queued activations. */
    readonly waiting: number;
    view(): Pick<View, 'waiting' | 'ledger'>;
  };
  desired: Pick<DesiredState, 'timeSlices' | 'setTimeSlices'>;
  clock: Clock;
  logger: Logger;
}

/** Interval of looks, and how long time slices stay after the last need of them, ms. */
const [lookMs, stayMs] = [1000, 600_000];
/** Looks in a row at which something must wait before a device changes. */
const waitingLooks = 2;
/** Most waiting requests that a look compares with the devices. */
const maxRequests = 64;

/**
 * Has devices under MPS go over to time slices while several namespaces whose functions may not share an MPS server use
 * them, so that they run at once as they did without MPS. Nodes change only devices where the platform has chosen MPS by
 * itself. A namespace whose share is bounded runs only where shares are enforced: while one of its requests waits, devices
 * go back.
 */
export class NamespaceTurns {
  private timer: Timer | undefined;
  /** By device under MPS, looks in a row at which a request waited for another namespace. */
  private readonly looks = new Map<string, number>();
  /** By device in time slices, when several namespaces last ran there, monotonic ms. */
  private readonly neededMs = new Map<string, number>();

  constructor(private readonly parts: NamespaceTurnsParts) {}

  open(): void {
    this.timer = every(this.parts.clock, lookMs, () => this.look());
  }

  close(): void {
    this.timer?.cancel();
  }

  /** One look at what waits and runs. Does nothing where another controller is the leader. */
  look(): void {
    const { scheduler, desired, clock } = this.parts;
    const sliced = desired.timeSlices;
    if (scheduler.epoch === undefined || (scheduler.waiting === 0 && sliced.size === 0)) {
      this.looks.clear();
      this.neededMs.clear();
      return;
    }
    const { waiting: tasks, ledger: open } = scheduler.view();
    const accounts = open.ledger.accounts().filter(({ place }) => open.isOpen(place.node.invoker));
    const waiting = tasks.slice(0, maxRequests).flatMap(waitingOf);
    const needsShares = waiting.some(({ request }) => request.isBounded);
    const nowMs = clock.monotonicMs();
    for (const account of accounts) {
      const { device, slice, node } = account.place;
      if (slice !== undefined) continue;
      const { uuid } = device;
      if (sliced.has(uuid)) {
        const sinceMs = servesSeveral(account) ? nowMs : (this.neededMs.get(uuid) ?? nowMs);
        this.neededMs.set(uuid, sinceMs);
        if (needsShares || nowMs - sinceMs >= stayMs) this.set(node.invoker, uuid, false);
        continue;
      }
      const isHeld = !needsShares && waitsForNamespaces(account, waiting);
      const looks = isHeld ? (this.looks.get(uuid) ?? 0) + 1 : 0;
      this.looks.set(uuid, looks);
      if (looks >= waitingLooks) this.set(node.invoker, uuid, true);
    }
    const known = new Set(accounts.map(({ id }) => id));
    for (const uuid of this.looks.keys()) if (!known.has(uuid)) this.looks.delete(uuid);
    for (const uuid of this.neededMs.keys()) if (!known.has(uuid)) this.neededMs.delete(uuid);
  }

  private set(invoker: string, device: string, are: boolean): void {
    this.looks.delete(device);
    this.neededMs.delete(device);
    const { desired, logger } = this.parts;
    desired
      .setTimeSlices(invoker, device, are)
      .catch((error: unknown) =>
        logger.warn({ invoker, device, error: String(error) }, 'time slices of a GPU could not be asked for or ended'),
      );
  }
}

function waitingOf({ request, sloMs }: Task): WaitingRequest[] {
  return request === undefined ? [] : [{ request, isStrict: sloMs !== undefined }];
}

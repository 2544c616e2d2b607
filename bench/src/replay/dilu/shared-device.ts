// A GPU that functions and training jobs share, in periods of the token machine.
import { columnsBytes, columnsOver, TokenMachine } from '@gpuwhisk/gpu/tokens/token-machine';
import { saturationOf, stretchAt, stretchTable } from '../model/gpu-model.js';

/** Length of a period, ms (Dilu, section 3.4.1). */
export const periodMs = 5;

/** Clients that a device has at most. */
const mostClients = 8;

/** Blocks of a client in a period alone. Only fractions of it matter here. */
const soloBlocks = 1000;

/** How the time of a piece of work depends on the share of the SMs. */
export interface ShareCurve {
  /** Alone on the whole device, ms. */
  aloneMs: number;
  /** Time at 0, 1, ... 100 % over that. */
  stretch: Float64Array;
  /** The smallest share within 2 % of the whole device's time. */
  saturation: number;
}

/** A curve from times at shares; below `leastShare`, which nothing was measured under, time goes with one over the share. */
export function shareCurve(timeMs: (share: number) => number, leastShare: number): ShareCurve {
  const stretch = stretchTable((share) =>
    share >= leastShare ? timeMs(share) : (timeMs(leastShare) * leastShare) / share,
  );
  return { aloneMs: timeMs(1), stretch, saturation: saturationOf(stretch) };
}

/** The shares of a client, fractions of the SMs. */
export interface Terms {
  request: number;
  limit: number;
  /** Part by which its launch cycles may grow before the token machine steps in; 0: it has no SLO. */
  violation: number;
}

/** `fixed`: each client may always use its limit; else kernel tokens move it, with MaxTokens as a multiple of the rate alone. */
export type Control = 'fixed' | { maxTokens: number };

/** A client of a device. */
export interface DeviceClient {
  readonly place: number;
  readonly terms: Terms;
  curve: ShareCurve;
  /** Whether it has work in this period. */
  isActive: boolean;
  /** Share of the SMs in this period; 0 if it was not active at its begin. */
  share: number;
  /** Work of this period, ms alone. */
  workedMs: number;
}

/** Work that a client does in each ms of this period, ms alone. */
export function speedOf({ curve, share }: DeviceClient): number {
  return share === 0 ? 0 : 1 / stretchAt(curve, share);
}

/**
 * A device under the model tier: active clients get the max-min fair division of the SMs among what their control and
 * their saturation allow. A token share counts as the same share of the SMs, as profiles are measured. Neighbours cost nothing
 * else.
 */
export class SharedDevice {
  private readonly columns = columnsOver(new ArrayBuffer(columnsBytes(mostClients)), 0, mostClients);
  private readonly machine = new TokenMachine(this.columns);
  private readonly clients: DeviceClient[] = [];
  private epoch = 0;

  constructor(private readonly control: Control) {}

  /** A new client. Throws RangeError for one too many. */
  add(terms: Terms, curve: ShareCurve): DeviceClient {
    const place = this.columns.epoch.indexOf(0);
    if (place < 0) throw new RangeError(`a device has ${mostClients} clients at most`);
    this.epoch += 1;
    const { request, limit, violation } = terms;
    this.write(place, { epoch: this.epoch, request, limit, violation, cycles: 0, runningMs: 0, used: 0, budget: 0 });
    this.write(place, { maxTokens: soloBlocks * (this.control === 'fixed' ? 1 : this.control.maxTokens) });
    const client = { place, terms, curve, isActive: false, share: 0, workedMs: 0 };
    this.clients.push(client);
    return client;
  }

  remove(client: DeviceClient): void {
    this.clients.splice(this.clients.indexOf(client), 1);
    this.write(client.place, { epoch: 0 });
  }

  /** Divides the SMs among active clients for this period. */
  divide(): void {
    const { clients, control, columns } = this;
    let sum = 0;
    let active = 0;
    for (const one of clients) {
      one.workedMs = 0;
      one.share = 0;
      if (!one.isActive) continue;
      active += 1;
      const most = control === 'fixed' ? one.terms.limit : (columns.budget[one.place] as number) / soloBlocks;
      one.share = Math.min(1, most, one.curve.saturation);
      sum += one.share;
    }
    if (sum <= 1) return;
    clients.sort((one, other) => one.share - other.share);
    let left = 1;
    for (const one of clients) {
      if (one.share === 0) continue;
      one.share = Math.min(one.share, left / active);
      left -= one.share;
      active -= 1;
    }
  }

  /** A run of a client has ended. */
  cycle({ place }: DeviceClient, lengthMs: number, batch: number): void {
    const { cycles, cycleMs, cycleBatch } = this.columns;
    (cycles[place] as number) += 1;
    cycleMs[place] = lengthMs;
    cycleBatch[place] = batch;
  }

  /** For how long a run of a client has been under way; 0: none is. */
  running({ place }: DeviceClient, forMs: number, batch: number): void {
    this.columns.runningMs[place] = forMs;
    this.columns.runningBatch[place] = batch;
  }

  /** Ends the period: the token machine sees what was launched and decides about the next one. */
  end(): void {
    if (this.control === 'fixed' || this.clients.length === 0) return;
    for (const { place, workedMs } of this.clients) this.columns.used[place] = (workedMs / periodMs) * soloBlocks;
    this.machine.step();
  }

  private write(place: number, values: Partial<Record<keyof typeof this.columns, number>>): void {
    for (const [name, value] of Object.entries(values)) this.columns[name as keyof typeof this.columns][place] = value;
  }
}

// A cloud that is emulated with the prices, notices and revocations of PROTEAN (section 5).
import type { Logger } from '@gpuwhisk/common/logging';
import type { ProcureOptions } from '@gpuwhisk/common/procure-schema';
import type { Clock, Timer } from '@gpuwhisk/common/system/clock';
import type { Market } from '@gpuwhisk/gpu/view/decision';
import { hasSpot, isRevoked } from '@gpuwhisk/gpu/stages/procure/spot-market';
import { NoMachineError } from './provider.js';
import type { MachineNotice, Provider } from './provider.js';

/** A machine that the emulated cloud is to start. */
export interface WantedMachine {
  /** Its name, and the label `machine` of its invoker. */
  name: string;
  market: Market;
  pricePerHour: number;
}

/** Machines of the emulated cloud. */
export interface Machines {
  /** Starts a machine; resolves before its invoker is ready. */
  start(wanted: WantedMachine): Promise<void>;
  /** Ends a machine: by a signal that lets runs end, or at once (`isCut`). Resolves when it has ended. */
  stop(name: string, isCut: boolean): Promise<void>;
  /** Ends all machines. */
  close(): Promise<void>;
}

interface Rented extends WantedMachine {
  boot?: Timer;
  /** The next draw, or the end after a notice. */
  next?: Timer;
  leavesAt?: number;
}

/**
 * An emulated cloud over `machines`. A spot machine is revoked at the end of each interval with the configured probability,
 * and is cut off `noticeS` after the notice. Draws depend on the seed, the machine's name and the number of the interval or
 * request only.
 */
export function emulatedProvider(
  options: ProcureOptions['emulated'],
  { clock, logger, machines }: { clock: Clock; logger: Logger; machines: Machines },
): Provider {
  const { everyS, noticeS, bootS, spotPrice, onDemandPrice } = options;
  const rented = new Map<string, Rented>();
  let requests = 0;
  const ending = new Set<Promise<void>>();

  const cancel = ({ boot, next }: Rented): void => {
    boot?.cancel();
    next?.cancel();
  };
  const end = async (one: Rented, isCut: boolean): Promise<void> => {
    cancel(one);
    rented.delete(one.name);
    const ended = machines.stop(one.name, isCut);
    ending.add(ended);
    await ended.finally(() => ending.delete(ended));
  };
  const logFailure = (name: string, work: Promise<void>): void => {
    work.catch((error: unknown) => logger.error({ machine: name, error: String(error) }, 'an emulated machine failed'));
  };
  const drawNext = (one: Rented, interval: number): void => {
    one.next = clock.setBackgroundTimer(everyS * 1000, () => {
      if (!isRevoked(options, one.name, interval)) return drawNext(one, interval + 1);
      one.leavesAt = clock.now() + noticeS * 1000;
      one.next = clock.setBackgroundTimer(noticeS * 1000, () => logFailure(one.name, end(one, true)));
    });
  };

  return {
    async acquire(request, market) {
      const known = rented.get(request);
      if (known !== undefined) return { machine: known.name, pricePerHour: known.pricePerHour };
      requests += 1;
      if (market === 'spot' && !hasSpot(options, requests)) throw new NoMachineError('no spot machine is available');
      const pricePerHour = market === 'spot' ? spotPrice : onDemandPrice;
      const wanted: WantedMachine = { name: request, market, pricePerHour };
      const one: Rented = { ...wanted };
      rented.set(request, one);
      one.boot = clock.setBackgroundTimer(bootS * 1000, () => logFailure(request, machines.start(wanted)));
      if (market === 'spot') drawNext(one, 1);
      return { machine: request, pricePerHour };
    },
    async release(request, machine = request) {
      const one = rented.get(machine);
      if (one !== undefined) await end(one, false);
    },
    prices: () => Promise.resolve({ spot: spotPrice, 'on-demand': onDemandPrice }),
    notices: () => {
      const notices: MachineNotice[] = [];
      for (const { name, leavesAt } of rented.values()) {
        if (leavesAt !== undefined) notices.push({ machine: name, leavesAt });
      }
      return Promise.resolve(notices);
    },
    async close() {
      rented.forEach(cancel);
      rented.clear();
      await Promise.allSettled([...ending]);
      await machines.close();
    },
  };
}

// A provider with time limits, repeated calls, and answers that are checked.
import type { Logger } from '@gpuwhisk/common/logging';
import type { ProcureOptions } from '@gpuwhisk/common/procure-schema';
import { sleep } from '@gpuwhisk/common/system/clock';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { readName, readPrice } from './provider-answers.js';
import { NoMachineError } from './provider.js';
import type { MarketPrices, Provider, RentedMachine } from './provider.js';

/** Dependencies of boundedProvider. */
interface BoundedProviderParts {
  options: Pick<ProcureOptions, 'timeoutMs' | 'tries' | 'maxPricePerHour'>;
  clock: Clock;
  logger: Logger;
}

/** Delay before the second attempt, ms; it doubles with each further one. */
const againMs = 500;
/** Grace beyond the time limit of the provider's own calls, ms. */
const graceMs = 1000;

/**
 * `provider` with bounds. A call without an answer within the time limit fails; a call that fails is repeated, `tries` times
 * in all. A machine that is answered after its request was given up, or beside another one for the same request, is given
 * back, as is one that costs more than the operator's bound. The methods reject with the last failure; after a rejection of
 * `acquire` other than NoMachineError the caller releases the request.
 */
export function boundedProvider(provider: Provider, { options, clock, logger }: BoundedProviderParts): Provider {
  const { timeoutMs, tries, maxPricePerHour: most } = options;

  async function repeated<Result>(what: string, call: () => Promise<Result>): Promise<Result> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await within(clock, timeoutMs + graceMs, what, call());
      } catch (error) {
        if (error instanceof NoMachineError || attempt >= tries) throw error;
        logger.warn({ what, attempt, error: String(error) }, 'a call of the provider failed and is repeated');
        await sleep(clock, againMs * 2 ** (attempt - 1));
      }
    }
  }

  const release = (request: string, machine: string | undefined): Promise<void> =>
    repeated('release', () => provider.release(request, machine));

  /** Gives back a machine that nothing will use. A failure leaves it to the provider's own bill, and is logged. */
  async function drop(request: string, machine: string | undefined, why: string): Promise<void> {
    logger.warn({ request, machine, why }, 'a machine is given back unused');
    await release(request, machine).catch((error: unknown) => {
      logger.error({ request, machine, error: String(error) }, 'a machine could not be given back: end it by hand');
    });
  }

  return {
    async acquire(request, market) {
      const answers: { taken?: RentedMachine; isOver: boolean } = { isOver: false };
      const ask = async (): Promise<RentedMachine> => {
        const rented = await provider.acquire(request, market);
        readName(rented.machine);
        // Other attempts may have ended before this one.
        if (!answers.isOver && answers.taken === undefined) answers.taken = rented;
        else if (answers.taken?.machine !== rented.machine)
          void drop(request, rented.machine, 'it was answered too late');
        return rented;
      };
      const failed: unknown = await repeated('acquire', ask).then(
        () => undefined,
        (error: unknown) => error,
      );
      answers.isOver = true;
      const { taken } = answers;
      if (taken === undefined) throw failed;
      try {
        if (taken.pricePerHour !== undefined) readPrice(taken.pricePerHour, 'pricePerHour', most);
      } catch (error) {
        await drop(request, taken.machine, String(error));
        throw error;
      }
      return taken;
    },
    release,
    async prices() {
      const prices = await repeated('prices', () => provider.prices());
      return Object.fromEntries(
        Object.entries(prices).map(([market, price]) => [market, readPrice(price, market, most)]),
      ) as MarketPrices;
    },
    notices: () => repeated('notices', () => provider.notices()),
    close: async () => provider.close?.(),
  };
}

/** The result of `call`; rejects if there is none within `ms`. */
function within<Result>(clock: Clock, ms: number, what: string, call: Promise<Result>): Promise<Result> {
  return new Promise((resolve, reject) => {
    const timer = clock.setTimer(ms, () => reject(new Error(`${what}: no answer within ${ms} ms`)));
    call.then(resolve, reject).finally(() => timer.cancel());
  });
}

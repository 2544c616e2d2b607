// A provider behind programs of the operator.
import type { ProcureOptions } from '@gpuwhisk/common/procure-schema';
import { readJson, readNotices, readPrices, readRented } from './provider-answers.js';
import type { Provider } from './provider.js';

/**
 * Runs a program without a shell, with further environment variables, and resolves with its stdout. Rejects if the program
 * fails or has not ended within `timeoutMs`; then it is killed.
 */
export type RunCommand = (
  command: readonly string[],
  options: { env: Record<string, string>; timeoutMs: number },
) => Promise<string>;

/**
 * A provider whose calls run programs. A program gets what it needs in `GPUWHISK_REQUEST`, `GPUWHISK_MARKET` and
 * `GPUWHISK_MACHINE`, prints JSON, and fails with a status other than 0.
 */
export function commandProvider(
  commands: NonNullable<ProcureOptions['commands']>,
  { run, timeoutMs }: { run: RunCommand; timeoutMs: number },
): Provider {
  const answer = async (command: readonly string[], env: Record<string, string> = {}) =>
    readJson(await run(command, { env, timeoutMs }));
  const { acquire, release, prices, notices } = commands;
  return {
    acquire: async (request, market) =>
      readRented(await answer(acquire, { GPUWHISK_REQUEST: request, GPUWHISK_MARKET: market })),
    async release(request, machine = '') {
      // The status tells whether it was given back.
      await run(release, { env: { GPUWHISK_REQUEST: request, GPUWHISK_MACHINE: machine }, timeoutMs });
    },
    prices: async () => (prices === undefined ? {} : readPrices(await answer(prices))),
    notices: async () => (notices === undefined ? [] : readNotices(await answer(notices))),
  };
}

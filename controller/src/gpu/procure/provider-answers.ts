// Answers of commands and webhooks, which are JSON.
import { isJsonObject } from '@gpuwhisk/common/json';
import type { JsonValue } from '@gpuwhisk/common/json';
import { NoMachineError, ProviderAnswerError } from './provider.js';
import type { MachineNotice, MarketPrices, RentedMachine } from './provider.js';

const maxNameLength = 200;
const maxNotices = 10_000;

/** Reads JSON; an empty text is an empty object. Throws ProviderAnswerError. */
export function readJson(text: string): JsonValue {
  if (text.trim() === '') return {};
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    throw new ProviderAnswerError(`the answer is no JSON: '${text.trim().slice(0, 100)}'`);
  }
}

/** The name of a machine. Throws ProviderAnswerError. */
export function readName(value: unknown): string {
  if (typeof value === 'string' && value.trim() !== '' && value.length <= maxNameLength) return value;
  throw new ProviderAnswerError(`'machine' must be a text of 1 to ${maxNameLength} characters`);
}

/** A price of at most `most` per hour. Throws ProviderAnswerError. */
export function readPrice(value: unknown, field: string, most = Infinity): number {
  if (typeof value === 'number' && Number.isFinite(value) && value >= 0 && value <= most) return value;
  const bound = most === Infinity ? '' : ` to ${most}`;
  throw new ProviderAnswerError(`'${field}' is ${JSON.stringify(value)} instead of a price per hour from 0${bound}`);
}

/**
 * `{"machine": "i-1", "pricePerHour": 9.8}`, or `{"none": "no capacity"}`. Throws ProviderAnswerError, and NoMachineError for
 * the latter.
 */
export function readRented(answer: JsonValue): RentedMachine {
  if (!isJsonObject(answer)) throw new ProviderAnswerError('the answer is no JSON object');
  const { machine, pricePerHour, none } = answer;
  if (none !== undefined) throw new NoMachineError(String(none));
  const name = readName(machine);
  return {
    machine: name,
    ...(pricePerHour !== undefined && { pricePerHour: readPrice(pricePerHour, 'pricePerHour') }),
  };
}

/** `{"spot": 9.8, "on-demand": 32.8}`. Throws ProviderAnswerError. */
export function readPrices(answer: JsonValue): MarketPrices {
  if (!isJsonObject(answer)) throw new ProviderAnswerError('the answer is no JSON object');
  const prices: MarketPrices = {};
  for (const market of ['spot', 'on-demand'] as const) {
    const value = answer[market];
    if (value !== undefined && value !== null) prices[market] = readPrice(value, market);
  }
  return prices;
}

/**
 * `{"notices": [{"machine": "i-1", "leavesAt": "2026-01-01T00:00:00Z"}]}`, or the list alone; `leavesAt` is an ISO time or
 * epoch ms. Throws ProviderAnswerError.
 */
export function readNotices(answer: JsonValue): MachineNotice[] {
  const all = isJsonObject(answer) ? (answer.notices ?? []) : answer;
  if (!Array.isArray(all)) throw new ProviderAnswerError("'notices' is no list");
  if (all.length > maxNotices) throw new ProviderAnswerError(`there are more than ${maxNotices} notices`);
  return all.map((one) => {
    if (!isJsonObject(one)) throw new ProviderAnswerError('a notice is no JSON object');
    const { machine, leavesAt } = one;
    const at = typeof leavesAt === 'string' ? Date.parse(leavesAt) : leavesAt;
    if (typeof at !== 'number' || !Number.isFinite(at)) {
      throw new ProviderAnswerError(`'leavesAt' is ${JSON.stringify(leavesAt)} instead of a time`);
    }
    return { machine: readName(machine), leavesAt: at };
  });
}

// Who decides about kernel tokens on a node: the implementations by name, and the guard around one of a policy module.
import { tokenStates } from '@gpuwhisk/common/gpu';
import { columnNames, columnsBytes, columnsOver, TokenMachine } from './token-machine.js';
import type { TokenColumns } from './token-machine.js';

/** Decides once a period how many blocks each client may launch in the next one. */
export interface TokenPolicy {
  /** Reads the columns, and writes `budget`, `soloRate` and `state` of every client whose `epoch` is not 0. */
  step(): void;
}

/** Makes a token policy over columns with one place for each client. */
export type MakeTokenPolicy = (columns: TokenColumns) => TokenPolicy;

const known: Record<string, MakeTokenPolicy> = { dilu: (columns) => new TokenMachine(columns) };

/** Every token policy by its name. */
export const tokenPolicies: Readonly<Record<string, MakeTokenPolicy>> = known;

/** Adds a token policy; its name must be free. The result removes it. */
export function addTokenPolicy(name: string, make: MakeTokenPolicy): () => void {
  known[name] = make;
  return () => delete known[name];
}

/** Late steps in a row after which a token policy is given up. */
const mostLateSteps = 20;

/** Dependencies of a guarded token policy. */
interface TokenGuard {
  periodMs: number;
  monotonicMs(): number;
  /** Called once, with why the token policy was given up. */
  onFault(fault: string): void;
}

/**
 * A token policy that works on a copy of `columns`, of which only sound results are taken. Where it throws, writes values that
 * are no budget, rate or state, or takes longer than a period 20 times in a row, `dilu` decides from then on.
 */
export function guardedTokens(make: MakeTokenPolicy, columns: TokenColumns, guard: TokenGuard): TokenPolicy {
  const places = columns.epoch.length;
  const seen = columnsOver(new ArrayBuffer(columnsBytes(places)), 0, places);
  let policy: TokenPolicy | undefined;
  let spare: TokenPolicy | undefined;
  let late = 0;
  const attempt = (): string | undefined => {
    for (const name of columnNames) seen[name].set(columns[name]);
    const epochs = seen.epoch.slice();
    const beganMs = guard.monotonicMs();
    try {
      policy ??= make(seen);
      policy.step();
    } catch (error) {
      return error instanceof Error ? (error.stack ?? error.message) : String(error);
    }
    late = guard.monotonicMs() - beganMs > guard.periodMs ? late + 1 : 0;
    if (late >= mostLateSteps) return `${late} steps in a row took longer than ${guard.periodMs} ms`;
    const fault = faultIn(seen, epochs);
    if (fault === undefined) publish(seen, epochs, columns);
    return fault;
  };
  return {
    step() {
      const fault = spare === undefined ? attempt() : undefined;
      if (fault !== undefined) {
        spare = new TokenMachine(columns);
        guard.onFault(fault);
      }
      spare?.step();
    },
  };
}

/** Why the results of a step cannot be taken; undefined if they can. */
function faultIn({ budget, soloRate, state }: TokenColumns, epochs: Float64Array): string | undefined {
  for (const [place, epoch] of epochs.entries()) {
    if (epoch === 0) continue;
    const [blocks = NaN, rate = NaN, number = NaN] = [budget[place], soloRate[place], state[place]];
    if (!(blocks >= 1)) return `a budget is ${blocks}, and must be at least 1 block`;
    if (!(rate >= 0 && rate < Infinity)) return `a solo rate is ${rate}`;
    if (tokenStates[number] === undefined) return `a state is ${number}`;
  }
  return undefined;
}

/** Takes the results for clients that are still in their places. */
function publish(seen: TokenColumns, epochs: Float64Array, columns: TokenColumns): void {
  for (const [place, epoch] of epochs.entries()) {
    if (epoch === 0 || columns.epoch[place] !== epoch) continue;
    for (const name of ['budget', 'soloRate', 'state'] as const) columns[name][place] = seen[name][place] ?? 0;
  }
}

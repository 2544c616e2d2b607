// The deciding thread: wakes once a period and writes the budgets of the next period.
import { parentPort, workerData } from 'node:worker_threads';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { registerModules } from '@gpuwhisk/gpu/policies/policy-modules';
import { TokenMachine } from '@gpuwhisk/gpu/tokens/token-machine';
import { guardedTokens, tokenPolicies } from '@gpuwhisk/gpu/tokens/token-policies';
import type { TokenPolicy } from '@gpuwhisk/gpu/tokens/token-policies';
import { loadTokenAddon, boardOver, decidedWord } from './token-server.js';
import type { TokenServerOptions } from './token-server.js';

interface Input {
  memory: SharedArrayBuffer;
  places: number;
  addonPath: string;
  periodMs: number;
  policy: TokenServerOptions['policy'];
}

const { memory, places, addonPath, periodMs, policy } = workerData as Input;
const addon = loadTokenAddon(addonPath);
if (addon === undefined) throw new Error('The addon of kernel tokens cannot be loaded.');
const { words, columns } = boardOver(places, memory);
const machine = await openPolicy();
parentPort?.postMessage({});
for (let tick = addon.waitTick(words, 0); tick !== null; tick = addon.waitTick(words, tick)) {
  machine.step();
  Atomics.store(words, decidedWord, tick);
}

async function openPolicy(): Promise<TokenPolicy> {
  if (policy === undefined) return new TokenMachine(columns);
  await registerModules(policy.modules, (address) => import(address));
  const make = tokenPolicies[policy.name];
  if (make === undefined) throw new Error(`There is no token policy '${policy.name}'.`);
  const onFault = (fault: string): void => parentPort?.postMessage({ fault });
  return guardedTokens(make, columns, { periodMs, monotonicMs: () => systemClock.monotonicMs(), onFault });
}

// The deciding thread: wakes once a period and writes the budgets of the next period.
import { parentPort, workerData } from 'node:worker_threads';
import { TokenMachine } from '@gpuwhisk/gpu/tokens/token-machine';
import { loadTokenAddon, boardOver, decidedWord } from './token-server.js';

const { memory, places, addonPath } = workerData as { memory: SharedArrayBuffer; places: number; addonPath: string };
const addon = loadTokenAddon(addonPath);
if (addon === undefined) throw new Error('The addon of kernel tokens cannot be loaded.');
const { words, columns } = boardOver(places, memory);
const machine = new TokenMachine(columns);
parentPort?.postMessage('ready');
for (let tick = addon.waitTick(words, 0); tick !== null; tick = addon.waitTick(words, tick)) {
  machine.step();
  Atomics.store(words, decidedWord, tick);
}

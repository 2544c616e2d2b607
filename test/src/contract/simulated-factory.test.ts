import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { createSimulatedFactory } from '@gpuwhisk/invoker/containers/simulated-factory';
import type { GuestAnswer, SimulatedGuest } from '@gpuwhisk/invoker/containers/simulated-factory';
import { kind } from './container-calls.js';
import { containerFactoryContract } from './container-factory.js';

const done: GuestAnswer['then'] = { do: 'result', value: { ok: true } };

/** Behaves like the guest of guest-program.ts. */
const guest: SimulatedGuest = {
  init({ code }) {
    if (code === 'fail') return { then: { do: 'error', error: 'it does not load' } };
    if (code === 'exit') return { then: { do: 'exit' } };
    if (code === 'hang') return { then: { do: 'hang' } };
    return { stdout: code === 'print' ? ['from init'] : [], then: done };
  },
  run(request) {
    const value = request.value as JsonObject;
    switch (value.do) {
      case 'error':
        return { then: { do: 'error', error: String(value.error) } };
      case 'string':
        return { then: { do: 'result', value: 'text' } };
      case 'big':
        return { then: { do: 'result', value: { a: 'x'.repeat(Number(value.bytes) - 8) } } };
      case 'hang':
        return { then: { do: 'hang' } };
      case 'bye':
        return { then: { do: 'bye', value: {} } };
      case 'sleep':
        return { afterMs: Number(value.ms), then: done };
      case 'exit':
        return { stdout: ['going'], then: { do: 'exit' } };
      case 'crash':
        return { then: { do: 'exit' } };
      case 'exhaust':
        return { then: { do: 'exhaust' } };
      case 'log':
        return { ...linesOf(value.texts as [number, string][]), then: done };
      case 'print': {
        const line = String(value.line);
        return { stdout: Array<string>(Math.ceil(Number(value.bytes) / (line.length + 1))).fill(line), then: done };
      }
      default:
        return { then: { do: 'result', value: value satisfies JsonValue } };
    }
  },
};

function linesOf(texts: [number, string][]): { stdout: string[]; stderr: string[] } {
  const split = (fd: number): string[] => {
    const text = texts.map(([to, part]) => (to === fd ? part : '')).join('');
    return text === '' ? [] : text.replace(/\n$/, '').split('\n');
  };
  return { stdout: split(1), stderr: split(2) };
}

const noProcesses = 'simulated containers have no processes';

containerFactoryContract(
  'simulated factory',
  async () => {
    const factory = createSimulatedFactory({ clock: systemClock, random: seededRandom(1), guest, kinds: [kind] });
    await factory.start();
    return { factory, close: () => factory.close() };
  },
  { processes: noProcesses, frames: 'simulated containers speak no protocol' },
);

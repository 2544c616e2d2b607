import type { Bench, Measurement } from '../bench.js';
import { measureDeviceFault } from './inject-device-fault.js';
import { injectJava } from './inject-java.js';
import { injectNodejs } from './inject-nodejs.js';
import { measureNative } from './inject-native.js';
import { measureNativeLeak, measurePythonLeak } from './inject-leak.js';
import { measurePython } from './inject-python.js';

const parts = {
  native: measureNative,
  nativeLeak: measureNativeLeak,
  python: measurePython,
  pythonLeak: measurePythonLeak,
  java: injectJava,
  nodejs: injectNodejs,
  deviceFault: measureDeviceFault,
} as const;

/** Functions injected into pre-warmers, against their cold start. */
export const inject: Bench = {
  summary: 'injection into pre-warmers: time per stage and kind, recovery from a crash, what many of them leave',
  parts: Object.keys(parts),
  async run(context) {
    const measurements: Measurement[] = [];
    for (const [name, measure] of Object.entries(parts)) {
      if (context.options.parts.length > 0 && !context.options.parts.includes(name)) continue;
      measurements.push(...(await measure(context)));
      context.say(`  ${name} done`);
    }
    return [...measurements, ...comparisons(measurements)];
  },
};

/** What the bars are about that takes several figures: the worse of native and Python, and p99 as multiples of medians. */
function comparisons(measurements: readonly Measurement[]): Measurement[] {
  const values = new Map(measurements.map(({ name, value }) => [name, value]));
  const together = (name: string, parts: readonly [string, string], join: (a: number, b: number) => number) => {
    const [a, b] = parts.map((part) => values.get(part));
    return a === undefined || b === undefined ? [] : [{ name, value: join(a, b) }];
  };
  return [
    ...together('leakMiB', ['nativeLeakMiB', 'pythonLeakMiB'], Math.max),
    ...together('slowdown100k', ['nativeSlowdown100k', 'pythonSlowdown100k'], Math.max),
    ...together('nativeP99Ratio', ['nativeP99Ms', 'nativeMs'], (p99, p50) => p99 / p50),
    ...together('pythonP99Ratio', ['pythonP99Ms', 'pythonMs'], (p99, p50) => p99 / p50),
  ];
}

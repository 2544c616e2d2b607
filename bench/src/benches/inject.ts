import type { Bench, Measurement } from '../bench.js';
import { injectJava } from './inject-java.js';
import { injectNodejs } from './inject-nodejs.js';
import { measureNative } from './inject-native.js';
import { measureNativeLeak } from './inject-leak.js';
import { measurePython, measurePythonLeak } from './inject-python.js';

const parts = {
  native: measureNative,
  nativeLeak: measureNativeLeak,
  python: measurePython,
  pythonLeak: measurePythonLeak,
  java: injectJava,
  nodejs: injectNodejs,
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
    return measurements;
  },
};

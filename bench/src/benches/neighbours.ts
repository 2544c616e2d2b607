import { join } from 'node:path';
import type { Bench, BenchContext, Measurement } from '../bench.js';
import { loads, type Load } from '../neighbours/loads.js';
import { runTrial, type Trial } from '../neighbours/trial.js';
import { makeWheel } from '../neighbours/wheel.js';
import { percentile } from '../statistics.js';

/** Numbers of hostile namespaces. */
export const hostileCounts = [1, 20] as const;
/** A victim's p99 may be so much beyond the bar's multiple, ms. */
const allowedMs = 5;

const p99Of = ({ latenciesMs }: Trial): number => percentile(latenciesMs, 99);

/** A victim beside `count` namespaces with a load, and beside as many that burn the same processor time. */
async function measure(
  context: BenchContext,
  name: string,
  load: Load,
  count: number,
  aloneCores: number,
): Promise<Measurement[]> {
  const pip = name === 'installs' ? await makeWheel(join(context.temporaryDir, 'wheels')) : {};
  const environment = { ...load.environment, ...pip };
  const { records } = load;
  const neighbours = { load: name, ...(records !== undefined && { records }) };
  const beside = await runTrial(context, `${name}-${count}`, neighbours, count, environment);
  const cores = Math.max(0, beside.cpuS / beside.tookS - aloneCores);
  const reference = await runTrial(context, `${name}-${count}-burn`, { cores }, count, load.environment);
  const [p99Ms, referenceP99Ms] = [p99Of(beside), p99Of(reference)];
  const { statuses = {}, heldBack = 0 } = beside.struck ?? {};
  context.say(
    `  ${count} hostile: p99 ${p99Ms.toFixed(1)} ms, beside ${cores.toFixed(2)} burnt cores ${referenceP99Ms.toFixed(1)} ms; ` +
      `longest pause ${beside.pauseMs.toFixed(0)} ms and ${reference.pauseMs.toFixed(0)} ms; ` +
      `strikes by status ${JSON.stringify(statuses)}, left out ${heldBack}`,
  );
  const figures = {
    neighbourP99Over: (p99Ms - allowedMs) / referenceP99Ms,
    longestPauseMs: beside.pauseMs,
    p99Ms,
    referenceP99Ms,
    referencePauseMs: reference.pauseMs,
    cores,
    referenceCores: reference.cpuS / reference.tookS - aloneCores,
    errors: beside.errors + reference.errors,
  };
  return Object.entries(figures).map(([figure, value]) => ({ name: `${figure}.${name}.${count}`, value }));
}

/** Calls of a namespace beside hostile ones, which do what takes the platform's own time. */
export const neighbours: Bench = {
  summary: "a namespace's calls beside hostile namespaces, and beside ones that burn the same processor time",
  parts: Object.keys(loads),
  async run(context) {
    const { options, say, markSimulated } = context;
    const alone = await runTrial(context, 'alone', { cores: 0 }, 1);
    say(`Alone: p99 ${p99Of(alone).toFixed(1)} ms, longest pause ${alone.pauseMs.toFixed(0)} ms`);
    const aloneCores = alone.cpuS / alone.tookS;
    const measurements: Measurement[] = [
      { name: 'aloneP99Ms', value: p99Of(alone) },
      { name: 'alonePauseMs', value: alone.pauseMs },
    ];
    for (const [name, load] of Object.entries(loads)) {
      if (options.parts.length > 0 && !options.parts.includes(name)) continue;
      say(`Load ${name}`);
      if (load.simulated === true) markSimulated();
      for (const count of hostileCounts) {
        measurements.push(...(await measure(context, name, load, count, aloneCores)));
      }
    }
    return measurements;
  },
};

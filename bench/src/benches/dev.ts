import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Family } from '../api.js';
import { medianOf, type Bench, type BenchContext, type Measurement } from '../bench.js';
import { repositoryDir } from '../machine.js';
import { percentile } from '../statistics.js';

const code: Record<Family, (number: number) => string> = {
  nodejs: (number) => `function main() {\n  console.log('run');\n  return { number: ${number} };\n}\n`,
  python: (number) => `def main(args):\n    print("run")\n    return {"number": ${number}}\n`,
};
const extension: Record<Family, string> = { nodejs: 'js', python: 'py' };

/** Saves before those that are measured. */
const warmUps = 3;
/** Pause before a save, as between two of a developer: containers are readied meanwhile, ms. */
const pauseMs = 1500;
const timeoutMs = 60_000;

/** A run, as `gpuwhisk dev --json` tells it. */
interface Told {
  ok: boolean;
  result: { number?: number };
  ms: Record<string, number>;
}

/** From the save of a file to the result of its action, in `gpuwhisk dev`. */
export const dev: Bench = {
  summary: 'the local loop: from a saved file to its result',
  parts: Object.keys(code),
  async run(context) {
    const measurements: Measurement[] = [];
    for (const family of Object.keys(code) as Family[]) {
      if (context.options.parts.length > 0 && !context.options.parts.includes(family)) continue;
      const { reloadsMs, partsMs } = await measure(context, family);
      measurements.push(medianOf(`devReloadMs.${family}`, reloadsMs));
      measurements.push({ name: `devReloadP95Ms.${family}`, value: percentile(reloadsMs, 95) });
      for (const [part, each] of partsMs) measurements.push(medianOf(`devPartMs.${family}.${part}`, each));
      context.say(`  ${family} done`);
    }
    return measurements;
  },
};

async function measure(
  { options, cleanup, temporaryDir }: BenchContext,
  family: Family,
): Promise<{ reloadsMs: number[]; partsMs: Map<string, number[]> }> {
  const folder = join(temporaryDir, family);
  mkdirSync(folder, { recursive: true });
  const file = join(folder, `hello.${extension[family]}`);
  writeFileSync(file, code[family](0));
  const child = spawn(process.execPath, [join(repositoryDir, 'bin', 'gpuwhisk'), 'dev', file, '--json'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  cleanup.add('gpuwhisk dev', () => stop(child));
  const runs = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  await next(runs, 0);
  const reloadsMs: number[] = [];
  const partsMs = new Map<string, number[]>();
  for (let number = 1; number <= warmUps + options.samples; number++) {
    await sleep(pauseMs);
    const savedMs = performance.now();
    writeFileSync(file, code[family](number));
    const { ms } = await next(runs, number);
    if (number <= warmUps) continue;
    reloadsMs.push(performance.now() - savedMs);
    for (const [part, value] of Object.entries(ms)) partsMs.set(part, [...(partsMs.get(part) ?? []), value]);
  }
  await stop(child);
  return { reloadsMs, partsMs };
}

/** The next run, which must be that of a number. Throws Error for another, or if none comes within a minute. */
async function next(runs: AsyncIterator<string>, number: number): Promise<Told> {
  const line = await Promise.race([runs.next(), sleep(timeoutMs, undefined, { ref: false })]);
  if (line === undefined || line.done === true) throw new Error(`gpuwhisk dev tells nothing of run ${number}`);
  const told = JSON.parse(line.value) as Told;
  if (!told.ok || told.result.number !== number) throw new Error(`gpuwhisk dev tells of another run: ${line.value}`);
  return told;
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGINT');
  await ended;
}

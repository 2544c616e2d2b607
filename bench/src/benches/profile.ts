import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { connectApi, guestHeaders, invokePath, noopCode, smallBody, type Family } from '../api.js';
import type { Bench, BenchContext, Measurement } from '../bench.js';
import { benchDir, repositoryDir } from '../machine.js';
import { selfTimes, stackTree, type CpuProfile, type StackNode, type TimeWindow } from '../profile/cpu-profile.js';
import { flameGraph } from '../profile/flame-graph.js';
import { serverParts, timeByPart } from '../profile/parts.js';
import { sourcePlaces } from '../profile/source-places.js';
import { readThreads, threadParts, usedBetween, type ThreadPart, type Usage } from '../profile/usage.js';
import { startPlatform } from '../servers.js';

/** One load of a profiled platform. */
interface Load {
  key: string;
  connections: number;
  blocking: boolean;
  concurrency: number;
}

const c1: Load = { key: 'c1', connections: 1, blocking: true, concurrency: 1 };
const c64: Load = { key: 'c64', connections: 64, blocking: true, concurrency: 1 };
const loads: Readonly<Record<Family, readonly Load[]>> = {
  nodejs: [c1, c64, { ...c64, key: 'c64Concurrent', concurrency: 64 }, { ...c64, key: 'async64', blocking: false }],
  python: [c1, c64],
};
/** The load whose samples are drawn and listed. */
const shownLoad = c64.key;
const shownFunctions = 40;
const warmUpS = 4;

/** A load with its requests, its time and what it used. */
interface Loaded {
  load: Load;
  requests: number;
  requestsPerS: number;
  window: TimeWindow;
  used: Map<ThreadPart, Usage>;
}

/** Processor time and system calls of a warm invocation by part, and flame graphs of the server. */
export const profile: Bench = {
  summary: 'processor time and system calls of a warm invocation by part',
  parts: Object.keys(loads),
  async run(context) {
    const { options, say } = context;
    const measurements: Measurement[] = [];
    for (const family of Object.keys(loads) as Family[]) {
      if (options.parts.length > 0 && !options.parts.includes(family)) continue;
      say(`Part ${family}`);
      measurements.push(...(await profileFamily(context, family)));
    }
    return measurements;
  },
};

async function profileFamily(context: BenchContext, family: Family): Promise<Measurement[]> {
  const { cleanup, temporaryDir, say } = context;
  const folder = join(temporaryDir, family);
  const profileDir = join(folder, 'profile');
  await mkdir(profileDir, { recursive: true });
  const nodeFlags = ['--cpu-prof', '--cpu-prof-dir', profileDir];
  const platform = await startPlatform(cleanup, { dataDir: join(folder, 'data'), nodeFlags });
  const api = connectApi(platform.url);
  cleanup.add('connection', () => api.close());
  const all: Loaded[] = [];
  for (const load of loads[family]) {
    const { key, concurrency } = load;
    await api.putAction(key, { kind: `${family}:default`, code: noopCode[family], concurrency });
    const loaded = await runLoad(context, platform.url, load, () => readThreads(platform.pid));
    say(`  ${key}: ${loaded.requestsPerS.toFixed(0)}/s`);
    all.push(loaded);
  }
  api.close();
  await platform.stop();

  const [file] = await readdir(profileDir);
  if (file === undefined) throw new Error('the platform left no profile');
  const profiled = JSON.parse(await readFile(join(profileDir, file), 'utf8')) as CpuProfile;
  const placeOf = sourcePlaces(repositoryDir);
  const trees = all.map((loaded) => ({ loaded, tree: stackTree(profiled, loaded.window, placeOf) }));
  for (const { loaded, tree } of trees) {
    if (loaded.load.key === shownLoad) await show(context, family, tree);
  }
  return trees.flatMap(({ loaded, tree }) => figuresOf(family, loaded, tree));
}

async function runLoad(
  { options, load: generator }: BenchContext,
  baseUrl: string,
  load: Load,
  read: () => ReturnType<typeof readThreads>,
): Promise<Loaded> {
  const { key, connections, blocking } = load;
  const common = { baseUrl, headers: guestHeaders, body: smallBody, connections, seed: options.seed };
  await generator.run({ ...common, paths: [invokePath(key, true)], seconds: warmUpS });
  const before = read();
  const fromUs = monotonicUs();
  const seconds = options.rounds * options.seconds;
  const { requests, requestsPerS } = await generator.run({ ...common, paths: [invokePath(key, blocking)], seconds });
  const window = { fromUs, toUs: monotonicUs() };
  return { load, requests, requestsPerS, window, used: usedBetween(before, read()) };
}

/** The clock of profiles, µs. */
function monotonicUs(): number {
  return Number(process.hrtime.bigint() / 1000n);
}

/** Lists the functions by self time, and draws them if the whole bench runs. */
async function show({ options, say }: BenchContext, family: Family, tree: StackNode): Promise<void> {
  const times = selfTimes(tree).filter(({ name }) => name !== '(idle)');
  const allMs = times.reduce((sum, { ms }) => sum + ms, 0);
  for (const { name, place, ms } of times.slice(0, shownFunctions)) {
    say(`${((100 * ms) / allMs).toFixed(1).padStart(6)} %  ${ms.toFixed(0).padStart(7)} ms  ${name}  ${place}`);
  }
  if (options.parts.length > 0) return;
  const folder = join(benchDir, 'results');
  await mkdir(folder, { recursive: true });
  const title = `Server's main thread, ${family} at 64 connections: time at work, callers above callees`;
  await writeFile(join(folder, `profile-${family}.svg`), flameGraph(title, tree));
}

/** Processor time of a call by part, and its calls of the system by thread. */
function figuresOf(family: Family, { load, requests, requestsPerS, used }: Loaded, tree: StackNode): Measurement[] {
  const name = (figure: string, part: string): string => `${figure}.${family}.${load.key}.${part.replaceAll(' ', '-')}`;
  const times = timeByPart(tree);
  const workingUs = [...times].reduce((sum, [part, us]) => sum + (part === 'idle' ? 0 : us), 0);
  // A sample counts the time in which the thread waited for a processor, too: shares of samples divide its processor time.
  const serverUs = (used.get('server')?.cpuUs ?? 0) / requests;
  const threads = threadParts.map((part) => ({ part, usage: used.get(part) as Usage }));
  return [
    { name: `requestsPerS.${family}.${load.key}`, value: requestsPerS },
    ...serverParts.map((part) => ({
      name: name('cpuUs', part),
      value: (serverUs * (times.get(part) ?? 0)) / Math.max(1, workingUs),
    })),
    ...threads.map(({ part, usage }) => ({ name: name('cpuUs', part), value: usage.cpuUs / requests })),
    ...threads.flatMap(({ part, usage }) =>
      (['reads', 'writes', 'waits'] as const).map((figure) => ({
        name: name(figure, part),
        value: usage[figure] / requests,
      })),
    ),
    {
      name: `idleShare.${family}.${load.key}`,
      value: (times.get('idle') ?? 0) / Math.max(1, workingUs + (times.get('idle') ?? 0)),
    },
  ];
}

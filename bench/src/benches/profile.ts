import { mkdir, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { connectApi, guestHeaders, invokePath, smallBody } from '../api.js';
import type { Bench } from '../bench.js';
import { repositoryDir } from '../machine.js';
import { startPlatform } from '../servers.js';

const connections = 64;
const warmUpS = 5;
const shown = 40;

/** Self time of the server's functions under the load of 64 connections. */
export const profile: Bench = {
  summary: "the server's functions by self time at 64 connections",
  parts: ['blocking', 'nonBlocking'],
  async run({ options, load, cleanup, temporaryDir, say }) {
    const profileDir = join(temporaryDir, 'profile');
    await mkdir(profileDir);
    const nodeFlags = ['--cpu-prof', '--cpu-prof-dir', profileDir];
    const platform = await startPlatform(cleanup, { dataDir: join(temporaryDir, 'data'), nodeFlags });
    const api = connectApi(platform.url);
    cleanup.add('connection', () => api.close());
    await api.putAction('noop');
    const blocking = options.parts.length === 0 || options.parts.includes('blocking');
    const request = { baseUrl: platform.url, headers: guestHeaders, body: smallBody, connections, seed: options.seed };
    await load.run({ ...request, paths: [invokePath('noop', true)], seconds: warmUpS });
    const { requestsPerS } = await load.run({
      ...request,
      paths: [invokePath('noop', blocking)],
      seconds: options.rounds * options.seconds,
    });
    api.close();
    await platform.stop();

    const [file] = await readdir(profileDir);
    if (file === undefined) throw new Error('the platform left no profile');
    const times = selfTimes(JSON.parse(await readFile(join(profileDir, file), 'utf8')) as CpuProfile);
    const total = times.reduce((sum, { ms }) => sum + ms, 0);
    for (const { name, place, ms } of times.slice(0, shown)) {
      const short = place.replace(pathToFileURL(repositoryDir).href, '');
      say(`${((100 * ms) / total).toFixed(1).padStart(6)} %  ${ms.toFixed(0).padStart(7)} ms  ${name}  ${short}`);
    }
    const share = (name: string): number =>
      times.filter((one) => one.name === name).reduce((sum, { ms }) => sum + ms, 0) / total;
    return [
      { name: 'profiledRequestsPerS', value: requestsPerS },
      { name: 'idleShare', value: share('(idle)') },
      { name: 'garbageCollectorShare', value: share('(garbage collector)') },
    ];
  },
};

/** The fields of a profile of node --cpu-prof that are read here. Times are µs. */
interface CpuProfile {
  nodes: {
    id: number;
    callFrame: { functionName: string; url: string; lineNumber: number };
    children?: number[];
  }[];
  samples: number[];
  timeDeltas: number[];
}

/** A function and the time spent in itself, callees excluded. */
interface SelfTime {
  name: string;
  /** `file:line`; for code of Node or V8, of the nearest caller in a file, or empty if there is none. */
  place: string;
  ms: number;
}

/** Self time per function (Node's and V8's own: per function and caller), longest first. */
export function selfTimes(profile: CpuProfile): SelfTime[] {
  const byNode = new Map<number, number>();
  profile.samples.forEach((id, index) => {
    byNode.set(id, (byNode.get(id) ?? 0) + (profile.timeDeltas[index] ?? 0) / 1000);
  });
  const places = placesOf(profile);
  const byFunction = new Map<string, SelfTime>();
  for (const { id, callFrame } of profile.nodes) {
    const name = callFrame.functionName || '(anonymous)';
    const place = places.get(id) ?? '';
    const entry = byFunction.get(`${name} ${place}`) ?? { name, place, ms: 0 };
    entry.ms += byNode.get(id) ?? 0;
    byFunction.set(`${name} ${place}`, entry);
  }
  return [...byFunction.values()].sort((a, b) => b.ms - a.ms);
}

/** The place of each node by its id. Parents precede their children in a profile, so one pass can pass files down. */
function placesOf(profile: CpuProfile): Map<number, string> {
  const callers = new Map<number, string>();
  const places = new Map<number, string>();
  for (const { id, callFrame, children } of profile.nodes) {
    const { functionName, url, lineNumber } = callFrame;
    const isFile = url.startsWith('file:');
    const caller = callers.get(id) ?? '';
    const own = `${url}:${lineNumber + 1}`;
    places.set(id, isFile ? own : caller && `from ${caller}`);
    for (const child of children ?? []) callers.set(child, isFile ? `${functionName || '(anonymous)'} ${own}` : caller);
  }
  return places;
}

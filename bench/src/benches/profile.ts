import { mkdir, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { connectApi, guestHeaders, invokePath, smallBody } from '../api.js';
import type { Bench } from '../bench.js';
import { repositoryDir } from '../paths.js';
import { selfTimes, type CpuProfile } from '../profiles.js';
import { startPlatform } from '../servers.js';

const connections = 64;
const warmUpS = 5;
const shown = 40;

/** Where the server spends its time under the load of 64 connections. */
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

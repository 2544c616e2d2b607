import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Cleanup } from '../cleanup.js';
import { benchDir } from '../machine.js';
import type { Options } from '../options.js';
import { timeoutS, type LoadGenerator, type LoadRequest, type LoadResult } from './load.js';

const execute = promisify(execFile);

/** wrk, or undefined if it is not on the PATH. `temporaryDir` takes the files that its script reads. */
async function wrkLoad(temporaryDir: string, cleanup: Cleanup): Promise<LoadGenerator | undefined> {
  const version = await wrkVersion();
  if (version === undefined) return undefined;
  const stopping = new AbortController();
  cleanup.add('wrk', () => stopping.abort());
  return {
    name: version,
    async run(request) {
      const headersFile = join(temporaryDir, 'headers.txt');
      const pathsFile = join(temporaryDir, 'paths.txt');
      const headers = Object.entries(request.headers).map(([name, value]) => `${name}: ${value}\n`);
      await writeFile(headersFile, headers.join(''));
      await writeFile(pathsFile, request.paths.map((path) => `${path}\n`).join(''));
      const { stdout } = await execute('wrk', wrkArguments(request, headersFile, pathsFile), {
        timeout: (request.seconds + timeoutS + 10) * 1000,
        signal: stopping.signal,
      });
      return parseWrkOutput(stdout);
    },
  };
}

function wrkArguments(request: LoadRequest, headersFile: string, pathsFile: string): string[] {
  const counting = request.countStatuses === true || request.bodiesFile !== undefined;
  return [
    '-t',
    '1',
    '-c',
    String(request.connections),
    '-d',
    `${request.seconds}s`,
    '--timeout',
    `${timeoutS}s`,
    '-s',
    join(benchDir, 'load.lua'),
    request.baseUrl,
    '--',
    headersFile,
    request.body,
    pathsFile,
    request.bodiesFile ?? '-',
    counting ? 'count' : 'quick',
    String(request.seed),
    request.method ?? 'POST',
  ];
}

async function wrkVersion(): Promise<string | undefined> {
  try {
    await execute('wrk', ['-v'], { timeout: 5000 });
    return undefined;
  } catch (error) {
    // wrk -v prints its version and exits with 1.
    const { stdout } = error as { stdout?: string };
    return stdout?.match(/^wrk \S+/)?.[0];
  }
}

/** Reads the line that load.lua prints at the end. Throws if it is missing. */
export function parseWrkOutput(output: string): LoadResult {
  const line = output.split('\n').find((candidate) => candidate.startsWith('RESULT '));
  if (line === undefined) throw new Error(`wrk gave no result: ${output.slice(0, 500)}`);
  const raw = JSON.parse(line.slice('RESULT '.length)) as Record<string, number> & { statuses: Record<string, number> };
  const number = (name: string): number => {
    const value = raw[name];
    if (typeof value !== 'number') throw new Error(`wrk's result lacks '${name}'`);
    return value;
  };
  return {
    requests: number('requests'),
    requestsPerS: number('requests') / (number('durationUs') / 1e6),
    p50Ms: number('p50Us') / 1000,
    p95Ms: number('p95Us') / 1000,
    p99Ms: number('p99Us') / 1000,
    maxMs: number('maxUs') / 1000,
    failedStatuses: number('status'),
    socketErrors: number('connect') + number('read') + number('write') + number('timeout'),
    statuses: new Map(Object.entries(raw.statuses).map(([status, count]) => [Number(status), count])),
  };
}

/** The chosen load generator. Throws if wrk is chosen and not installed. */
export async function chooseLoad(
  client: Options['client'],
  temporaryDir: string,
  cleanup: Cleanup,
): Promise<LoadGenerator> {
  if (client !== 'autocannon') {
    const wrk = await wrkLoad(temporaryDir, cleanup);
    if (wrk) return wrk;
    if (client === 'wrk') throw new Error('wrk is not on the PATH (Debian package: wrk).');
  }
  const { autocannonLoad } = await import('./autocannon.js');
  return autocannonLoad;
}

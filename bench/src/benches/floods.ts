import { connectApi, guestHeaders, invokePath, smallBody, type Api, type Family } from '../api.js';
import { medianOf, type Bench, type BenchContext, type Measurement } from '../bench.js';
import { errorsOf, type LoadRequest, type LoadResult } from '../load/load.js';
import { runParts, type PartPlatform } from '../servers.js';

/** Concurrent runs of the hostile function. */
const flooders = 2;
const connections = 2;
const warmUpS = 2;
const floodMs = 1000;

/** A function that floods for a second, or until the platform ends it. */
interface Flood {
  family: Family;
  code: string;
}

const until = `const end = Date.now() + ${floodMs}; while (Date.now() < end)`;
const functions: Readonly<Record<string, Flood>> = {
  logs: {
    family: 'nodejs',
    code: `const fs = require('fs');
      const block = Buffer.alloc(65536, 'x'.repeat(99) + '\\n');
      function main() { ${until} fs.writeSync(1, block); return {}; }`,
  },
  frames: {
    family: 'nodejs',
    code: `const fs = require('fs');
      const bye = Buffer.from([2, 0, 0, 0, 8, 0, 0, 0, 0, 123, 125]);
      const block = Buffer.concat(Array.from({ length: 4096 }, () => bye));
      function main() { ${until} fs.writeSync(3, block); return {}; }`,
  },
  memory: {
    family: 'python',
    code: `import mmap
def main(args):
    held = mmap.mmap(-1, 1 << 30)
    for at in range(0, 1 << 30, 4096):
        held[at] = 1
    return {}
`,
  },
};

/** A neighbour's latency beside a flooding function, alternating with the same neighbour alone. */
async function measure(context: BenchContext, { platform, api }: PartPlatform, name: string): Promise<Measurement[]> {
  const { options, load, say } = context;
  const { family, code } = functions[name] as Flood;
  await api.putAction('neighbour');
  await api.putAction('flood', { kind: `${family}:default`, code });
  const request = (seconds: number): LoadRequest => ({
    baseUrl: platform.url,
    paths: [invokePath('neighbour', true)],
    seconds,
    seed: options.seed,
    headers: guestHeaders,
    body: smallBody,
    connections,
    countStatuses: true,
  });
  await load.run(request(warmUpS));
  const alone: LoadResult[] = [];
  const beside: LoadResult[] = [];
  let runs = 0;
  for (let round = 0; round < options.rounds; round += 1) {
    alone.push(await load.run(request(options.seconds)));
    const stop = startFlood(context, platform.url);
    beside.push(await load.run(request(options.seconds)));
    runs += await stop();
    const [one, other] = [alone.at(-1) as LoadResult, beside.at(-1) as LoadResult];
    say(`  round ${round + 1}: p99 ${one.p99Ms.toFixed(2)} ms alone, ${other.p99Ms.toFixed(2)} ms beside the flood`);
  }
  const ratios = (of: (result: LoadResult) => number): number[] =>
    beside.map((result, round) => of(result) / of(alone[round] as LoadResult));
  return [
    medianOf(
      `${name}.p99Ratio`,
      ratios(({ p99Ms }) => p99Ms),
    ),
    medianOf(
      `${name}.throughputRatio`,
      ratios(({ requestsPerS }) => requestsPerS),
    ),
    medianOf(
      `${name}.aloneP99Ms`,
      alone.map(({ p99Ms }) => p99Ms),
    ),
    medianOf(
      `${name}.besideP99Ms`,
      beside.map(({ p99Ms }) => p99Ms),
    ),
    { name: `${name}.floodRuns`, value: runs },
    { name: `${name}.errors`, value: [...alone, ...beside].reduce((sum, each) => sum + errorsOf(each, 200), 0) },
  ];
}

/** Runs the hostile function repeatedly. The returned function stops it and resolves with the number of ended runs. */
function startFlood({ cleanup }: BenchContext, url: string): () => Promise<number> {
  let stopped = false;
  const runOn = async (api: Api): Promise<number> => {
    let runs = 0;
    // A failed run counts as ended, too: the platform may end a function that floods.
    for (; !stopped; runs += 1) await api.send('POST', invokePath('flood', true), smallBody);
    api.close();
    return runs;
  };
  cleanup.add('flood', () => {
    stopped = true;
  });
  const running = Array.from({ length: flooders }, () => runOn(connectApi(url)));
  return async () => {
    stopped = true;
    return (await Promise.all(running)).reduce((sum, runs) => sum + runs, 0);
  };
}

type Part = (context: BenchContext, given: PartPlatform) => Promise<Measurement[]>;
const partOf =
  (name: string): Part =>
  (context, given) =>
    measure(context, given, name);
const parts = Object.fromEntries(Object.keys(functions).map((name) => [name, partOf(name)]));

/** Functions that endlessly print, send frames and take shared memory, beside a neighbour's calls. */
export const floods: Bench = {
  summary: "a neighbour's calls beside functions that flood",
  parts: Object.keys(parts),
  run: (context) => runParts(context, parts, (own) => own),
};

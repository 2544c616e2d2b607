import { parseArgs } from 'node:util';

/** Another platform, which `invoke` measures in the same rounds. */
export interface Peer {
  name: string;
  /** Where one call of a no-op function goes. */
  url: string;
  method: string;
  headers: Readonly<Record<string, string>>;
  /** Body of each request; undefined: the platform's. */
  body?: string;
  /** Processes of its server; undefined: their processor time is not measured. */
  serverPids?: readonly number[];
  /** Processes below which its functions run; undefined: their processor time is not measured. */
  functionPids?: readonly number[];
}

/** Options of a run. */
export interface Options {
  bench: string;
  /** Fail if a figure misses its bar. */
  check: boolean;
  seed: number;
  /** Alternating rounds of load; results are their median. */
  rounds: number;
  /** Length of one round of load, s. */
  seconds: number;
  /** Repetitions of single measurements (cold starts, lists). */
  samples: number;
  /** Rest of the server before its memory is read, s. */
  idleSeconds: number;
  /** Length of a steady load, s. */
  loadSeconds: number;
  /** Calls of which one percentile is taken (`neighbours`). */
  calls: number;
  /** Parts of the bench to run; all if empty. */
  parts: readonly string[];
  /** Load generator; `auto` uses wrk if it is installed. */
  client: 'auto' | 'wrk' | 'autocannon';
  /** Platforms that `invoke` measures as well. */
  beside: readonly Peer[];
  /** Takes the licensed data sets only (`world`, `verdicts`), with few seeds; nothing is saved. */
  quick?: boolean;
  /** File of samples of a GPU, by which `predictor` learns and is judged. */
  gpuSamples?: string;
}

/** Thrown for an invalid command line. */
export class UsageError extends Error {
  override name = 'UsageError';
}

const defaults = { seed: 1, rounds: 5, seconds: 5, samples: 50, 'idle-seconds': 60, 'load-seconds': 300, calls: 1000 };

/** Reads `NAME [flags]`. Throws UsageError. */
export function parseOptions(args: readonly string[]): Options {
  let parsed;
  try {
    parsed = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        check: { type: 'boolean', default: false },
        seed: { type: 'string' },
        rounds: { type: 'string' },
        seconds: { type: 'string' },
        samples: { type: 'string' },
        'idle-seconds': { type: 'string' },
        'load-seconds': { type: 'string' },
        calls: { type: 'string' },
        parts: { type: 'string' },
        client: { type: 'string', default: 'auto' },
        'gpu-samples': { type: 'string' },
        quick: { type: 'boolean', default: false },
        beside: { type: 'string', multiple: true, default: [] },
        'beside-method': { type: 'string', multiple: true, default: [] },
        'beside-header': { type: 'string', multiple: true, default: [] },
        'beside-body': { type: 'string', multiple: true, default: [] },
        'beside-server': { type: 'string', multiple: true, default: [] },
        'beside-functions': { type: 'string', multiple: true, default: [] },
      },
    });
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
  const { values, positionals } = parsed;
  const [bench] = positionals;
  if (bench === undefined || positionals.length > 1) throw new UsageError('Give the name of one bench.');
  const number = (name: keyof typeof defaults): number => {
    const text = values[name];
    if (text === undefined) return defaults[name];
    const value = Number(text);
    if (!Number.isInteger(value) || value < 1)
      throw new UsageError(`--${name} takes a positive integer, not '${text}'.`);
    return value;
  };
  const { client } = values;
  if (client !== 'auto' && client !== 'wrk' && client !== 'autocannon') {
    throw new UsageError(`--client takes auto, wrk or autocannon, not '${client}'.`);
  }
  return {
    bench,
    check: values.check,
    seed: number('seed'),
    rounds: number('rounds'),
    seconds: number('seconds'),
    samples: number('samples'),
    idleSeconds: number('idle-seconds'),
    loadSeconds: number('load-seconds'),
    calls: number('calls'),
    parts: values.parts === undefined ? [] : values.parts.split(','),
    client,
    beside: peersOf(values),
    ...(values.quick && { quick: true }),
    ...(values['gpu-samples'] !== undefined && { gpuSamples: values['gpu-samples'] }),
  };
}

type PeerFlag = 'beside' | `beside-${'method' | 'header' | 'body' | 'server' | 'functions'}`;

/** The peers of `--beside NAME=URL` and its companions. Throws UsageError. */
function peersOf(values: Readonly<Record<PeerFlag, readonly string[]>>): Peer[] {
  const given = (flag: PeerFlag): (readonly [string, string])[] =>
    values[flag].map((text) => {
      const [, name, value] = /^([a-z][a-z0-9]*)=(.*)$/s.exec(text) ?? [];
      if (name === undefined || value === undefined) {
        throw new UsageError(`--${flag} takes NAME=..., a name of small letters and digits, not '${text}'.`);
      }
      return [name, value] as const;
    });
  const peers = new Map<string, Peer>();
  for (const [name, url] of given('beside')) {
    if (!URL.canParse(url) || !url.startsWith('http://')) {
      throw new UsageError(`--beside takes an http:// address, not '${url}'.`);
    }
    peers.set(name, { name, url, method: 'POST', headers: { 'Content-Type': 'application/json' } });
  }
  const change = (flag: PeerFlag, to: (peer: Peer, value: string) => Peer): void => {
    for (const [name, value] of given(flag)) {
      const peer = peers.get(name);
      if (peer === undefined) throw new UsageError(`--${flag} names '${name}', and no --beside does.`);
      peers.set(name, to(peer, value));
    }
  };
  change('beside-method', (peer, method) => ({ ...peer, method }));
  change('beside-body', (peer, body) => ({ ...peer, body }));
  change('beside-header', (peer, header) => {
    const [, name, value] = /^([^:\s]+): *(.*)$/.exec(header) ?? [];
    if (name === undefined || value === undefined) {
      throw new UsageError(`--beside-header takes NAME=Header: value, not '${header}'.`);
    }
    return { ...peer, headers: { ...peer.headers, [name]: value } };
  });
  change('beside-server', (peer, pids) => ({ ...peer, serverPids: pidsOf('beside-server', pids) }));
  change('beside-functions', (peer, pids) => ({ ...peer, functionPids: pidsOf('beside-functions', pids) }));
  return [...peers.values()];
}

function pidsOf(flag: PeerFlag, text: string): number[] {
  if (!/^[1-9]\d*(,[1-9]\d*)*$/.test(text)) {
    throw new UsageError(`--${flag} takes NAME=PID,..., numbers of processes, not '${text}'.`);
  }
  return text.split(',').map(Number);
}

/**
 * The command that repeats a run of `program` (a script of npm), with every option but the headers for peers, which may be keys, and their processes,
 * which have other numbers the next time.
 */
export function commandLine(options: Options, program = 'bench'): string {
  const flags = [
    `--seed ${options.seed}`,
    `--rounds ${options.rounds}`,
    `--seconds ${options.seconds}`,
    `--samples ${options.samples}`,
    `--idle-seconds ${options.idleSeconds}`,
    `--load-seconds ${options.loadSeconds}`,
    `--calls ${options.calls}`,
    `--client ${options.client}`,
    ...(options.parts.length > 0 ? [`--parts ${options.parts.join(',')}`] : []),
    ...(options.quick === true ? ['--quick'] : []),
    ...(options.gpuSamples === undefined ? [] : [`--gpu-samples ${options.gpuSamples}`]),
    ...options.beside.flatMap(({ name, url, method, body }) => [
      `--beside ${name}=${url}`,
      ...(method === 'POST' ? [] : [`--beside-method ${name}=${method}`]),
      ...(body === undefined ? [] : [`--beside-body '${name}=${body}'`]),
    ]),
  ];
  return `npm run ${program} -- ${options.bench} ${flags.join(' ')}`;
}

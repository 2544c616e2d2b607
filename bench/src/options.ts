import { parseArgs } from 'node:util';

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
  /** Parts of the bench to run; all if empty. */
  parts: readonly string[];
  /** Load generator; `auto` uses wrk if it is installed. */
  client: 'auto' | 'wrk' | 'autocannon';
}

/** Thrown for an invalid command line. */
export class UsageError extends Error {
  override name = 'UsageError';
}

const defaults = { seed: 1, rounds: 5, seconds: 5, samples: 50, 'idle-seconds': 60, 'load-seconds': 300 };

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
        parts: { type: 'string' },
        client: { type: 'string', default: 'auto' },
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
    parts: values.parts === undefined ? [] : values.parts.split(','),
    client,
  };
}

/** The command that repeats a run, with every option. */
export function commandLine(options: Options): string {
  const flags = [
    `--seed ${options.seed}`,
    `--rounds ${options.rounds}`,
    `--seconds ${options.seconds}`,
    `--samples ${options.samples}`,
    `--idle-seconds ${options.idleSeconds}`,
    `--load-seconds ${options.loadSeconds}`,
    `--client ${options.client}`,
    ...(options.parts.length > 0 ? [`--parts ${options.parts.join(',')}`] : []),
  ];
  return `npm run bench -- ${options.bench} ${flags.join(' ')}`;
}

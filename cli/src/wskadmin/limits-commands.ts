import {
  attempt,
  exitCodes,
  isObject,
  RequestError,
  type AdminCommand,
  type CommandContext,
  type Json,
  type OptionSpec,
} from './command.js';

/** In the order in which they are shown. */
const limits: readonly [name: string, type: OptionSpec['type'], help: string][] = [
  ['invocationsPerMinute', 'whole', 'invocations per minute allowed'],
  ['firesPerMinute', 'whole', 'trigger fires per minute allowed'],
  ['concurrentInvocations', 'whole', 'concurrent invocations allowed for this namespace'],
  ['concurrentGpuInvocations', 'whole', 'concurrent invocations with a GPU allowed for this namespace'],
  ['concurrentGpus', 'whole', 'GPUs that they may ask for together'],
  ['concurrentGpuMemory', 'whole', 'device memory that they may ask for together, MiB'],
  ['gpuSecondsPerMinute', 'whole', 'seconds of whole GPUs per minute allowed for this namespace'],
  ['maxGpuShare', 'whole', 'percent of a GPU that one run may have, 10 to 100'],
  ['warmGpuContainers', 'whole', 'idle containers with a GPU that each invoker keeps for this namespace'],
  ['allowedKinds', 'texts', 'runtime kinds allowed in this namespace'],
  ['storeActivations', 'boolean', 'whether activations of this namespace are stored'],
  ['minActionMemory', 'whole', 'minimum action memory, MB'],
  ['maxActionMemory', 'whole', 'maximum action memory, MB'],
  ['minActionLogs', 'whole', 'minimum activation log size, MB'],
  ['maxActionLogs', 'whole', 'maximum activation log size, MB'],
  ['minActionTimeout', 'whole', 'minimum action time limit, ms'],
  ['maxActionTimeout', 'whole', 'maximum action time limit, ms'],
  ['minActionConcurrency', 'whole', 'minimum activations in one container'],
  ['maxActionConcurrency', 'whole', 'maximum activations in one container'],
  ['maxParameterSize', 'text', "maximum parameter size, such as '1 MB'"],
  ['maxPayloadSize', 'text', 'maximum payload size'],
  ['truncationSize', 'text', 'activation truncation size'],
];

const namespace = [{ name: 'namespace' }] as const;
const pathOf = (name: string): string => `limits/${encodeURIComponent(name)}`;

/** A value as Python prints it, which scripts read: `True`, `['a', 'b']`. */
function pythonText(value: Json): string {
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (Array.isArray(value)) return `[${value.map((one) => `'${String(one)}'`).join(', ')}]`;
  return String(value);
}

/** `wskadmin limits ...`. */
export const limitsCommands: AdminCommand[] = [
  {
    words: ['limits', 'set'],
    help: 'set limits for a given namespace',
    positionals: namespace,
    options: limits.map(([name, type, help]) => ({ names: [`--${name}`], type, help })),
    async run({ given, client, print }: CommandContext): Promise<number> {
      const name = given.positional('namespace');
      return attempt(print, 'set limits', async () => {
        await client.request('PUT', pathOf(name), Object.fromEntries(given.values()));
        print(`Limits successfully set for "${name}"`);
      });
    },
  },
  {
    words: ['limits', 'get'],
    help: 'get limits for a given namespace (if none exist, system defaults apply)',
    positionals: namespace,
    options: [],
    async run({ given, client, print }: CommandContext): Promise<number> {
      try {
        const own = await client.request('GET', pathOf(given.positional('namespace')));
        for (const [name] of limits) {
          const value = isObject(own) ? own[name] : undefined;
          if (value !== undefined) print(`${name} = ${pythonText(value)}`);
        }
      } catch (error) {
        if (!(error instanceof RequestError)) throw error;
        if (error.status !== 404) {
          print(`Failed to get limits (${error.message})`);
          return exitCodes.failed;
        }
        print('No limits found, default system limits apply');
      }
      return exitCodes.done;
    },
  },
  {
    words: ['limits', 'delete'],
    help: 'delete limits for a given namespace (system defaults apply)',
    positionals: namespace,
    options: [],
    async run({ given, client, print }: CommandContext): Promise<number> {
      return attempt(print, 'delete limits', async () => {
        await client.request('DELETE', pathOf(given.positional('namespace')));
        print('Limits deleted');
      });
    },
  },
];

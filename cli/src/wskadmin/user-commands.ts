import { randomBytes, randomUUID } from 'node:crypto';
import { printable } from '../printable.js';
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

const namespaceOption = (help: string): OptionSpec => ({ names: ['--namespace', '-ns'], type: 'text', help });
const subjectPath = (subject: string): string => `subjects/${encodeURIComponent(subject)}`;

interface Key {
  name: string;
  uuid: string;
  key: string;
  subject?: string;
}

const keysOf = (value: Json | undefined): Key[] => (Array.isArray(value) ? (value as unknown as Key[]) : []);
const authKey = ({ uuid, key }: Pick<Key, 'uuid' | 'key'>): string => `${uuid}:${key}`;

const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';

/** 64 letters and digits. */
function randomKey(): string {
  return Array.from(randomBytes(64), (byte) => letters[byte % letters.length]).join('');
}

/** The uuid and key of `uuid:key`, or the text of an error in them. */
function parseAuth(text: string): { uuid: string; key: string } | string {
  const [uuid = '', key] = text.split(':');
  const digits = uuid.replaceAll('-', '').toLowerCase();
  if (!/^[0-9a-f]{32}$/.test(digits)) return 'authorization id is not a valid UUID';
  if (key === undefined || key.length < 64) return 'authorization key must be at least 64 characters long';
  const groups = [
    digits.slice(0, 8),
    digits.slice(8, 12),
    digits.slice(12, 16),
    digits.slice(16, 20),
    digits.slice(20),
  ];
  return { uuid: groups.join('-'), key };
}

async function create({ given, client, print }: CommandContext): Promise<number> {
  const subject = given.positional('subject').trim();
  if (subject.length < 5) {
    print('Subject name must be at least 5 characters');
    return exitCodes.usage;
  }
  const namespace = given.text('namespace')?.trim() ?? subject;
  if (namespace === '') {
    print('Namespace must not be empty');
    return exitCodes.usage;
  }
  const credentials = given.text('auth');
  const auth = credentials === undefined ? { uuid: randomUUID(), key: randomKey() } : parseAuth(credentials);
  if (typeof auth === 'string') {
    print(auth);
    return exitCodes.usage;
  }
  if (given.flag('genonly')) {
    print(authKey(auth));
    return exitCodes.done;
  }
  try {
    await client.request('PUT', subjectPath(subject), { namespace, ...auth, revoke: given.flag('revoke') });
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    print(error.status === 409 ? error.message : `Failed to create subject (${error.message})`);
    return exitCodes.failed;
  }
  if (!given.flag('silent')) print(authKey(auth));
  return exitCodes.done;
}

async function remove({ given, client, print }: CommandContext): Promise<number> {
  const subject = given.positional('subject').trim();
  const namespace = given.text('namespace')?.trim();
  if (subject === '' || namespace === '') {
    print(subject === '' ? 'Subject must not be empty' : 'Namespace must not be empty');
    return exitCodes.usage;
  }
  const query = namespace === undefined ? '' : `?namespace=${encodeURIComponent(namespace)}`;
  try {
    await client.request('DELETE', `${subjectPath(subject)}${query}`);
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    const known = error.message.startsWith('Namespace "');
    print(known ? error.message : `Failed to delete subject (${error.message})`);
    return exitCodes.failed;
  }
  print(namespace === undefined ? 'Subject deleted' : 'Namespace deleted');
  return exitCodes.done;
}

async function get({ given, client, print }: CommandContext): Promise<number> {
  const subject = given.positional('subject');
  const wanted = given.text('namespace') ?? subject;
  let found = true;
  const code = await attempt(print, 'get subject', async () => {
    const answer = await client.request('GET', subjectPath(subject));
    const keys = keysOf(isObject(answer) ? answer.namespaces : undefined);
    if (given.flag('all')) {
      for (const one of keys) print(`${one.name}\t${authKey(one)}`);
      return;
    }
    const owned = keys.filter(({ name }) => name === wanted);
    found = owned.length === 1;
    print(owned[0] !== undefined && found ? authKey(owned[0]) : `namespace "${wanted}" not found for "${subject}"`);
  });
  return found ? code : exitCodes.failed;
}

async function whois({ given, client, print }: CommandContext): Promise<number> {
  try {
    const answer = await client.request('POST', 'whois', { authkey: given.positional('authkey') });
    if (isObject(answer)) print(`subject: ${String(answer.subject)}\nnamespace: ${String(answer.name)}`);
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    if (error.status !== 404) {
      print(`Failed to get subject (${error.message})`);
      return exitCodes.failed;
    }
    print('Subject id is not recognized');
  }
  return exitCodes.done;
}

async function list({ given, client, print }: CommandContext): Promise<number> {
  const namespace = given.positional('namespace');
  const most = given.whole('pick') ?? 1;
  if (most < 1) {
    print('pick at least 1 identity to show');
    return exitCodes.usage;
  }
  return attempt(print, 'get namespace key', async () => {
    const keys = keysOf(await client.request('GET', `namespaces/${encodeURIComponent(namespace)}/keys`));
    for (const one of given.flag('all') ? keys : keys.slice(0, most)) {
      print(given.flag('key') ? authKey(one) : `${authKey(one)}\t${one.subject ?? ''}`);
    }
    if (keys.length === 0) print(`no identities found for namespace "${namespace}"`);
  });
}

function blocking(word: 'block' | 'unblock'): AdminCommand {
  return {
    words: ['user', word],
    help: `${word} one or more users`,
    positionals: [{ name: 'subjects', many: 'some' }],
    options: [],
    async run({ given, client, print }: CommandContext): Promise<number> {
      let failed = 0;
      for (const subject of given.positionals('subjects').map((one) => one.trim())) {
        if (subject === '') continue;
        failed += await attempt(print, `${word} "${subject}"`, async () => {
          await client.request('POST', `${subjectPath(subject)}/${word}`);
          print(`"${subject}" ${word}ed successfully`);
        });
      }
      return failed;
    },
  };
}

/** `wskadmin user ...`, as in OpenWhisk's tools/admin/wskadmin. */
export const userCommands: AdminCommand[] = [
  {
    words: ['user', 'create'],
    help: 'create a user and show authorization key',
    positionals: [{ name: 'subject' }],
    options: [
      { names: ['--auth', '-u'], type: 'text', help: 'the uuid:key to give the subject' },
      namespaceOption('create key for given namespace instead (defaults to subject id)'),
      { names: ['--revoke', '-r'], type: 'flag', help: 'revoke existing key and create a new one' },
      { names: ['--genonly', '-g'], type: 'flag', help: 'generate a uuid and key but do not store them' },
      { names: ['--silent', '-s'], type: 'flag', help: 'do not show the new key' },
    ],
    run: create,
  },
  {
    words: ['user', 'delete'],
    help: 'delete a user',
    positionals: [{ name: 'subject' }],
    options: [namespaceOption('delete key for given namespace only')],
    run: remove,
  },
  {
    words: ['user', 'get'],
    help: 'get authorization key for user',
    positionals: [{ name: 'subject' }],
    options: [
      namespaceOption('the namespace to get the key for, defaults to subject id'),
      { names: ['--all', '-a'], type: 'flag', help: 'list all namespaces and their keys' },
    ],
    run: get,
  },
  {
    words: ['user', 'whois'],
    help: 'identify user from an authorization key',
    positionals: [{ name: 'authkey' }],
    options: [],
    run: whois,
  },
  blocking('block'),
  blocking('unblock'),
  {
    words: ['user', 'list'],
    help: 'list authorization keys associated with a namespace',
    positionals: [{ name: 'namespace' }],
    options: [
      { names: ['--pick', '-p'], type: 'whole', help: 'show no more than N identities (default 1)' },
      { names: ['--all', '-a'], type: 'flag', help: 'show all identities' },
      { names: ['--key', '-k'], type: 'flag', help: 'show only the keys' },
    ],
    run: list,
  },
];

/** Limits in their order on the screen. */
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
  ['storedMiB', 'whole', 'what may be stored of this namespace, MiB'],
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

function warn(text: string): void {
  process.stderr.write(`wskadmin: warning: ${printable(text)}\n`);
}

/** A value in Python's notation, which scripts read: `True`, `['a', 'b']`. */
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
        // As in OpenWhisk, limits may be set before the first subject is created.
        const asked = client.request('GET', `namespaces/${encodeURIComponent(name)}/keys`);
        const keys = await asked.then(keysOf, (error: unknown) => {
          // The limits are set; what is unknown is not warned of.
          if (!(error instanceof RequestError)) throw error;
          return undefined;
        });
        if (keys?.length === 0) warn(`No subject has namespace "${name}" yet.`);
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

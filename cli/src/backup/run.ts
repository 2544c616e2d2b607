import { parseArgs } from 'node:util';
import { messageOf, WskError } from '../errors.js';
import { connectServer, RefusedError, UnreachableError, type Server } from '../migrate/http.js';
import { UsageError } from '../migrate/run.js';
import { backUp, existing, restore } from './backup.js';

/** Longest silence of CouchDB, ms: the transfer of 48 MiB of code must fit. */
const timeoutMs = 120_000;
const retryDelayMs = 250;

const flags = {
  couchdb: { type: 'string' },
  'db-prefix': { type: 'string' },
  activations: { type: 'boolean' },
  overwrite: { type: 'boolean' },
  insecure: { type: 'boolean', short: 'i' },
  help: { type: 'boolean', short: 'h' },
} as const;

const common = `  --couchdb URL         with user and password; default: COUCHDB_URL, which others cannot see in the list of processes
  --db-prefix PREFIX    of the databases' names, such as whisk_local_
  --insecure, -i        bypass certificate checking
`;

const help = {
  backup: `usage: gpuwhisk backup FILE [--couchdb URL] --db-prefix PREFIX [options]

Writes entities with their code, identities, limits and what the platform learned into one compressed file, which only
its owner may read: it holds keys. The platform may go on meanwhile.

${common}  --activations         records of activations, too
`,
  restore: `usage: gpuwhisk restore FILE [--couchdb URL] --db-prefix PREFIX [options]

Writes the documents of a backup into databases that are empty or not there. Stop the controllers before: they keep
entities in caches. A damaged file is refused before anything is written.

${common}  --overwrite           into databases with documents, replacing those that are in the backup
`,
};

/** Runs `gpuwhisk backup` or `restore` and returns the exit code: 0, or 1. Throws UsageError and WskError. */
export async function runBackup(
  command: keyof typeof help,
  words: readonly string[],
  environment: NodeJS.ProcessEnv,
): Promise<number> {
  const { values, positionals } = parse(words);
  if (values.help === true) {
    process.stdout.write(help[command]);
    return 0;
  }
  const [file, ...more] = positionals;
  if (file === undefined || more.length > 0) throw new UsageError('one FILE is needed');
  const prefix = values['db-prefix'];
  if (prefix === undefined) throw new UsageError('--db-prefix is missing, such as whisk_local_');
  const unfit = command === 'backup' ? values.overwrite : values.activations;
  if (unfit)
    throw new UsageError(`--${command === 'backup' ? 'overwrite' : 'activations'} does not go with ${command}`);
  const server = open(values.couchdb ?? environment['COUCHDB_URL'], values.insecure === true);
  try {
    return command === 'backup'
      ? await doBackUp(server, prefix, file, values.activations === true)
      : await doRestore(server, prefix, file, values.overwrite === true);
  } catch (error) {
    if (error instanceof RefusedError || error instanceof UnreachableError) throw new WskError(error.message);
    throw error;
  } finally {
    server.close();
  }
}

function parse(words: readonly string[]) {
  try {
    return parseArgs({ args: [...words], options: flags, strict: true, allowPositionals: true });
  } catch (error) {
    throw new UsageError(messageOf(error));
  }
}

function open(text: string | undefined, insecure: boolean): Server {
  if (text === undefined) throw new UsageError('--couchdb is missing, such as http://whisk:secret@localhost:5984');
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol)) {
    throw new UsageError('--couchdb must be an http or https URL');
  }
  const base = new URL(text.endsWith('/') ? text : `${text}/`);
  const auth =
    base.username === '' ? undefined : `${decodeURIComponent(base.username)}:${decodeURIComponent(base.password)}`;
  base.username = base.password = '';
  return connectServer({ base, auth, concurrency: 1, insecure, timeoutMs, retryDelayMs });
}

async function doBackUp(server: Server, prefix: string, file: string, activations: boolean): Promise<number> {
  const wanted = ['subjects', 'whisks', 'gpu', ...(activations ? ['activations'] : [])];
  const databases = await existing(server, prefix, wanted);
  if (databases.length === 0) throw new WskError(`There is nothing of prefix '${prefix}'.`);
  for (const name of wanted) if (!databases.includes(name)) console.error(`There is no database ${prefix}${name}.`);
  const documents = await backUp({ server, prefix, databases, file, createdAt: new Date().toISOString() });
  console.log(`${file}: ${documents} documents`);
  return 0;
}

async function doRestore(server: Server, prefix: string, file: string, overwrite: boolean): Promise<number> {
  const { documents, failed } = await restore({ server, prefix, file, overwrite });
  console.log(`${documents} documents restored`);
  for (const { database, id, reason } of failed) console.error(`Not restored: ${prefix}${database}/${id}: ${reason}`);
  return failed.length === 0 ? 0 : 1;
}

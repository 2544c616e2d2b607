import {
  attempt,
  exitCodes,
  isObject,
  type AdminClient,
  type AdminCommand,
  type CommandContext,
  type Json,
} from './command.js';
import { printableJson } from '../printable.js';

/** Rows of one request. */
const pageRows = 500;

/** All rows of a database by id, or of a view, page by page. */
async function allRows(client: AdminClient, database: string, view: string | undefined, docs: boolean) {
  const rows: Json[] = [];
  const query = new URLSearchParams({ limit: String(pageRows), docs: String(docs) });
  if (view !== undefined) query.set('view', view);
  for (;;) {
    const last = rows.at(-1);
    if (view !== undefined) query.set('skip', String(rows.length));
    else if (isObject(last)) query.set('after', String(last.id));
    const answer = await client.request(
      'GET',
      `databases/${encodeURIComponent(database)}/documents?${query.toString()}`,
    );
    const page = isObject(answer) && Array.isArray(answer.rows) ? answer.rows : [];
    for (const row of page) rows.push(row);
    if (page.length < pageRows) return rows;
  }
}

/** The same value with the fields of every object in order of their names. */
function sorted(value: Json): Json {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([name, inner]) => [name, sorted(inner)]),
  );
}

/** `wskadmin db ...` and `wskadmin syslog ...`. */
export const dataCommands: AdminCommand[] = [
  {
    words: ['db', 'get'],
    help: 'get contents of database',
    positionals: [{ name: 'database' }],
    options: [
      { names: ['--view', '-w'], type: 'text', help: 'the view in the database to query, as design/view' },
      { names: ['--docs'], type: 'flag', help: 'include document contents' },
    ],
    async run({ given, client, print }: CommandContext): Promise<number> {
      const database = given.positional('database');
      const view = given.text('view');
      if (view !== undefined && !/^[^/]+\/[^/]+$/.test(view)) {
        print(`view name "${view}" is not formatted correctly, should be design/view`);
        return exitCodes.usage;
      }
      print(`getting contents for ${database} (${view ?? 'primary index'})`);
      return attempt(print, 'get database', async () => {
        const rows = await allRows(client, database, view, given.flag('docs'));
        print(printableJson(JSON.stringify(sorted({ total_rows: rows.length, offset: 0, rows }), null, 4)));
      });
    },
  },
  {
    words: ['syslog', 'get'],
    help: 'get logs',
    positionals: [{ name: 'components', many: 'any' }],
    options: [
      { names: ['--tid', '-t'], type: 'text', help: 'retrieve logs for the transaction id' },
      { names: ['--grep', '-g'], type: 'text', help: 'retrieve logs that contain this text' },
    ],
    // All components of a standalone platform write one log: selecting components has no effect.
    async run({ given, client, print }: CommandContext): Promise<number> {
      const query = new URLSearchParams();
      const transactionId = given.text('tid');
      const text = given.text('grep');
      if (transactionId !== undefined) query.set('transid', transactionId);
      else if (text !== undefined) query.set('grep', text);
      return attempt(print, 'get logs', async () => {
        const answer = await client.request('GET', `syslog?${query.toString()}`);
        const lines = isObject(answer) && Array.isArray(answer.lines) ? answer.lines : [];
        for (const line of lines) print(String(line));
      });
    },
  },
];

/** Interval of asking whether the retirement has ended, ms. */
const askMs = 500;

const retireCommand = (sort: 'invoker' | 'controller'): AdminCommand => ({
  words: [sort, 'retire'],
  help: `give up the ${sort} of a machine that never comes back`,
  positionals: [{ name: 'name' }],
  options: [],
  async run({ given, client, print }: CommandContext): Promise<number> {
    const name = given.positional('name');
    return attempt(print, `retire ${sort}`, async () => {
      for (;;) {
        const answer = await client.request('POST', `${sort}s/${encodeURIComponent(name)}/retire`);
        const progress = isObject(answer) ? answer : {};
        if (progress.isSettled === true) {
          const { moved, stopped, number } = progress;
          print(
            `Retired ${sort} ${name} (number ${String(number)}): moved ${String(moved)}, stopped ${String(stopped)}`,
          );
          return;
        }
        await new Promise((resolve) => setTimeout(resolve, askMs));
      }
    });
  },
});

/** `wskadmin invoker retire` and `wskadmin controller retire`. */
export const retireCommands: AdminCommand[] = [retireCommand('invoker'), retireCommand('controller')];

/** Records of one request. */
const refusedPageRows = 500;

async function allRefused(client: AdminClient): Promise<{ [key: string]: Json }[]> {
  const records: { [key: string]: Json }[] = [];
  for (;;) {
    const query = new URLSearchParams({ limit: String(refusedPageRows), after: String(records.at(-1)?.id ?? '') });
    const answer = await client.request('GET', `refused-records?${query.toString()}`);
    const page = Array.isArray(answer) ? answer.filter(isObject) : [];
    records.push(...page);
    if (page.length < refusedPageRows) return records;
  }
}

const refusedPath = (id: string): string => `refused-records/${id.split('/').map(encodeURIComponent).join('/')}`;

/** `wskadmin refused ...`: activation records that the store refuses permanently. */
export const refusedCommands: AdminCommand[] = [
  {
    words: ['refused', 'list'],
    help: 'list activation records that the store refuses',
    positionals: [],
    options: [],
    run: ({ client, print }: CommandContext) =>
      attempt(print, 'list refused records', async () => {
        for (const { id, refusedAt, bytes, reason } of await allRefused(client)) {
          print(
            `${String(id)}\t${new Date(Number(refusedAt)).toISOString()}\t${String(bytes)} bytes\t${String(reason)}`,
          );
        }
      }),
  },
  {
    words: ['refused', 'get'],
    help: 'get a refused record as it was',
    positionals: [{ name: 'namespace/activation' }],
    options: [],
    run: ({ given, client, print }: CommandContext) =>
      attempt(print, 'get refused record', async () => {
        print(
          printableJson(
            JSON.stringify(await client.request('GET', refusedPath(given.positional('namespace/activation'))), null, 4),
          ),
        );
      }),
  },
  {
    words: ['refused', 'delete'],
    help: 'delete refused records',
    positionals: [{ name: 'namespace/activation', many: 'some' }],
    options: [],
    async run({ given, client, print }: CommandContext): Promise<number> {
      let code: number = exitCodes.done;
      for (const id of given.positionals('namespace/activation')) {
        const ended = await attempt(print, `delete ${id}`, async () => {
          await client.request('DELETE', refusedPath(id));
          print(`Refused record ${id} deleted`);
        });
        if (ended !== exitCodes.done) code = ended;
      }
      return code;
    },
  },
];

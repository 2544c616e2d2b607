import {
  attempt,
  exitCodes,
  isObject,
  type AdminClient,
  type AdminCommand,
  type CommandContext,
  type Json,
} from './command.js';

/** Records of one request. */
const pageRows = 500;

async function allRefused(client: AdminClient): Promise<{ [key: string]: Json }[]> {
  const records: { [key: string]: Json }[] = [];
  for (;;) {
    const query = new URLSearchParams({ limit: String(pageRows), after: String(records.at(-1)?.id ?? '') });
    const answer = await client.request('GET', `refused-records?${query.toString()}`);
    const page = Array.isArray(answer) ? answer.filter(isObject) : [];
    records.push(...page);
    if (page.length < pageRows) return records;
  }
}

const pathOf = (id: string): string => `refused-records/${id.split('/').map(encodeURIComponent).join('/')}`;

/** `wskadmin refused ...`: activation records that the store refuses for good. */
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
        print(JSON.stringify(await client.request('GET', pathOf(given.positional('namespace/activation'))), null, 4));
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
          await client.request('DELETE', pathOf(id));
          print(`Refused record ${id} deleted`);
        });
        if (ended !== exitCodes.done) code = ended;
      }
      return code;
    },
  },
];

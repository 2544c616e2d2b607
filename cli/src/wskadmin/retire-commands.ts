import { isObject } from './admin-client.js';
import { attempt, type AdminCommand, type CommandContext } from './command.js';

/** How often it is asked whether all is settled. */
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

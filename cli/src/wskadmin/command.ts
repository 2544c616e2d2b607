import { RequestError, type AdminClient } from './admin-client.js';
import type { CommandSpec, Given } from './arguments.js';

/** What a running command works with. */
export interface CommandContext {
  given: Given;
  client: AdminClient;
  /** Prints a line. */
  print(line: string): void;
}

/** A command that runs: resolves with the exit code. Throws RequestError, UsageError. */
export interface AdminCommand extends CommandSpec {
  run(context: CommandContext): Promise<number>;
}

/** Exit codes of wskadmin. */
export const exitCodes = { done: 0, failed: 1, usage: 2 } as const;

/** `request`, and on failure a line `Failed to <what> (<reason>)`. */
export async function attempt(
  print: (line: string) => void,
  what: string,
  request: () => Promise<void>,
): Promise<number> {
  try {
    await request();
    return exitCodes.done;
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    print(`Failed to ${what} (${error.message})`);
    return exitCodes.failed;
  }
}

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const timeoutMs = 10_000;

/** The program that notifies the service manager. */
const program = 'systemd-notify';

/**
 * Tells systemd that this process serves, so that a rolling restart may go on to the next. Resolves at once, with false, where
 * no manager asks for that (NOTIFY_SOCKET). Rejects with what the program says; the unit's start then ends with its time-out.
 */
export async function notifyReady(env: NodeJS.ProcessEnv): Promise<boolean> {
  if (env.NOTIFY_SOCKET === undefined) return false;
  // Node.js has no datagram sockets of Unix; it waits until the message was taken, so that its sender is still known by then.
  await promisify(execFile)(program, ['--ready', '--status=It serves.'], { env, timeout: timeoutMs });
  return true;
}

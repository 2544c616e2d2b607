import { spawn } from 'node:child_process';
import { deferred } from '../protocol/connection.js';

const startTimeoutMs = 5000;
const endTimeoutMs = 5000;
const keptBytes = 2000;

/** What keeps a PID namespace for several sandboxes; all that is in it ends when it does. */
export interface Holder {
  /** The namespace as the launcher or the Docker engine names it; valid while the holder lives. */
  readonly pidNamespace: string;
  /** Resolves when it has ended, for whatever reason. */
  readonly exited: Promise<void>;
  /** Ends it, with what is in the namespace. */
  end(): Promise<void>;
}

/** Where containers share a PID namespace. */
export interface SharedNamespace {
  /** Of the MSContainer, for its containers to tell. */
  id: string;
  /** As Holder.pidNamespace. */
  pidNamespace: string;
}

/** How the command line of a holder goes on after its tag. */
export const holdFlag = '--hold';

/**
 * Starts a holder; needs root. `tag` finds leftovers, `userId` is who the first process of the namespace runs as.
 * Rejects with an Error that says why there is none.
 */
export async function startHolder(launcherPath: string, tag: string, userId: number): Promise<Holder> {
  const child = spawn(launcherPath, [tag, holdFlag, String(userId)], { stdio: ['ignore', 'pipe', 'pipe'], env: {} });
  const said = { stdout: '', stderr: '' };
  const exited = deferred<void>();
  const holding = deferred<boolean>();
  child.on('error', (error) => {
    said.stderr += error.message;
    exited.resolve();
  });
  child.on('close', () => exited.resolve());
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said.stderr = (said.stderr + text).slice(-keptBytes)));
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    said.stdout = (said.stdout + text).slice(-keptBytes);
    if (said.stdout.includes('holding')) holding.resolve(true);
  });
  void exited.promise.then(() => holding.resolve(false));
  const timer = setTimeout(() => child.kill('SIGKILL'), startTimeoutMs);
  const held = await holding.promise;
  clearTimeout(timer);
  if (!held || child.pid === undefined) throw new Error(reasonOf(said.stderr));
  const end = async (): Promise<void> => {
    child.kill('SIGKILL');
    const late = setTimeout(() => exited.resolve(), endTimeoutMs);
    await exited.promise;
    clearTimeout(late);
  };
  return { pidNamespace: `/proc/${child.pid}/ns/pid_for_children`, exited: exited.promise, end };
}

function reasonOf(complaint: string): string {
  const [, , reason] = complaint.trim().split('\n');
  return reason ?? (complaint.trim() || 'it ended at once');
}

// Who looks at the console. The key is kept in memory only: a page that is loaded again asks for it.
import { signal } from '@preact/signals';
import { apiUrl, infoUrl } from './api-path.js';

/** The key that was given, `uuid:secret`, and what it may see. */
export interface Session {
  key: string;
  /** The namespace of the key; an operator's key that has none shows all. */
  namespace: string;
  isOperator: boolean;
}

/** Undefined: no key was given. */
export const session = signal<Session | undefined>(undefined);
/** Why the last session ended; empty if it ended by the user's wish. */
export const endedBecause = signal('');

/** Keeps the browser from asking for a password of its own when a key is refused. */
export const credentials = 'omit';

/** The Authorization header of the session. */
export function authorization(key = session.value?.key ?? ''): string {
  return `Basic ${btoa(key)}`;
}

/** Time after which a read that got no answer is asked once more, ms. */
const againMs = 500;

/** Sends a request; a read that gets no answer is sent once more. Rejects with an Error if there is none. */
async function send(url: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(url, { ...init, credentials });
  } catch (error) {
    if (init.method !== undefined) throw error;
    // Chromium drops requests while links of the machine come and go, as those of containers do.
    await new Promise((resolve) => setTimeout(resolve, againMs));
    return fetch(url, { ...init, credentials });
  }
}

/** An answer of the API, whatever its status. Rejects with an Error if the path is refused, or no JSON answers. */
export async function exchange(
  path: string,
  init: RequestInit = {},
  key?: string,
): Promise<{ status: number; body: unknown }> {
  const headers = { Authorization: authorization(key), 'Content-Type': 'application/json' };
  const answer = await send(apiUrl(path), { ...init, headers });
  const text = await answer.text();
  return { status: answer.status, body: text === '' ? undefined : (JSON.parse(text) as unknown) };
}

/** An answer of the API. Rejects with an Error that tells what the API said. */
export async function ask(path: string, init: RequestInit = {}, key?: string): Promise<unknown> {
  const { status, body } = await exchange(path, init, key);
  if (status >= 200 && status < 300) return body;
  throw problemOf(status, body);
}

/** What the server tells of itself to all: its kinds, by family. */
export interface ServerInfo {
  runtimes: Readonly<Record<string, readonly { kind: string; deprecated: boolean; default: boolean }[]>>;
}

/** Rejects with an Error if the server does not answer. */
export async function serverInfo(): Promise<ServerInfo> {
  const answer = await send(infoUrl, {});
  if (!answer.ok) throw problemOf(answer.status, undefined);
  return (await answer.json()) as ServerInfo;
}

/** What an answer of the API refuses. */
export function problemOf(status: number, body: unknown): ApiProblem {
  const { error } = (body ?? {}) as { error?: unknown };
  return new ApiProblem(status, typeof error === 'string' ? error : `The answer has status ${status}.`);
}

/** What the API has refused. */
export class ApiProblem extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

/** Begins a session. Rejects with an Error that tells why it cannot. */
export async function signIn(given: string): Promise<void> {
  const key = given.trim();
  // Keys are ASCII, and btoa takes nothing else beyond.
  if (!/^[\x21-\x7e]+$/.test(key)) throw new Error('A key has the form UUID:SECRET.');
  const viewer = (await ask('viewer', {}, key)) as { namespace?: string; isOperator: boolean };
  endedBecause.value = '';
  session.value = { key, namespace: viewer.namespace ?? '', isOperator: viewer.isOperator };
}

/** Ends the session, and forgets the key. */
export function signOut(why = ''): void {
  endedBecause.value = why;
  session.value = undefined;
}

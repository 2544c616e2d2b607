import type { RegisterCall } from './history-check.js';

/** Sends a request to the API and resolves with its status and its body. */
export type Send = (
  url: string,
  init: { method: string; body?: string; headers: Record<string, string> },
) => Promise<{ status: number; body: unknown }>;

/** The longest wait for an answer, ms: after it the outcome is unknown. */
const answerMs = 3000;
/** Pause of a caller between two calls, ms. */
const everyMs = 60;

export const sendRequest: Send = async (url, init) => {
  const answer = await fetch(url, { ...init, signal: AbortSignal.timeout(answerMs) });
  return { status: answer.status, body: await answer.json() };
};

/** Callers that write and read registers, each of which is a package with one annotation. */
export interface RegisterCalls {
  /** Stops the callers; resolves with all calls whose outcome is not a refusal, once each caller has its answer. */
  end(): Promise<RegisterCall[]>;
}

/**
 * Starts a caller of each register at each of `urls`, after it has written `initial` to the registers. `auth`: of an operator
 * with namespace guest.
 */
export async function startRegisterCalls(
  urls: readonly string[],
  auth: string,
  registers: readonly string[],
  initial: number,
  send: Send = sendRequest,
): Promise<RegisterCalls> {
  const headers = {
    authorization: `Basic ${Buffer.from(auth).toString('base64')}`,
    'content-type': 'application/json',
  };
  const address = (url: string, register: string): string => `${url}/api/v1/namespaces/_/packages/${register}`;
  const write = (url: string, register: string, value: number, by: Send): ReturnType<Send> =>
    by(`${address(url, register)}?overwrite=true`, {
      ...{ method: 'PUT', headers },
      body: JSON.stringify({ annotations: [{ key: 'value', value }] }),
    });
  // From the store: what a controller answers from its cache may be older by as long as word of a change takes.
  const read = async (url: string, register: string): Promise<number | undefined> => {
    const document = `${url}/api/v1/admin/databases/whisks/documents/${encodeURIComponent(`guest/${register}`)}`;
    const { status, body } = await send(document, { method: 'GET', headers });
    const { annotations } = body as { annotations: { key: string; value: number }[] };
    return status === 200 ? annotations.find(({ key }) => key === 'value')?.value : undefined;
  };
  for (const register of registers) {
    const { status } = await write(urls[0] ?? '', register, initial, sendRequest);
    if (status !== 200) throw new Error(`${register} could not be written: ${status}`);
  }
  const calls: RegisterCall[] = [];
  let last = initial;
  let isOver = false;
  const call = async (url: string, register: string): Promise<void> => {
    const beganMs = performance.now();
    if (last % 2 === 0) {
      const value = ++last;
      const status = await write(url, register, value, send).then(
        (answer) => answer.status,
        () => 500,
      );
      // Another status is a refusal, which has no effect.
      if (status !== 200 && status < 500) return;
      const endedMs = status === 200 ? performance.now() : Infinity;
      calls.push({ register, kind: 'write', value, beganMs, endedMs });
    } else {
      last++;
      const value = await read(url, register).catch(() => undefined);
      if (value !== undefined) calls.push({ register, kind: 'read', value, beganMs, endedMs: performance.now() });
    }
  };
  const repeat = async (url: string, register: string): Promise<void> => {
    while (!isOver) {
      await call(url, register);
      await new Promise((resolve) => setTimeout(resolve, everyMs));
    }
  };
  const callers = Promise.all(urls.flatMap((url) => registers.map((register) => repeat(url, register))));
  return {
    async end() {
      isOver = true;
      await callers;
      return calls;
    },
  };
}

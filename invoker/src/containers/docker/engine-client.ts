import { Agent, request as httpRequest } from 'node:http';
import type { ClientRequest, IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Clock } from '@gpuwhisk/common/system/clock';

/** Connections to the engine that are kept for the next call. */
const maxIdleConnections = 16;
/** Largest answer, bytes; a longer one is an error. */
const maxAnswerBytes = 16 * 1024 * 1024;
/** Version of the Engine API: Docker 20.10 and newer. */
const apiVersion = 'v1.41';

/** The engine answered with an error, whose text is `message`, or (status 0) did not answer in time. */
export class EngineError extends Error {
  override name = 'EngineError';
  constructor(
    message: string,
    /** HTTP status; 0 if the engine cannot be reached or did not answer in time. */
    readonly status: number,
    /** Whether the time limit passed after the call was sent: the engine may still do the work. */
    readonly isLate = false,
  ) {
    super(message);
  }

  /** Whether the engine itself failed, rather than the request. */
  get isUnreachable(): boolean {
    return this.status === 0;
  }
}

/** One call of the Engine API. */
export interface EngineCall {
  method: 'GET' | 'POST' | 'DELETE';
  /** Path without the version, such as `/containers/json`. */
  path: string;
  query?: Readonly<Record<string, string | number | boolean>>;
  body?: object;
  /** Time limit for the whole answer, ms. */
  timeoutMs: number;
}

/** HTTP client of a Docker engine's Unix socket. Every call has a time limit. */
export class EngineClient {
  private readonly agent = new Agent({ keepAlive: true, maxFreeSockets: maxIdleConnections });

  constructor(
    readonly socketPath: string,
    private readonly clock: Clock,
  ) {}

  /** The parsed answer; undefined for an empty body. Rejects with EngineError. */
  async call<Answer>(call: EngineCall): Promise<Answer | undefined> {
    const { text } = await this.exchange(call, readAll);
    return text === '' ? undefined : (JSON.parse(text) as Answer);
  }

  /** As call, for an answer with a JSON value on each line: `each` gets every value as it arrives. */
  async callForLines(call: EngineCall, each: (line: unknown) => void): Promise<void> {
    await this.exchange(call, async (response) => {
      let rest = '';
      response.setEncoding('utf8');
      for await (const chunk of response as AsyncIterable<string>) {
        const lines = (rest + chunk).split('\n');
        rest = lines.pop() ?? '';
        if (rest.length > maxAnswerBytes) throw new EngineError('The engine sent a line that is too long.', 500);
        for (const line of lines) if (line.trim() !== '') each(JSON.parse(line));
      }
      return rest;
    });
  }

  /** As call, for an answer in bytes. */
  callForBytes(call: EngineCall): Promise<Buffer> {
    return this.exchange(call, readBytes).then(({ bytes }) => bytes ?? Buffer.alloc(0));
  }

  /** Turns the connection of a call into a stream; `head` holds the bytes already read. Rejects with EngineError. */
  hijack(call: EngineCall): Promise<{ stream: Duplex; head: Buffer }> {
    return new Promise((resolve, reject) => {
      const outgoing = this.send(call, { connection: 'Upgrade', upgrade: 'tcp' });
      const timer = this.limit(call, outgoing, reject);
      outgoing.on('error', (error) => {
        timer.cancel();
        reject(unreachable(this.socketPath, error));
      });
      outgoing.on('upgrade', (_, stream: Duplex, head: Buffer) => {
        timer.cancel();
        resolve({ stream, head });
      });
      outgoing.on('response', (response) => {
        readAll(response)
          .then((read) => reject(answerError(response.statusCode ?? 0, read.text)), reject)
          .finally(() => timer.cancel());
      });
      outgoing.end();
    });
  }

  /** Ends the kept connections. */
  close(): void {
    this.agent.destroy();
  }

  private exchange<Read>(call: EngineCall, read: (response: IncomingMessage) => Promise<Read>): Promise<Read> {
    return new Promise((resolve, reject) => {
      const outgoing = this.send(call);
      const timer = this.limit(call, outgoing, reject);
      const settle = (done: () => void): void => {
        timer.cancel();
        done();
      };
      outgoing.on('error', (error) => settle(() => reject(unreachable(this.socketPath, error))));
      outgoing.on('response', (response) => {
        const status = response.statusCode ?? 0;
        const reading: Promise<Read> =
          status < 300 || status === 304
            ? read(response)
            : readAll(response).then(({ text }) => Promise.reject(answerError(status, text)));
        reading.then(
          (value) => settle(() => resolve(value)),
          (error: Error) =>
            settle(() => {
              outgoing.destroy();
              reject(error instanceof EngineError ? error : unreachable(this.socketPath, error));
            }),
        );
      });
      outgoing.end(call.body === undefined ? undefined : JSON.stringify(call.body));
    });
  }

  private limit(call: EngineCall, outgoing: ClientRequest, reject: (error: Error) => void): { cancel(): void } {
    return this.clock.setTimer(call.timeoutMs, () => {
      reject(new EngineError(`The Docker engine did not answer ${call.path} within ${call.timeoutMs} ms.`, 0, true));
      outgoing.destroy();
    });
  }

  private send({ method, path, query = {}, body }: EngineCall, headers: Record<string, string> = {}): ClientRequest {
    const words = Object.entries(query).map(([key, value]): [string, string] => [key, String(value)]);
    const search = words.length === 0 ? '' : `?${new URLSearchParams(words).toString()}`;
    return httpRequest({
      socketPath: this.socketPath,
      // A connection that becomes a stream must not return to the agent.
      agent: headers.upgrade === undefined ? this.agent : false,
      method,
      path: `/${apiVersion}${path}${search}`,
      headers: { host: 'docker', ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
    });
  }
}

async function readBytes(response: IncomingMessage): Promise<{ bytes: Buffer }> {
  const pieces: Buffer[] = [];
  let length = 0;
  for await (const piece of response as AsyncIterable<Buffer>) {
    length += piece.length;
    if (length > maxAnswerBytes)
      throw new EngineError(`The engine's answer is longer than ${maxAnswerBytes} bytes.`, 500);
    pieces.push(piece);
  }
  return { bytes: Buffer.concat(pieces) };
}

async function readAll(response: IncomingMessage): Promise<{ text: string }> {
  return { text: (await readBytes(response)).bytes.toString() };
}

function answerError(status: number, text: string): EngineError {
  let message = text.trim();
  try {
    const { message: told } = JSON.parse(text) as { message?: unknown };
    if (typeof told === 'string') message = told;
  } catch {
    // A proxy before the engine may answer in plain text, which is shown unchanged.
  }
  return new EngineError(message, status);
}

function unreachable(socketPath: string, error: Error): EngineError {
  return new EngineError(`The Docker engine at ${socketPath} cannot be reached: ${error.message}`, 0);
}

import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  outcomesOf,
  resultOutcome,
  resultsOutcome,
  unreadOutcome,
} from '@gpuwhisk/invoker/containers/protocol/call-outcome';
import type { InitRequest, CallOutcome, RunRequest } from '@gpuwhisk/invoker/containers/container-factory';
import { encodeParts, initParts, runParts } from '@gpuwhisk/invoker/containers/protocol/frames';
import type { RuntimeLaunch } from '@gpuwhisk/invoker/containers/runtime-launch';

/** A frame of the protocol. */
export interface Frame {
  type: number;
  id: number;
  payload: Buffer;
  /** The payload as text. */
  text: string;
  /** Whether it came by the socket for runs. */
  isDirect: boolean;
}

const types = { hello: 1, init: 2, run: 3, result: 4, error: 5, log: 6, unload: 9, check: 10, results: 11, code: 14 };
const noLimits = { timeoutMs: Infinity, logLimitBytes: Infinity, maxResultBytes: Infinity, truncationBytes: 0 };

/** The answer to an init or run, and the output of the process until its log frame. */
export interface Answer {
  /** The parsed payload of the result or error frame. */
  body: unknown;
  isError: boolean;
  stdout: string;
  stderr: string;
}

/** One frame as bytes. */
export function encodeFrame(type: number, id: number, content: string | Buffer): Buffer {
  const payload = Buffer.from(content);
  const header = Buffer.alloc(9);
  header.writeUInt32LE(payload.length, 0);
  header.writeUInt8(type, 4);
  header.writeUInt32LE(id, 5);
  return Buffer.concat([header, payload]);
}

/** A runtime as a plain process, with the test's end of its socket. */
export class RuntimeProcess {
  readonly folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-runtime-'));
  readonly socket: Socket;
  readonly frames: Frame[] = [];
  readonly exited: Promise<number | null>;
  stdout = '';
  stderr = '';
  private readonly child: ChildProcess;
  /** The socket for runs, where the launch has one, and whether the next run may go there. */
  readonly runs: Socket | undefined;
  private direct = false;
  private runsTakeParts = false;
  private waiting: (() => void)[] = [];
  private gone = false;
  private nextId = 1;
  private hello: Promise<Frame> | undefined;

  get pid(): number | undefined {
    return this.child.pid;
  }

  constructor(launch: RuntimeLaunch, env: Record<string, string> = {}) {
    const [program, ...args] = launch.command;
    this.child = spawn(program ?? '', args, {
      cwd: this.folder,
      env: { PATH: process.env.PATH, ...launch.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe', 'pipe', launch.servesRuns ? 'pipe' : 'ignore'],
    });
    this.socket = this.child.stdio[3] as Socket;
    this.runs = (this.child.stdio[4] ?? undefined) as Socket | undefined;
    for (const socket of [this.socket, this.runs]) {
      socket?.on('data', this.receiver(socket === this.socket));
      socket?.on('error', () => this.wake()); // The runtime disconnected: pending waits see `gone`.
    }
    this.child.stdout?.on('data', (bytes: Buffer) => (this.stdout += bytes.toString()));
    this.child.stderr?.on('data', (bytes: Buffer) => (this.stderr += bytes.toString()));
    this.exited = new Promise((resolve) => {
      this.child.on('close', (code) => {
        this.gone = true;
        this.wake();
        resolve(code);
      });
    });
  }

  /** Resolves with the first frame that `wanted` accepts. Rejects if the process ends without such a frame. */
  async frame(wanted: (frame: Frame) => boolean): Promise<Frame> {
    for (;;) {
      const found = this.frames.find(wanted);
      if (found) return found;
      if (this.gone) throw new Error(`The runtime ended. It printed: ${this.stdout}${this.stderr}`);
      await new Promise<void>((resolve) => this.waiting.push(resolve));
    }
  }

  async init(request: Partial<InitRequest>): Promise<Answer> {
    const whole: InitRequest = { name: 'a', main: 'main', binary: false, env: {}, ...request };
    if (!(await this.takesParts())) return this.ask(types.init, JSON.stringify(whole));
    const parts = initParts(whole);
    if (typeof parts !== 'string') return this.ask(types.init, encodeParts(parts));
    return { body: { error: parts }, isError: true, stdout: this.stdout, stderr: this.stderr };
  }

  /** As init, with the code behind it in frames of `pieceBytes`. */
  async initInFrames({ code = '', ...request }: Partial<InitRequest>, pieceBytes: number): Promise<Answer> {
    const whole = { name: 'a', main: 'main', binary: false, env: {}, ...request };
    const bytes = Buffer.from(code, whole.binary ? 'base64' : 'utf8');
    const pieces: Buffer[] = [];
    for (let at = 0; at < bytes.length; at += pieceBytes) pieces.push(bytes.subarray(at, at + pieceBytes));
    return this.ask(types.init, JSON.stringify({ ...whole, codeBytes: bytes.length }), { pieces });
  }

  async run(value: unknown, more: Partial<RunRequest> = {}): Promise<Answer> {
    const request = { value, activation_id: 'f'.repeat(32), deadline: '1000', ...more } as RunRequest;
    const takesParts = await this.takesParts();
    const direct = this.direct && !(this.runsTakeParts && request.batch !== undefined);
    const inParts = takesParts && (!direct || this.runsTakeParts);
    const payload = inParts ? encodeParts(runParts(request)) : JSON.stringify(request);
    return this.ask(types.run, payload, { batch: request.batch, direct });
  }

  async unload(thorough = false): Promise<Answer> {
    if (await this.takesParts()) return this.ask(types.unload, encodeParts(thorough ? [['thorough', 'true']] : []));
    return this.ask(types.unload, JSON.stringify(thorough ? { thorough } : {}));
  }

  async check(): Promise<Answer> {
    return this.ask(types.check, (await this.takesParts()) ? '' : '{}');
  }

  /** Sends a frame unchanged. */
  send(type: number, id: number, content: string | Buffer): void {
    this.socket.write(encodeFrame(type, id, content));
  }

  /** Kills the process and removes its folder. */
  async close(): Promise<void> {
    this.child.kill('SIGKILL');
    await this.exited;
    rmSync(this.folder, { recursive: true, force: true });
  }

  /**
   * Whether the hello announces `parts`. Waits for the hello, as the platform does: an answer that is read together
   * with the hello may be handled before earlier output.
   */
  private async takesParts(): Promise<boolean> {
    const { text } = await (this.hello ??= this.frame(({ type }) => type === types.hello));
    const { parts, directParts } = JSON.parse(text) as { parts?: boolean; directParts?: boolean };
    this.runsTakeParts = directParts === true;
    return parts === true;
  }

  private async ask(
    type: number,
    content: string | Buffer,
    { batch, direct = false, pieces = [] }: { batch?: string | undefined; direct?: boolean; pieces?: Buffer[] } = {},
  ): Promise<Answer> {
    const id = this.nextId++;
    const takesParts = await this.takesParts();
    const socket = direct && this.runs ? this.runs : this.socket;
    socket.write(encodeFrame(type, id, content));
    for (const piece of pieces) socket.write(encodeFrame(types.code, id, piece));
    const answers = [types.result, types.error, types.results];
    const answer = await this.frame((frame) => frame.id === id && answers.includes(frame.type));
    await this.frame((frame) => frame.id === id && frame.type === types.log);
    await new Promise((resolve) => setImmediate(resolve)); // Input that is readable at this moment is handled first.
    const isRead = answer.isDirect && !this.runsTakeParts;
    const isUnread = takesParts && !isRead;
    const printed = { stdout: this.stdout, stderr: this.stderr };
    const isError = answer.type === types.error;
    // As the platform keeps it: halves of surrogate pairs are replaced.
    if (isRead && !isError && batch === undefined) return { ...bodyOf(answer, batch, isRead), ...printed };
    if (!isUnread || (type !== types.run && !isError)) return { body: JSON.parse(answer.text), isError, ...printed };
    return { ...bodyOf(answer, batch, isRead), ...printed };
  }

  private receiver(isMain: boolean): (bytes: Buffer) => void {
    let received = Buffer.alloc(0);
    return (bytes) => {
      received = Buffer.concat([received, bytes]);
      while (received.length >= 9) {
        const end = 9 + received.readUInt32LE(0);
        if (received.length < end) break;
        const payload = Buffer.from(received.subarray(9, end));
        const [type, id] = [received.readUInt8(4), received.readUInt32LE(5)];
        const text = payload.toString();
        if (isMain && type === types.log) this.direct = this.runs !== undefined && text.includes('"direct":true');
        this.frames.push({ type, id, payload, text, isDirect: !isMain });
        received = received.subarray(end);
      }
      this.wake();
    };
  }

  private wake(): void {
    const waiting = this.waiting;
    this.waiting = [];
    for (const resolve of waiting) resolve();
  }
}

/** The platform's body of an answer that the runtime has not parsed itself. */
function bodyOf(
  { type, payload, text }: Frame,
  batch: string | undefined,
  isRead: boolean,
): Pick<Answer, 'body' | 'isError'> {
  if (type === types.error) return { body: { error: text }, isError: true };
  const read = isRead ? resultOutcome : unreadOutcome;
  const outcome = type === types.results ? resultsOutcome(payload) : read(text, payload.length);
  const bodies = (batch === undefined ? [outcome] : outcomesOf(outcome, Number(batch), noLimits)).map(
    (one: CallOutcome): unknown => (one.type === 'result' ? one.result : one.type === 'error' ? one.error : one),
  );
  if (batch !== undefined) return { body: bodies, isError: false };
  return outcome.type === 'result'
    ? { body: bodies[0], isError: false }
    : { body: { error: bodies[0] }, isError: true };
}

import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { InitRequest, RunRequest } from '../containers/container-factory.js';
import type { RuntimeLaunch } from './runtime-catalog.js';

/** A frame of the protocol, payload as text. */
export interface Frame {
  type: number;
  id: number;
  text: string;
}

/** The answer to an init or run, and what the process had printed when its log frame came. */
export interface Answer {
  /** The parsed payload of the result or error frame. */
  body: unknown;
  isError: boolean;
  stdout: string;
  stderr: string;
}

/** One frame as bytes. */
export function encodeFrame(type: number, id: number, text: string): Buffer {
  const payload = Buffer.from(text);
  const header = Buffer.alloc(9);
  header.writeUInt32LE(payload.length, 0);
  header.writeUInt8(type, 4);
  header.writeUInt32LE(id, 5);
  return Buffer.concat([header, payload]);
}

/** A runtime as a plain process with our end of its socket: what the tests of the runtimes talk to. */
export class RuntimeProcess {
  readonly folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-runtime-'));
  readonly socket: Socket;
  readonly frames: Frame[] = [];
  readonly exited: Promise<number | null>;
  stdout = '';
  stderr = '';
  private readonly child: ChildProcess;
  private received = Buffer.alloc(0);
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
      stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
    });
    this.socket = this.child.stdio[3] as Socket;
    this.socket.on('data', (bytes: Buffer) => this.receive(bytes));
    this.socket.on('error', () => this.wake()); // The runtime went away: what waits sees `gone`.
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

  /** Resolves with the first frame that `wanted` accepts, or rejects when the process has ended without it. */
  async frame(wanted: (frame: Frame) => boolean): Promise<Frame> {
    for (;;) {
      const found = this.frames.find(wanted);
      if (found) return found;
      if (this.gone) throw new Error(`The runtime ended. It printed: ${this.stdout}${this.stderr}`);
      await new Promise<void>((resolve) => this.waiting.push(resolve));
    }
  }

  init(request: Partial<InitRequest>): Promise<Answer> {
    return this.ask(2, { name: 'a', main: 'main', binary: false, env: {}, ...request });
  }

  run(value: unknown, more: Partial<RunRequest> = {}): Promise<Answer> {
    return this.ask(3, { value, activation_id: 'f'.repeat(32), deadline: '1000', ...more });
  }

  unload(thorough = false): Promise<Answer> {
    return this.ask(9, thorough ? { thorough } : {});
  }

  check(): Promise<Answer> {
    return this.ask(10, {});
  }

  /** Sends a frame as it is. */
  send(type: number, id: number, text: string): void {
    this.socket.write(encodeFrame(type, id, text));
  }

  /** Kills the process and removes its folder. */
  async close(): Promise<void> {
    this.child.kill('SIGKILL');
    await this.exited;
    rmSync(this.folder, { recursive: true, force: true });
  }

  private async ask(type: number, body: object): Promise<Answer> {
    const id = this.nextId++;
    // As the platform does: an answer that is read together with the hello may be seen before what was printed ahead of it.
    await (this.hello ??= this.frame((frame) => frame.type === 1));
    this.socket.write(encodeFrame(type, id, JSON.stringify(body)));
    const answer = await this.frame((frame) => frame.id === id && (frame.type === 4 || frame.type === 5));
    await this.frame((frame) => frame.id === id && frame.type === 6);
    await new Promise((resolve) => setImmediate(resolve)); // What is readable now is handled first.
    return { body: JSON.parse(answer.text), isError: answer.type === 5, stdout: this.stdout, stderr: this.stderr };
  }

  private receive(bytes: Buffer): void {
    this.received = Buffer.concat([this.received, bytes]);
    while (this.received.length >= 9) {
      const end = 9 + this.received.readUInt32LE(0);
      if (this.received.length < end) break;
      const text = this.received.toString('utf8', 9, end);
      this.frames.push({ type: this.received.readUInt8(4), id: this.received.readUInt32LE(5), text });
      this.received = this.received.subarray(end);
    }
    this.wake();
  }

  private wake(): void {
    const waiting = this.waiting;
    this.waiting = [];
    for (const resolve of waiting) resolve();
  }
}

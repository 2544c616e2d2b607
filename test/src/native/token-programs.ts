import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { tokenLibraryPath } from '@gpuwhisk/invoker/gpu-agent/enforcers/tokens/token-server';

/** Path of a source in test/fixtures/tokens. */
export const fixture = (name: string): string =>
  fileURLToPath(new URL(`../../fixtures/tokens/${name}`, import.meta.url));
const compileTimeoutMs = 60_000;
const answerTimeoutMs = 20_000;

/** The way in which a program finds the driver's functions. */
export type Way = 'linked' | 'dlsym' | 'procaddress' | 'procaddress-ptsz' | 'procaddress-11';

/** UUIDs of the two devices of the counting driver. */
export const devices = [
  'GPU-a0a0a0a0-a0a0-a0a0-a0a0-a0a0a0a0a0a0',
  'GPU-a1a1a1a1-a1a1-a1a1-a1a1-a1a1a1a1a1a1',
] as const;

/** A driver that only counts, and programs that use it; compiled once, into a folder of their own. */
export class TokenPrograms {
  readonly folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-tokens-'));
  private readonly running = new Set<TokenProgram>();

  constructor() {
    const compile = (...options: string[]): Buffer =>
      execFileSync('cc', ['-O1', '-Wall', '-Wextra', '-pthread', ...options], { timeout: compileTimeoutMs });
    const driver = join(this.folder, 'libcuda.so.1');
    compile('-fPIC', '-shared', '-Wl,-soname,libcuda.so.1', fixture('fake_cuda.c'), '-o', driver);
    compile(fixture('client.c'), '-o', join(this.folder, 'client'), '-ldl');
    compile('-DLINKED', fixture('client.c'), '-o', join(this.folder, 'linked'), driver, '-ldl');
  }

  /** Starts the program with the interception library loaded before the driver. */
  start(way: Way, environment: Record<string, string> = {}): TokenProgram {
    const program = new TokenProgram(
      spawn(join(this.folder, way === 'linked' ? 'linked' : 'client'), [way], {
        env: { LD_LIBRARY_PATH: this.folder, LD_PRELOAD: tokenLibraryPath, ...environment },
      }),
    );
    this.running.add(program);
    return program;
  }

  /** Ends every program that runs. */
  async endAll(): Promise<void> {
    await Promise.all([...this.running].map((program) => program.kill()));
    this.running.clear();
  }

  async close(): Promise<void> {
    await this.endAll();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** A running program that follows commands: see client.c for the list. */
export class TokenProgram {
  /** The program's output on standard error. */
  errors = '';
  private readonly lines: AsyncIterator<string>;
  private readonly ended: Promise<unknown>;

  constructor(private readonly child: ChildProcess) {
    this.lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
    this.ended = once(child, 'close');
    child.stderr!.setEncoding('utf8').on('data', (text: string) => (this.errors += text));
    child.stdin!.on('error', () => child.kill('SIGKILL')); // The program has ended; the answer will be missing.
  }

  get pid(): number {
    return this.child.pid!;
  }

  /** Sends a command and resolves with the numbers of the answer. Rejects if there is none in time. */
  async ask(line: string): Promise<number[]> {
    this.child.stdin!.write(`${line}\n`);
    const late = new Promise<never>((_, reject) => {
      setTimeout(reject, answerTimeoutMs, new Error(`No answer to '${line}': ${this.errors}`)).unref();
    });
    const { value, done } = await Promise.race([this.lines.next(), late]);
    if (done === true) throw new Error(`The program has ended at '${line}': ${this.errors}`);
    return String(value).split(' ').map(Number);
  }

  signal(name: NodeJS.Signals): void {
    process.kill(this.pid, name);
  }

  async kill(): Promise<void> {
    this.child.kill('SIGKILL');
    await this.ended;
  }
}

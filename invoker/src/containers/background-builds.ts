import { fair } from '@gpuwhisk/common/concurrency';
import { LargeCode, mostSmallBytes, sha256Of } from '@gpuwhisk/common/entities/large-code';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { makeProgram } from './build-cache.js';
import { later } from './container-factory.js';
import type { Call, CallLimits, Container, InitRequest } from './container-factory.js';
import { ProgramFiles, programName } from './program-files.js';
import type { BackgroundBuild } from './runtime-launch.js';

/** Bounds on the programs kept, and on the code that waits for builds, bytes. */
const [maxKeptBytes, maxHeldBytes] = [2048 * 1024 * 1024, 192 * 1024 * 1024];
/** Builds that run at once, and those of a namespace that wait; beyond that, the next start of the action builds. */
const [maxBuilding, maxWaiting] = [2, 8];
const timeoutMs = 120_000;
/** Keys of failed builds that are not tried again. */
const maxFailed = 1000;

/**
 * Programs that only quicken the start of an action. The code serves as it is until its program is made, which begins after the
 * first start, and if that fails. Each namespace has its own programs, which no process of a function can write.
 */
export class BackgroundBuilds<Step extends BackgroundBuild> {
  private readonly underWay = new Set<string>();
  private readonly failed = new Set<string>();
  private readonly inTurn = fair(maxBuilding, maxWaiting);
  private readonly files: ProgramFiles;
  /** Code that waits for builds, bytes. */
  private heldBytes = 0;
  private closed = false;

  constructor(
    folder: string,
    private readonly clock: Clock,
    /** Starts the sandbox of a build. */
    private readonly start: (step: Step) => Promise<Container>,
  ) {
    this.files = new ProgramFiles(folder, clock, maxKeptBytes);
  }

  /** Calls `init` with the program in place of the code if the program is there. */
  init(step: Step, request: InitRequest, limits: CallLimits, init: (request: InitRequest) => Call): Call {
    if (!step.needs(request)) return init(request);
    return later(this.started(step, request, limits, init));
  }

  private async started(
    step: Step,
    request: InitRequest,
    limits: CallLimits,
    init: (request: InitRequest) => Call,
  ): Promise<Call> {
    const { code = '', large, binary } = request;
    const bytes = large?.bytes ?? Buffer.from(code, binary ? 'base64' : 'utf8');
    // Only runtimes that can unload are given a digest.
    const source = request.digest ?? (await sha256Of(this.clock, bytes));
    const name = programName([step.key, source], limits.forNamespace);
    const kept = await this.files.load(name);
    if (kept === undefined) {
      const first = init(request);
      void first.outcome.catch(() => undefined).then(() => this.build(name, step, { ...request, bytes }, limits));
      return first;
    }
    const { program, digest } = kept;
    // Empty: there was nothing to make.
    if (program.length === 0) return init(request);
    large?.passed();
    return init({ ...request, ...codeOf(program), digest });
  }

  /** Starts no more builds, and reports no more failures. */
  close(): void {
    this.closed = true;
  }

  /**
   * Makes and keeps the program, unless that is under way or has failed, or too much code waits: the next start tries again
   * then. Never rejects.
   */
  private async build(
    name: string,
    step: Step,
    { bytes, ...request }: InitRequest & { bytes: Uint8Array },
    limits: CallLimits,
  ): Promise<void> {
    if (this.closed || this.underWay.has(name) || this.failed.has(name)) return;
    if (this.heldBytes + bytes.length > maxHeldBytes) return;
    this.underWay.add(name);
    this.heldBytes += bytes.length;
    try {
      const bounds = { ...limits, timeoutMs, logLimitBytes: 0 };
      const made = await this.inTurn(limits.forNamespace ?? '', async () =>
        this.closed
          ? 'closed'
          : makeProgram(this.clock, await this.start(step), { ...request, ...codeOf(bytes) }, bounds),
      );
      if (made === 'closed') return;
      if (made === undefined) throw new Error('the program is too large');
      if ('outcome' in made) throw new Error(reasonOf(made.outcome));
      const { program, rest } = made;
      await this.files.keep(name, { program, digest: await sha256Of(this.clock, program) });
      step.made(request.name, rest);
    } catch (error) {
      if (this.closed) return;
      this.failed.add(name);
      for (const oldest of this.failed) if (this.failed.size > maxFailed) this.failed.delete(oldest);
      step.failed(request.name, error);
    } finally {
      this.underWay.delete(name);
      this.heldBytes -= bytes.length;
    }
  }
}

/** An archive as a request has it: beyond 1 MiB as bytes. */
function codeOf(archive: Uint8Array): Pick<InitRequest, 'code' | 'large'> {
  if (archive.length > mostSmallBytes) return { code: undefined, large: new LargeCode(archive) };
  return { code: Buffer.from(archive).toString('base64'), large: undefined };
}

function reasonOf(outcome: Awaited<Call['outcome']>): string {
  return outcome.type === 'error' && outcome.error !== undefined
    ? outcome.error
    : `the builder's answer: ${outcome.type}`;
}

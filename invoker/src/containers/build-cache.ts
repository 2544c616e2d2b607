import { createHash, randomUUID } from 'node:crypto';
import { mkdir, readFile, readdir, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { LargeCode, mostSmallBytes, sha256Of } from '@gpuwhisk/common/entities/large-code';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { fair, TooMuchWaits } from '@gpuwhisk/common/concurrency';
import { partialPrefix } from '../host/partial-folders.js';
import { later, ProvisioningError } from './container-factory.js';
import type { Call, CallLimits, Container, InitRequest, CallOutcome } from './container-factory.js';
import type { Build } from './runtime-launch.js';

const maxProgramBytes = 64 * 1024 * 1024;
/** Programs kept; the least recently used are removed first. */
const maxPrograms = 200;
/** Builds that run at once, and those of a namespace that wait. */
const [maxBuilding, maxWaiting] = [2, 8];

const digestBytes = 32;

/** A program with its SHA-256 (hexadecimal). */
interface Program {
  program: Buffer;
  digest: string;
}
/** The program that a build made, or the outcome and the printed lines of a failed build. */
type Built = Program | { outcome: CallOutcome; lines: string[] };

/**
 * Programs that were built from actions' code, each built once. A file in `folder` holds a program's SHA-256 and the
 * program. A program that does not match its digest is built again.
 */
export class BuildCache<Step extends Build> {
  private readonly underWay = new Map<string, Promise<Built>>();
  private readonly inTurn = fair(maxBuilding, maxWaiting);

  constructor(
    private readonly folder: string,
    private readonly clock: Clock,
    /** Starts the sandbox of a build. */
    private readonly start: (step: Step) => Promise<Container>,
  ) {}

  /** Calls `init` with the program in place of the code; if the build fails, its failure is the outcome. */
  init(step: Step, request: InitRequest, limits: CallLimits, init: (request: InitRequest) => Call): Call {
    const { code = '', large } = request;
    if ((code === '' && large === undefined) || !step.needs(request)) return init(request);
    const call = this.built(step, request, limits).then((built): Call => {
      // Another call's build may have been the one that had the code.
      large?.passed();
      if ('program' in built) {
        const { name, main, entry, env } = request;
        const { program, digest } = built;
        const loaded = program.length > mostSmallBytes ? { large: new LargeCode(program) } : { code: base64(program) };
        return init({ name, main, ...loaded, binary: true, digest, ...(entry !== undefined && { entry }), env });
      }
      return { outcome: Promise.resolve(built.outcome), logs: Promise.resolve(built.lines) };
    });
    return later(call);
  }

  private async built(step: Step, request: InitRequest, limits: CallLimits): Promise<Built> {
    const { code = '', large, binary, main } = request;
    const source = large === undefined ? code : { sha256: await sha256Of(this.clock, large.bytes) };
    const key = createHash('sha256')
      .update(JSON.stringify([step.key, main, binary, source]))
      .digest('hex');
    const known = this.underWay.get(key);
    if (known) return known;
    const built = this.load(key, step, request, limits).finally(() => this.underWay.delete(key));
    this.underWay.set(key, built);
    return built;
  }

  private async load(key: string, step: Step, request: InitRequest, limits: CallLimits): Promise<Built> {
    const file = join(this.folder, key);
    const kept = await readFile(file).catch(() => undefined);
    const program = kept?.subarray(digestBytes);
    if (program && kept) {
      const digest = await sha256Of(this.clock, program);
      if (digest === kept.toString('hex', 0, digestBytes)) {
        const nowSeconds = this.clock.now() / 1000;
        await utimes(file, nowSeconds, nowSeconds);
        return { program, digest };
      }
    }
    const owner = limits.forNamespace ?? '';
    const built = await this.inTurn(owner, () => this.build(step, request, limits)).catch(tooManyBuilds);
    if ('program' in built) await this.keep(file, built);
    return built;
  }

  private async build(step: Step, request: InitRequest, limits: CallLimits): Promise<Built> {
    let container: Container;
    try {
      container = await this.start(step);
    } catch (error) {
      if (!(error instanceof ProvisioningError)) throw error;
      const text = 'The action could not be built: no sandbox for it could be started.';
      return { outcome: { type: 'error', error: text, body: '' }, lines: [] };
    }
    const bounds = { ...limits, maxResultBytes: maxProgramBytes };
    try {
      // The caller's environment is left out: the program serves all callers with the same code.
      const init = container.init({ ...request, env: {} }, bounds);
      const outcome = await init.outcome;
      if (outcome.type !== 'ok') return { outcome, lines: await init.logs };
      const taken = await container.run(emptyRun, bounds).outcome;
      if (taken.type === 'result' && !Array.isArray(taken.result) && typeof taken.result.program === 'string') {
        const program = Buffer.from(taken.result.program, 'base64');
        return { program, digest: await sha256Of(this.clock, program) };
      }
      return { outcome: { type: 'error', error: 'The built program is too large.', body: '' }, lines: [] };
    } finally {
      void container.destroy();
    }
  }

  private async keep(file: string, { program, digest }: Program): Promise<void> {
    await mkdir(this.folder, { recursive: true, mode: 0o700 });
    const partial = join(this.folder, `${partialPrefix}${randomUUID()}`);
    await writeFile(partial, [Buffer.from(digest, 'hex'), program]);
    await rename(partial, file);
    const names = await readdir(this.folder);
    if (names.length <= maxPrograms) return;
    const aged = await Promise.all(
      names.map(async (name) => ({ name, usedMs: (await stat(join(this.folder, name))).mtimeMs })),
    );
    aged.sort((one, other) => one.usedMs - other.usedMs);
    const superfluous = aged.slice(0, names.length - maxPrograms);
    await Promise.all(superfluous.map(({ name }) => rm(join(this.folder, name), { force: true })));
  }
}

function tooManyBuilds(error: unknown): Built {
  if (!(error instanceof TooMuchWaits)) throw error;
  const text = `The action could not be built: ${maxWaiting} builds of the namespace wait already. Try again later.`;
  return { outcome: { type: 'error', error: text, body: JSON.stringify({ error: text }) }, lines: [] };
}

const base64 = (bytes: Buffer): string => bytes.toString('base64');

const emptyRun = {
  value: {},
  namespace: '',
  action_name: '',
  action_version: '',
  activation_id: '',
  transaction_id: '',
  deadline: '0',
};

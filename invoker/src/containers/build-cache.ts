import { LargeCode, mostSmallBytes, sha256Of } from '@gpuwhisk/common/entities/large-code';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { fair, TooMuchWaits } from '@gpuwhisk/common/concurrency';
import { readProgram } from './built-program.js';
import type { BuiltProgram } from './built-program.js';
import { later, ProvisioningError } from './container-factory.js';
import { ProgramFiles, programName } from './program-files.js';
import type { Program } from './program-files.js';
import type { Call, CallLimits, Container, InitRequest, CallOutcome } from './container-factory.js';
import type { Build } from './runtime-launch.js';

const maxProgramBytes = 64 * 1024 * 1024;
/** Bound on the programs kept, bytes. */
const maxKeptBytes = 2 * 1024 * 1024 * 1024;
/** Builds that run at once, and those of a namespace that wait. */
const [maxBuilding, maxWaiting] = [2, 8];

/** The program that a build made, or the outcome and the printed lines of a failed build. */
type Built = Program | { outcome: CallOutcome; lines: string[] };

/**
 * Programs that were built from actions' code, each built once for a namespace. A program that does not match its digest is
 * built again.
 */
export class BuildCache<Step extends Build> {
  private readonly underWay = new Map<string, Promise<Built>>();
  private readonly inTurn = fair(maxBuilding, maxWaiting);
  private readonly files: ProgramFiles;

  constructor(
    folder: string,
    private readonly clock: Clock,
    /** Starts the sandbox of a build. */
    private readonly start: (step: Step) => Promise<Container>,
    maxBytes = maxKeptBytes,
  ) {
    this.files = new ProgramFiles(folder, clock, maxBytes);
  }

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
    const name = programName([step.key, main, binary, source], limits.forNamespace);
    const known = this.underWay.get(name);
    if (known) return known;
    const built = this.load(name, step, request, limits).finally(() => this.underWay.delete(name));
    this.underWay.set(name, built);
    return built;
  }

  private async load(name: string, step: Step, request: InitRequest, limits: CallLimits): Promise<Built> {
    const kept = await this.files.load(name);
    // No program is empty.
    if (kept !== undefined && kept.program.length > 0) return kept;
    const owner = limits.forNamespace ?? '';
    const built = await this.inTurn(owner, () => this.build(step, request, limits)).catch(tooManyBuilds);
    if ('program' in built) await this.files.keep(name, built);
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
    const made = await makeProgram(this.clock, container, request, limits);
    if (made !== undefined && 'outcome' in made) return made;
    if (made !== undefined) return { program: made.program, digest: await sha256Of(this.clock, made.program) };
    return { outcome: { type: 'error', error: 'The built program is too large.', body: '' }, lines: [] };
  }
}

/**
 * What a builder makes of the code of a request, or the outcome and the printed lines of its failure; undefined if the program is
 * too large. Ends the builder.
 */
export async function makeProgram(
  clock: Clock,
  builder: Container,
  request: InitRequest,
  limits: CallLimits,
): Promise<BuiltProgram | { outcome: CallOutcome; lines: string[] } | undefined> {
  const bounds = { ...limits, maxResultBytes: maxProgramBytes };
  let answer: Buffer | undefined;
  try {
    // The caller's environment is left out: the program serves all callers of the namespace with the same code.
    const init = builder.init({ ...request, env: {} }, bounds);
    const outcome = await init.outcome;
    if (outcome.type !== 'ok') return { outcome, lines: await init.logs };
    await builder.run(emptyRun, { ...bounds, onResult: (bytes) => (answer = bytes) }).outcome;
  } finally {
    void builder.destroy();
  }
  return answer && (await readProgram(clock, answer));
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

// Byte compilation of Python packages and archives by programs of runtimes/python, and its metrics.
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { showMetricsIn } from '@gpuwhisk/common/shown-metrics';
import type { Registry } from 'prom-client';
import type { JsonObject } from '@gpuwhisk/common/json';
import { firstBytes } from '../containers/runtime-launch.js';
import type { BackgroundBuild, BuildStep, GivenCode, RuntimeLaunch } from '../containers/runtime-launch.js';
import { isThere } from '../host/partial-folders.js';
import { ProgramError } from '../host/programs.js';
import type { Python } from './find-toolchains.js';

/** The program that compiles, as a path of the host. */
export const compilerPath = fileURLToPath(new URL('../../../runtimes/python/compile_packages.py', import.meta.url));

/** File in a compiled folder. A change of its number has all folders compiled again. */
const mark = '.gpuwhisk-compiled-1';

/** Modules of a folder, by the result of their compilation. */
export interface CompileReport {
  sources: number;
  /** Sources whose compiled file is there and matches. */
  compiled: number;
  /** Sources that are no code for the interpreter, such as those for Python 2. */
  refused: number;
  /** Sources whose compiled file could not be written. */
  failed: number;
  /** Paths of some of the latter two. */
  named: readonly string[];
}

/** Program and arguments that compile the modules in `folder`, which the command `fill` fills before. */
export function compileCommand(python: Python, folder: string, fill: readonly string[] = []): [string, ...string[]] {
  return [python.executable, '-I', '-S', '-W', 'ignore', compilerPath, folder, mark, ...fill];
}

/** Whether the folder was compiled by this version of the platform, without a file that could not be written. */
export function isCompiled(folder: string): Promise<boolean> {
  return isThere(join(folder, mark));
}

/** The report in what compileCommand printed. Throws ProgramError if there is none. */
export function compileReport(printed: string): CompileReport {
  let report: unknown;
  try {
    report = JSON.parse(printed.trim().split('\n').at(-1) ?? '');
  } catch {
    // Refused below.
  }
  return readReport(report);
}

function readReport(given: unknown): CompileReport {
  const report = Object(given) as Partial<Record<keyof CompileReport, unknown>>;
  const { sources, compiled, refused, failed, named } = report;
  const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0;
  if (!isCount(sources) || !isCount(compiled) || !isCount(refused) || !isCount(failed) || !Array.isArray(named)) {
    throw new ProgramError(compilerPath, 'it printed no report');
  }
  return { sources, compiled, refused, failed, named: named.map(String) };
}

const archiveMemoryMiB = 1024;
/** The first bytes of a zip and of a gzip, hexadecimal. */
const archives = ['504b03', '1f8b08'];
/** Longer code is not compiled, bytes: the archive with compiled files has to fit, in base64, into one frame, which has 64 MiB. */
const maxCodeBytes = 30 * 1024 * 1024;

function isArchive(given: GivenCode): boolean {
  const bytes = given.large?.bytes.length ?? ((given.code?.length ?? 0) * 3) / 4;
  return bytes <= maxCodeBytes && archives.includes(Buffer.from(firstBytes(given, 3)).toString('hex'));
}

/** The compilation of archives, which `plain`, a launch of the Python runtime, loads as they are until then. */
export function archiveCompiler(
  runtimesDir: string,
  python: Python,
  plain: RuntimeLaunch,
  compilations: Compilations,
): BuildStep & BackgroundBuild {
  const program = join(runtimesDir, 'python', 'compile_archive.py');
  return {
    key: ['python archive 1', python.version, python.platform].join(' '),
    needs: isArchive,
    launch: {
      command: [python.executable, '-I', '-S', '-W', 'ignore', program],
      binds: plain.binds,
      env: {},
      protocol: 'framed',
    },
    memoryMiB: archiveMemoryMiB,
    made: compilations.addArchive,
    failed: compilations.addFailure,
  };
}

/** Counts and logs compilations of Python packages. */
export class Compilations {
  private readonly modules = { compiled: 0, refused: 0, failed: 0 };
  private failures = 0;

  constructor(private readonly logger?: { info(message: string): void; warn(message: string): void }) {}

  /** Notes the compilation of `name`, some packages. */
  add(name: string, { sources, compiled, refused, failed, named }: CompileReport): void {
    this.modules.compiled += compiled;
    this.modules.refused += refused;
    this.modules.failed += failed;
    if (compiled === sources) return;
    const text = `${sources - compiled} of ${sources} Python modules were not compiled (${name}), such as ${named.join(', ')}`;
    if (failed > 0) this.logger?.warn(`${text}. ${failed} could not be written.`);
    else this.logger?.info(`${text}, which are not for this Python.`);
  }

  /** Notes the answer of runtimes/python/compile_archive.py for the action `name`. Throws ProgramError. */
  readonly addArchive = (name: string, { report }: JsonObject): void => this.add(name, readReport(report));

  /** Notes that `name` could not be compiled at all: its functions import more slowly. */
  readonly addFailure = (name: string, error: unknown): void => {
    this.failures += 1;
    const reason =
      error instanceof ProgramError ? error.lastLine : error instanceof Error ? error.message : String(error);
    this.logger?.warn(`Python functions start more slowly, since packages were not compiled (${name}): ${reason}`);
  };

  /** Shows the counts in `registry`. */
  show(registry: Registry): void {
    const { counter } = showMetricsIn(registry);
    const help = 'Python modules of packages that were to be compiled, by outcome';
    const byOutcome = (): [Record<string, string>, number][] =>
      Object.entries(this.modules).map(([outcome, count]) => [{ outcome }, count]);
    counter('gpuwhisk_python_modules_total', help, byOutcome, ['outcome']);
    const failed = 'Compilations of Python packages that failed as a whole';
    counter('gpuwhisk_python_compilation_failures_total', failed, () => this.failures);
  }
}

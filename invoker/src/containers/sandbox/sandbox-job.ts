// Jobs that fill a folder of the host for functions, such as the installation of packages, with bounds on size and time; in
// a sandbox, or without one.
import { statfs } from 'node:fs/promises';
import { sleep } from '@gpuwhisk/common/system/clock';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { ProgramError, errorLinesOf, lastLineOf, runProgram } from '../../host/programs.js';
import { measureTree, ownTree } from '../../host/trees.js';
import { JobLimitError } from '../runtime-launch.js';
import type { RunJob, SandboxJob } from '../runtime-launch.js';
import { bindWords } from './host-view.js';
import { frameWords, spaceWords } from './isolation.js';
import type { Frame, Isolation } from './isolation.js';
import { launcherResult, outOfMemorySignal, sendSpec } from './launcher.js';
import type { SandboxProcess, Words } from './launcher.js';

const keptBytes = 16 * 1024;
const pids = 256;
const searchPath = '/usr/local/bin:/usr/bin:/bin';

/** The sandbox of a job. */
interface JobPlan {
  id: string;
  frame: Frame;
  /** The platform's data folder, hidden inside except for the folder that is filled. */
  dataDir: string;
}

/** The launcher's second message. */
function jobWords(given: Isolation, job: SandboxJob, { id, frame, dataDir }: JobPlan): Words {
  const memoryBytes = job.memoryMiB * MiB;
  // If functions have no network, the platform's own jobs use the host's.
  const shared = given.network ? [] : ['net'];
  const isolation = { ...given, namespaces: new Set([...given.namespaces].filter((name) => !shared.includes(name))) };
  const { limitsMemory } = isolation.cgroups;
  const env = { PATH: searchPath, HOME: '/action', LANG: 'C.UTF-8', ...job.env };
  return [
    ...isolation.cgroups.limitWords(id, { memoryBytes, pids, givesWay: true }),
    'own',
    job.folder,
    ...frameWords(isolation, frame),
    ...spaceWords(isolation, { actionFolder: job.folder, tmpBytes: memoryBytes / 4, actionBytes: memoryBytes / 4 }),
    ...bindWords(job.binds, dataDir),
    'bind',
    job.folder,
    job.target,
    'rw',
    'rlimit',
    'nofile',
    '1024',
    'rlimit',
    'core',
    '0',
    ...(Number.isFinite(job.maxBytes) ? ['rlimit', 'fsize', String(Math.floor(job.maxBytes))] : []),
    ...(limitsMemory ? [] : ['watch', String(memoryBytes)]),
    ...Object.entries(env).flatMap(([name, value]) => ['env', `${name}=${value}`]),
    'exec',
    ...job.command,
  ];
}

/**
 * Runs a job by a launcher that waits for its spec. Resolves with the end of what it printed. Rejects with ProgramError or
 * JobLimitError. The job's user owns the folder meanwhile, with all in it.
 */
export async function runSandboxJob(
  launcher: SandboxProcess,
  isolation: Isolation,
  job: SandboxJob,
  plan: JobPlan,
  clock: Clock,
): Promise<string> {
  const [program = ''] = job.command;
  const ownsFiles = isolation.ownUser && process.getuid?.() === 0;
  let [printed, said] = ['', ''];
  if (ownsFiles) {
    await ownTree(job.folder, plan.frame.outerId).catch((error: unknown) => {
      launcher.child.kill('SIGTERM');
      throw error;
    });
  }
  launcher.child.ref();
  launcher.stdout.setEncoding('utf8').on('data', (text: string) => (printed = (printed + text).slice(-keptBytes)));
  launcher.stderr.setEncoding('utf8').on('data', (text: string) => (said = (said + text).slice(-keptBytes)));
  const ended = launcherResult(launcher);
  const over = new AbortController();
  const watched = watchFolder(job, clock, over.signal).finally(() => launcher.child.kill('SIGTERM'));
  watched.catch(() => undefined); // Awaited once the sandbox has ended.
  sendSpec(launcher, jobWords(isolation, job, plan));
  const { reports, status } = await ended;
  over.abort();
  const exceeded = await watched.finally(() => (ownsFiles ? ownTree(job.folder, 0) : undefined));
  if (exceeded) throw exceeded;
  if (status === 0) return printed;
  const error = reports.find((report) => report.startsWith('error\n'))?.replaceAll('\n', ' ');
  const exhausted =
    launcher.child.signalCode === outOfMemorySignal ? `more than ${job.memoryMiB} MiB of memory` : undefined;
  if (error !== undefined) throw new ProgramError(program, error);
  if (exhausted !== undefined) throw new ProgramError(program, exhausted, [exhausted]);
  throw new ProgramError(program, lastLineOf(said) || `it ended with ${status}`, errorLinesOf(said));
}

const MiB = 1024 * 1024;
const checkEveryMs = 200;
/** Largest part of the time that measuring the folder may take. */
const measuringPart = 1 / 4;
/** Disk space that a job must leave free: more than it can write between two checks. */
export const reserveBytes = 1024 * MiB;

/**
 * Watches a job's folder until `over`. Resolves with an error that names the exceeded bound, or with undefined. The disk's
 * free space is checked every 200 ms, the size of a folder with many files less often.
 */
async function watchFolder(
  { folder, maxBytes, maxFiles, timeoutMs }: Pick<SandboxJob, 'folder' | 'maxBytes' | 'maxFiles' | 'timeoutMs'>,
  clock: Clock,
  over: AbortSignal,
): Promise<JobLimitError | undefined> {
  const beganMs = clock.monotonicMs();
  let measureAtMs = 0;
  const ended = aborted(over);
  for (;;) {
    const { bavail, bsize } = await statfs(folder);
    if (bavail * bsize < reserveBytes) {
      return new JobLimitError(`the platform's disk has less than ${reserveBytes / MiB} MiB left`, false);
    }
    const nowMs = clock.monotonicMs();
    if (nowMs - beganMs > timeoutMs) return new JobLimitError(`no end within ${timeoutMs} ms`, false);
    if (nowMs >= measureAtMs) {
      const used = await measureTree(folder, maxFiles).catch(tooDeep);
      if (used === undefined) return new JobLimitError('folders that nest too deeply');
      if (used.bytes > maxBytes) return new JobLimitError(`more than ${Math.floor(maxBytes / MiB)} MiB`);
      if (used.files > maxFiles) return new JobLimitError(`more than ${maxFiles} files`);
      measureAtMs = nowMs + (clock.monotonicMs() - nowMs) / measuringPart;
    }
    if (over.aborted) return undefined;
    await Promise.race([sleep(clock, checkEveryMs), ended]);
    if (over.aborted) measureAtMs = 0; // A last measurement, of all that the job has written.
  }
}

function tooDeep(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ELOOP') throw error;
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}

/** Runs jobs as the platform's user, with the same bounds, on hosts without sandboxes. */
export function hostJobs(clock: Clock): RunJob {
  return async ({ command, binds, env, folder, target, ...bounds }) => {
    const over = new AbortController();
    const stop = new AbortController();
    const seen = [{ source: folder, target }, ...binds].filter(({ source, target: inside }) => source !== inside);
    const toHost = (text: string): string =>
      seen.reduce((path, bind) => path.replaceAll(bind.target, bind.source), text);
    const [program = '', ...args] = command.map(toHost);
    const hostEnv = Object.fromEntries(Object.entries(env).map(([name, value]) => [name, toHost(value)]));
    const watched = watchFolder({ folder, ...bounds }, clock, over.signal).finally(() => stop.abort());
    watched.catch(() => undefined); // Awaited once the program has ended.
    const [done] = await Promise.allSettled([
      runProgram(program, args, {
        timeoutMs: bounds.timeoutMs,
        stop: stop.signal,
        env: { PATH: process.env.PATH, HOME: process.env.HOME, ...hostEnv },
      }),
    ]);
    over.abort();
    const exceeded = await watched;
    if (exceeded) throw exceeded;
    if (done.status === 'rejected') throw done.reason;
    return done.value;
  };
}

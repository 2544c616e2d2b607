import type { Clock } from '@gpuwhisk/common/system/clock';
import { watchFolder } from '../../runtimes/folder-watch.js';
import { ProgramError, lastLineOf } from '../../runtimes/run-program.js';
import type { SandboxJob } from '../../runtimes/sandbox-job.js';
import { bindWords } from './host-view.js';
import { frameWords } from './isolation.js';
import type { Frame, Isolation } from './isolation.js';
import { launcherResult, outOfMemorySignal, sendSpec } from './launcher.js';
import type { SandboxProcess } from './launcher.js';
import type { Words } from './launcher-spec.js';
import { runTool, findTool } from './run-tool.js';

const MiB = 1024 * 1024;
const keptBytes = 16 * 1024;
const pids = 256;
const searchPath = '/usr/local/bin:/usr/bin:/bin';

/** What a job's sandbox is made of besides the job. */
export interface JobPlan {
  id: string;
  frame: Omit<Frame, 'tmpBytes' | 'actionBytes'>;
  /** Never to be seen inside, but for the folder that is filled. */
  dataDir: string;
}

/** The launcher's second message. */
function jobWords(given: Isolation, job: SandboxJob, { id, frame, dataDir }: JobPlan): Words {
  const memoryBytes = job.memoryMiB * MiB;
  // Where functions have no network the platform's own programs have the host's.
  const shared = given.network ? [] : ['net'];
  const isolation = { ...given, namespaces: new Set([...given.namespaces].filter((name) => !shared.includes(name))) };
  const { limitsMemory } = isolation.cgroups;
  const env = { PATH: searchPath, HOME: '/action', LANG: 'C.UTF-8', ...job.env };
  return [
    ...isolation.cgroups.limitWords(id, { memoryBytes, pids, givesWay: true }),
    ...['own', job.folder],
    ...frameWords(isolation, { ...frame, tmpBytes: memoryBytes / 4, actionBytes: memoryBytes / 4 }),
    ...bindWords(job.binds, dataDir),
    ...['bind', job.folder, job.target, 'rw'],
    ...['rlimit', 'nofile', '1024', 'rlimit', 'core', '0'],
    ...(Number.isFinite(job.maxBytes) ? ['rlimit', 'fsize', String(Math.floor(job.maxBytes))] : []),
    ...(limitsMemory ? [] : ['watch', String(memoryBytes)]),
    ...Object.entries(env).flatMap(([name, value]) => ['env', `${name}=${value}`]),
    ...['exec', ...job.command],
  ];
}

/** Runs a job by a launcher that waits for its spec. Rejects with ProgramError and JobLimitError. */
export async function runSandboxJob(
  launcher: SandboxProcess,
  isolation: Isolation,
  job: SandboxJob,
  plan: JobPlan,
  clock: Clock,
): Promise<void> {
  const [program = ''] = job.command;
  let said = '';
  launcher.child.ref();
  launcher.stderr.setEncoding('utf8').on('data', (text: string) => (said = (said + text).slice(-keptBytes)));
  const ended = launcherResult(launcher);
  const over = new AbortController();
  const watched = watchFolder(job, clock, over.signal).finally(() => launcher.child.kill('SIGTERM'));
  watched.catch(() => undefined); // Awaited once the sandbox has ended.
  sendSpec(launcher, jobWords(isolation, job, plan));
  const { reports, status } = await ended;
  over.abort();
  const exceeded = await watched;
  if (isolation.ownUser && process.getuid?.() === 0) await giveBack(job.folder);
  if (exceeded) throw exceeded;
  if (status === 0) return;
  const error = reports.find((report) => report.startsWith('error\n'))?.replaceAll('\n', ' ');
  const exhausted =
    launcher.child.signalCode === outOfMemorySignal ? `more than ${job.memoryMiB} MiB of memory` : undefined;
  throw new ProgramError(program, error ?? exhausted ?? (lastLineOf(said) || `it ended with ${status}`));
}

/** Makes the platform's user own what the job has left. */
async function giveBack(folder: string): Promise<void> {
  const chown = await findTool('chown');
  if (chown === undefined) throw new Error('chown is not installed');
  await runTool(chown, ['-hR', '0:0', '--', folder]);
}

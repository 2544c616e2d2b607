import { access, constants } from 'node:fs/promises';
import { IsolationError } from '../container-factory.js';
import type { StartReport, ContainerSpec } from '../container-factory.js';
import { kernelCaches, processBounds, usesGpu } from '../framework-needs.js';
import { noCgroups } from './cgroups.js';
import type { Cgroups } from './cgroups.js';
import { innerId, tmpfsWords, bindWords } from './host-view.js';
import type { HostView } from './host-view.js';
import { insideLaunch } from './inside-paths.js';
import { launcherResult, sendSpec, startLauncher } from './launcher.js';
import type { Words } from './launcher.js';
import type { ActionNetwork } from './network.js';
import type { RuntimeLaunch } from '../runtime-launch.js';

const MiB = 1024 * 1024;
/** Time limits of a trial's attempts, ms. A late trial is repeated: it shows a busy machine, not a missing permission. */
const trialTimeoutsMs = [2000, 10_000, 30_000];
const maxProbes = 10;
/** Transient errors of the kernel (EAGAIN, ENOMEM, EINTR, EBUSY) in the launcher's words. */
const passing = /: (Resource temporarily unavailable|Cannot allocate memory|Interrupted system call|.* busy)$/;
/** The slot of trials. */
export const probeSlot = 0;

/** Isolation measures that this host allows. */
export interface Isolation {
  /** Whether the launcher is built. */
  launcher: boolean;
  namespaces: ReadonlySet<string>;
  freshProc: boolean;
  /** Whether each sandbox has its own user, or runs as the platform's user in a user namespace. */
  ownUser: boolean;
  filter: boolean;
  cgroups: Cgroups;
  network: ActionNetwork | undefined;
}

/** No isolation. */
export const noIsolation: Isolation = {
  launcher: false,
  namespaces: new Set(),
  freshProc: false,
  ownUser: false,
  filter: false,
  cgroups: noCgroups,
  network: undefined,
};

/** Beginning of the note for sandboxes without a network; the reason follows. */
export const noNetwork = "Functions reach neither the network nor the platform's API";

const allNamespaces = ['user', 'mount', 'pid', 'ipc', 'uts', 'net', 'cgroup'];

/** The part of a sandbox that is made before it is known what runs in it. */
export interface Frame {
  rootFolder: string;
  outerId: number;
  slot: number;
  view: HostView;
  /** A PID namespace shared with other sandboxes (see canShare); absent: the sandbox has its own. */
  pidNamespace?: string | undefined;
}

/** Folders in which a sandbox may write. */
export interface Space {
  /** The function's folder on hosts without a file system of its own for it. */
  actionFolder: string;
  /** Size of /tmp, and also of /dev/shm. */
  tmpBytes: number;
  /** Size of /action. */
  actionBytes: number;
}

/** The part of a launcher's spec that isolates, the same for the probe and for all sandboxes. */
export function frameWords(isolation: Isolation, frame: Frame): Words {
  const { pidNamespace } = frame;
  const own = [...isolation.namespaces].filter((name) => name !== 'pid' || pidNamespace === undefined);
  const words: Words = own.flatMap((name) => ['namespace', name]);
  if (pidNamespace !== undefined) words.push('join-pid', pidNamespace, 'domain');
  if (isolation.ownUser) words.push('id', String(innerId), String(frame.outerId));
  words.push('hostname', 'action');
  if (isolation.namespaces.has('mount')) {
    words.push('root', frame.rootFolder);
    const { freshProc, cgroups } = isolation;
    words.push(...frame.view.words({ freshProc, zero: cgroups.limitsMemory }));
  }
  if (isolation.filter) words.push('filter');
  if (isolation.network) {
    const veth = isolation.network.veth(frame.slot);
    words.push('veth', veth.name, veth.outside, veth.inside, String(veth.prefixLength));
  }
  return words;
}

/** The part of a launcher's spec that follows the frame: where the sandbox may write. */
export function spaceWords(isolation: Isolation, { actionFolder, tmpBytes, actionBytes }: Space): Words {
  if (!isolation.namespaces.has('mount')) return ['own', actionFolder, 'cwd', actionFolder];
  return [
    ...tmpfsWords('/dev/shm', tmpBytes, 'shared'),
    ...tmpfsWords('/tmp', tmpBytes, 'shared'),
    ...tmpfsWords('/action', actionBytes, 'own'),
    'cwd',
    '/action',
  ];
}

interface Weakened {
  isolation: Isolation;
  /** Consequence of the missing measure for functions. */
  lost: string;
  /** Whether a service to functions is missing, rather than a measure of isolation. */
  service?: true;
}

/** The isolation without a failed measure, and the consequence; undefined if the measure cannot be left out. */
function weaken(isolation: Isolation, measure: string): Weakened | undefined {
  const fewer = (...names: string[]): ReadonlySet<string> =>
    new Set([...isolation.namespaces].filter((name) => !names.includes(name)));
  const lose = (lost: string, changed: Partial<Isolation>): Weakened => ({
    isolation: { ...isolation, ...changed },
    lost,
  });
  switch (measure) {
    case 'user':
      if (!isolation.namespaces.has('user')) break;
      return lose('Functions run without a user namespace of their own', { namespaces: fewer('user') });
    case 'cgroup-view':
      return lose('Functions see the names of control groups', { namespaces: fewer('cgroup') });
    case 'uts':
      return lose("Functions share the host's name", { namespaces: fewer('uts') });
    case 'proc':
      if (!isolation.freshProc) break;
      return lose("Functions see the host's /proc", { freshProc: false });
    case 'net':
      if (isolation.network) return { ...lose(noNetwork, { network: undefined }), service: true };
      return lose('Functions have no network of their own', { namespaces: fewer('net') });
    case 'cgroup':
      if (isolation.cgroups === noCgroups) break;
      return lose('Control groups are not available', { cgroups: noCgroups });
    case 'filter':
      return lose('System calls of functions are not filtered', { filter: false });
    case 'namespaces':
      if (isolation.namespaces.size === 0) break;
      return lose('Functions see the file system, the network and the processes of the host', {
        namespaces: new Set(),
        freshProc: false,
        network: undefined,
      });
    case 'mount':
    case 'exec':
      if (isolation.namespaces.has('mount')) {
        return lose('Functions see the file system of the host', { namespaces: fewer('mount'), freshProc: false });
      }
      // Only the platform's user may have access to the folder or the program.
      if (!isolation.ownUser) break;
      return lose('Functions run as the user of the platform', { ownUser: false, namespaces: fewer('user') });
  }
  return undefined;
}

/**
 * Whether sandboxes may share a PID namespace: each needs its own user, and a control group by which it is ended. A trial
 * checks the other conditions (Landlock, a /proc that hides other users' processes).
 */
export function canShare({ namespaces, ownUser, freshProc, filter, cgroups }: Isolation): boolean {
  const separate = ['user', 'mount', 'pid', 'ipc', 'net'].every((name) => namespaces.has(name));
  return process.getuid?.() === 0 && separate && ownUser && freshProc && filter && cgroups !== noCgroups;
}

/** How a trial ended; `undecided`: the trial was late or met a transient shortage, which says nothing about the measure. */
type Trial = { type: 'runs' } | { type: 'undecided' | 'forbidden'; measure: string; reason: string };

/** A trial's sandbox, with a folder for its files on hosts without a file system of its own for them. */
export type TrialFrame = Frame & { probeFolder: string };

async function tryOnce(
  path: string,
  tag: string,
  isolation: Isolation,
  frame: TrialFrame,
  timeoutMs: number,
): Promise<Trial> {
  const { cgroups } = isolation;
  const id = 'probe';
  const process = startLauncher(path, tag, cgroups.makeWords(id));
  const ended = launcherResult(process);
  const timer = setTimeout(() => process.child.kill('SIGKILL'), timeoutMs);
  const inside = isolation.namespaces.has('mount') ? '/run/probe' : path;
  sendSpec(process, [
    ...cgroups.limitWords(id, { memoryBytes: 64 * MiB, pids: 16, givesWay: false }),
    ...frameWords(isolation, frame),
    ...spaceWords(isolation, { actionFolder: frame.probeFolder, tmpBytes: MiB, actionBytes: MiB }),
    ...(isolation.namespaces.has('mount') ? ['bind', path, inside, 'ro'] : []),
    'exec',
    inside,
    '--true',
  ]);
  const { reports, status } = await ended;
  clearTimeout(timer);
  await cgroups.remove(id);
  const error = reports.find((report) => report.startsWith('error\n'));
  if (error !== undefined) {
    const [, measure = '', reason = ''] = error.split('\n');
    return { type: passing.test(reason) ? 'undecided' : 'forbidden', measure, reason };
  }
  if (status === 0) return { type: 'runs' };
  return status === null
    ? { type: 'undecided', measure: 'exec', reason: `the trial was killed, or had not ended after ${timeoutMs} ms` }
    : { type: 'forbidden', measure: 'exec', reason: `the trial program ended with status ${status}` };
}

/**
 * Tries a sandbox, repeatedly if trials are late. Resolves with the measure that the host forbids and the reason, or with
 * undefined if the sandbox runs. Rejects with IsolationError if all trials stay undecided.
 */
export async function probe(
  path: string,
  tag: string,
  isolation: Isolation,
  frame: TrialFrame,
): Promise<{ measure: string; reason: string } | undefined> {
  let reason = '';
  for (const timeoutMs of trialTimeoutsMs) {
    const trial = await tryOnce(path, tag, isolation, frame, timeoutMs);
    if (trial.type === 'runs') return undefined;
    if (trial.type === 'forbidden') return trial;
    ({ reason } = trial);
  }
  throw new IsolationError(
    `The isolation that this host allows cannot be determined: none of ${trialTimeoutsMs.length} trials of a sandbox ended (${reason}). Start again when the machine is less busy.`,
  );
}

/**
 * Tries sandboxes until one starts, each time without the measure that the host forbade. The report lists the dropped
 * measures and the reasons. Rejects with IsolationError as probe does.
 */
export async function probeIsolation(
  path: string,
  tag: string,
  wanted: { cgroups: Cgroups; network: ActionNetwork | undefined },
  frame: Omit<TrialFrame, 'slot'>,
): Promise<{ isolation: Isolation } & StartReport> {
  const report: StartReport = { weaknesses: [], notes: [] };
  const executable = await access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
  if (!executable) {
    report.weaknesses.push(
      'Functions run without isolation, as the user of the platform: no sandbox launcher is built.',
    );
    return { isolation: noIsolation, ...report };
  }
  let isolation: Isolation = {
    launcher: true,
    namespaces: new Set(allNamespaces),
    freshProc: true,
    ownUser: true,
    filter: true,
    ...wanted,
  };
  for (let tries = 0; tries < maxProbes; tries++) {
    const failure = await probe(path, tag, isolation, { ...frame, slot: probeSlot });
    if (failure === undefined) return { isolation, ...report };
    const weaker = weaken(isolation, failure.measure);
    const lost = weaker?.lost ?? 'Functions run without isolation, as the user of the platform';
    report[weaker?.service ? 'notes' : 'weaknesses'].push(`${lost}: ${failure.reason}.`);
    if (!weaker) break;
    isolation = weaker.isolation;
  }
  return { isolation: noIsolation, ...report };
}

/** Lines of text about limits that are weaker than intended. `root`: sandboxes have their own users. */
export function limitNotes({ launcher, cgroups }: Isolation, root: boolean): string[] {
  if (!launcher) return []; // Without a launcher there are no limits, which the note on isolation says.
  const notes: string[] = [];
  if (!cgroups.limitsMemory) {
    notes.push('Functions are held to their memory by a watch: this host gives no control groups with memory limits.');
  }
  if (!cgroups.limitsPids) {
    notes.push('The processes of functions are limited per user only: this host gives no pids control group.');
  }
  if (!root) notes.push('Without root all functions run as the user of the platform.');
  return notes;
}

/** File systems of a sandbox whose memory limit may change are made for this limit, bytes. */
const largestBytes = 2048 * MiB;

const searchPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** The environment of a runtime. `common` is every runtime's, such as `__OW_API_HOST`. */
export function runtimeEnv(
  spec: ContainerSpec,
  launch: RuntimeLaunch,
  home: string,
  common: Readonly<Record<string, string>>,
): Record<string, string> {
  return {
    PATH: searchPath,
    HOME: home,
    TMPDIR: '/tmp',
    LANG: 'C.UTF-8',
    ...common,
    ...(usesGpu(spec) && { XDG_CACHE_HOME: `${home}/.cache`, ...kernelCaches(`${home}/.cache`) }),
    ...launch.env,
    ...(spec.concurrency > 1 ? { __OW_ALLOW_CONCURRENT: 'true' } : {}),
    ...(usesGpu(spec) ? { GPUWHISK_CUDA: 'true' } : {}),
    ...(spec.imports.length > 0 ? { GPUWHISK_IMPORTS: spec.imports.join(' ') } : {}),
    ...(spec.learned === undefined ? {} : { GPUWHISK_LEARNED: 'true' }),
  };
}

/** Spec and settings of a sandbox to be made. */
export interface SandboxPlan {
  id: string;
  spec: ContainerSpec;
  launch: RuntimeLaunch;
  /** Absent: the launcher has made it already. */
  frame: Frame | undefined;
  outerId: number;
  actionFolder: string;
  /** The platform's data folder, which must stay hidden inside. */
  dataDir: string;
  /** Processes of the sandbox, threads included. */
  pids: number;
  /** Whether the sandbox yields processors to others until giveWay(false). */
  givesWay: boolean;
  env: Readonly<Record<string, string>>;
}

/**
 * The launcher's second message: limits, isolation (unless the launcher has been given it) and environment of the sandbox, and
 * its command at the end.
 */
export function sandboxWords(isolation: Isolation, plan: SandboxPlan): Words {
  const { id, spec, launch, frame, outerId, actionFolder, pids, givesWay } = plan;
  const memoryBytes = spec.memoryMiB * MiB;
  // Its memory limit is set again for the action that gets it, and bounds its file systems, too.
  const resizes = spec.learned !== undefined && isolation.cgroups.limitsMemory;
  const fileBytes = Math.max(memoryBytes, resizes ? largestBytes : 0);
  const mounts = isolation.namespaces.has('mount');
  const seen = mounts ? insideLaunch(launch, plan.dataDir) : unsandboxed(launch);
  const words: Words = [
    ...isolation.cgroups.limitWords(id, { memoryBytes, pids, givesWay }),
    ...(frame === undefined ? [] : frameWords(isolation, frame)),
    ...spaceWords(isolation, {
      actionFolder,
      tmpBytes: Math.floor(fileBytes / 2),
      actionBytes: Math.floor((fileBytes * 3) / 4),
    }),
    ...(mounts ? bindWords(seen.binds, plan.dataDir) : []),
    'rlimit',
    'nofile',
    String(processBounds(spec).openFiles),
    'rlimit',
    'core',
    '0',
  ];
  // Bounds files outside the sandbox's own file systems: on mounted folders, or on a host without a private root. A GPU's
  // driver reserves addresses with sparse files of hundreds of GiB; with a GPU the sizes of a private root's file systems
  // are the bound.
  if (!mounts || !usesGpu(spec)) words.push('rlimit', 'fsize', String(fileBytes));
  // Only for the sandbox's own user or user namespace: otherwise the limit would count the platform's processes.
  const platformUser = process.getuid?.() ?? 0;
  const ownUser = isolation.ownUser && (outerId !== platformUser || isolation.namespaces.has('user'));
  if (ownUser) words.push('rlimit', 'nproc', String(pids));
  if (!isolation.cgroups.limitsMemory) {
    // A coarse bound: it is per process and counts reserved memory that is never touched.
    words.push('watch', String(memoryBytes), 'rlimit', 'data', String(memoryBytes * 2 + 512 * MiB));
  }
  if (launch.traces) words.push('traces');
  if (launch.protocol === 'framed') words.push('keep-socket');
  if (launch.servesRuns) words.push('keep-runs');
  const env = runtimeEnv(spec, seen, mounts ? '/action' : actionFolder, plan.env);
  // Folders that an unload empties; they must belong to this sandbox alone.
  if (mounts && launch.env.GPUWHISK_PREWARM === 'true') env.GPUWHISK_SCRATCH = '/tmp:/dev/shm';
  for (const [name, value] of Object.entries(env)) words.push('env', `${name}=${value}`);
  return [...words, 'exec', ...seen.command];
}

/** The launch for a host without private roots: paths inside the sandbox become paths of the host. */
export function unsandboxed(launch: RuntimeLaunch): RuntimeLaunch {
  const moved = launch.binds.filter((bind) => bind.source !== bind.target);
  const toHost = (text: string): string => {
    const bind = moved.find(({ target }) => text === target || text.startsWith(`${target}/`));
    return bind ? bind.source + text.slice(bind.target.length) : text;
  };
  const env = Object.entries(launch.env).map(([name, value]) => [name, value.split(':').map(toHost).join(':')]);
  return { ...launch, command: launch.command.map(toHost), env: Object.fromEntries(env) as Record<string, string> };
}

import type { ContainerSpec } from '../container-factory.js';
import type { RuntimeLaunch } from '../runtime-launch.js';
import { bindWords } from './host-view.js';
import { frameWords } from './isolation.js';
import type { Frame, Isolation } from './isolation.js';
import type { Words } from './launcher.js';

const MiB = 1024 * 1024;
/** Open files of a sandbox's process, as OpenWhisk's `--ulimit nofile`. */
const openFiles = 1024;
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
    ...launch.env,
    ...(spec.concurrency > 1 ? { __OW_ALLOW_CONCURRENT: 'true' } : {}),
    ...(spec.cuda || spec.gpu !== undefined ? { GPUWHISK_CUDA: 'true' } : {}),
    ...(spec.imports.length > 0 ? { GPUWHISK_IMPORTS: spec.imports.join(' ') } : {}),
  };
}

/** What a sandbox is made from. */
export interface SandboxPlan {
  id: string;
  spec: ContainerSpec;
  launch: RuntimeLaunch;
  frame: Omit<Frame, 'tmpBytes' | 'actionBytes'>;
  /** Never to be seen inside. */
  dataDir: string;
  /** Processes of the sandbox, threads included. */
  pids: number;
  /** Whether it gives way to others on the processors until it is told otherwise. */
  givesWay: boolean;
  env: Readonly<Record<string, string>>;
}

/** The launcher's second message: everything about the sandbox, ending with its command. */
export function sandboxWords(isolation: Isolation, plan: SandboxPlan): Words {
  const { id, spec, launch, frame, pids, givesWay } = plan;
  const memoryBytes = spec.memoryMiB * MiB;
  const mounts = isolation.namespaces.has('mount');
  const seen = mounts ? launch : unsandboxed(launch);
  const words: Words = [
    ...isolation.cgroups.limitWords(id, { memoryBytes, pids, givesWay }),
    ...frameWords(isolation, {
      ...frame,
      tmpBytes: Math.floor(memoryBytes / 2),
      actionBytes: Math.floor((memoryBytes * 3) / 4),
    }),
    ...(mounts ? bindWords(launch.binds, plan.dataDir) : []),
    'rlimit',
    'nofile',
    String(openFiles),
    'rlimit',
    'core',
    '0',
  ];
  // Bounds files beyond the sandbox's own file systems: on one that it was given, or of a host without a private root. A GPU's
  // driver reserves addresses with sparse files of hundreds of GiB; there the file systems of a private root must suffice.
  const usesGpu = spec.cuda || spec.gpu !== undefined;
  if (!mounts || !usesGpu) words.push('rlimit', 'fsize', String(memoryBytes));
  // Of a user of its own or in a namespace of its own; it would count the platform's processes otherwise.
  const platformUser = process.getuid?.() ?? 0;
  const ownUser = isolation.ownUser && (frame.outerId !== platformUser || isolation.namespaces.has('user'));
  if (ownUser) words.push('rlimit', 'nproc', String(pids));
  if (!isolation.cgroups.limitsMemory) {
    // Per process, and it counts memory that is reserved and never touched: a bound on runaways, no more.
    words.push('watch', String(memoryBytes), 'rlimit', 'data', String(memoryBytes * 2 + 512 * MiB));
  }
  if (launch.traces) words.push('traces');
  if (launch.protocol === 'framed') words.push('keep-socket');
  const env = runtimeEnv(spec, seen, mounts ? '/action' : frame.actionFolder, plan.env);
  // The folders that an unload empties, where no other sandbox uses them.
  if (mounts && launch.env.GPUWHISK_PREWARM === 'true') env.GPUWHISK_SCRATCH = '/tmp:/dev/shm';
  for (const [name, value] of Object.entries(env)) words.push('env', `${name}=${value}`);
  return [...words, 'exec', ...seen.command];
}

/** The launch as it is without a private root: paths inside the sandbox become those of the host. */
export function unsandboxed(launch: RuntimeLaunch): RuntimeLaunch {
  const moved = launch.binds.filter((bind) => bind.source !== bind.target);
  const toHost = (text: string): string => {
    const bind = moved.find(({ target }) => text === target || text.startsWith(`${target}/`));
    return bind ? bind.source + text.slice(bind.target.length) : text;
  };
  const env = Object.entries(launch.env).map(([name, value]) => [name, value.split(':').map(toHost).join(':')]);
  return { ...launch, command: launch.command.map(toHost), env: Object.fromEntries(env) as Record<string, string> };
}

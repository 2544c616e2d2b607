import type { RuntimeLaunch } from '../../runtimes/runtime-catalog.js';

/** What a container needs of the host to use its GPU. */
export interface GpuAccess {
  env: Readonly<Record<string, string>>;
  /** Paths of the host that it sees at the same place. */
  binds: readonly { path: string; mode: 'ro' | 'rw' | 'dev' }[];
  /** Folders with the driver's libraries, where those are not the system's. */
  libraries: readonly string[];
  /** What shares the GPU serves one user of the host: all containers with a GPU are the same one, which is nobody else's. */
  oneUser: boolean;
}

/** What a container needs to use several devices. */
export function joinedAccess(all: readonly GpuAccess[]): GpuAccess {
  const binds = new Map(all.flatMap((access) => access.binds).map((bind) => [bind.path, bind]));
  return {
    env: Object.assign({}, ...all.map(({ env }) => env)) as Record<string, string>,
    binds: [...binds.values()],
    libraries: [...new Set(all.flatMap(({ libraries }) => libraries))],
    oneUser: all.some(({ oneUser }) => oneUser),
  };
}

/** The launch of a container with a GPU. */
export function launchWithGpu(launch: RuntimeLaunch, { env, binds, libraries, oneUser }: GpuAccess): RuntimeLaunch {
  const readable = [...libraries, ...binds.filter(({ mode }) => mode === 'ro').map(({ path }) => path)];
  const writable = binds.filter(({ mode }) => mode !== 'ro').map(({ path }) => path);
  const paths = [...readable.flatMap((path) => ['--read', path]), ...writable.flatMap((path) => ['--write', path])];
  const own = [
    ...binds.map(({ path, mode }) => ({ source: path, target: path, mode })),
    ...libraries.map((path) => ({ source: path, target: path })),
  ];
  const joined = (name: string, separator: string, values: readonly string[]): Record<string, string> => {
    const all = [launch.env[name], env[name], ...values].filter((value) => value !== undefined && value !== '');
    return all.length === 0 ? {} : { [name]: all.join(separator) };
  };
  return {
    ...launch,
    // A proxy passes these on to its pre-warmer, which sees nothing else.
    command: launch.traces ? [...launch.command, ...paths] : launch.command,
    binds: [...launch.binds, ...own],
    env: {
      ...launch.env,
      ...env,
      ...joined('LD_LIBRARY_PATH', ':', libraries),
      ...(launch.traces
        ? joined(
            'GPUWHISK_LIBRARIES',
            ':',
            libraries.map((path) => `${path}/`),
          )
        : {}),
    },
    ...(oneUser && { sharesUser: true }),
  };
}

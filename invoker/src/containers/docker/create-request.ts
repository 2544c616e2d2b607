import type { ContainerSpec } from '../container-factory.js';
import type { GpuAccess } from '../runtime-launch.js';

const MiB = 1024 * 1024;
/** As OpenWhisk's flags for every container. */
const openFiles = 1024;
const pidsLimit = 1024;
const cpuSharesOfAll = 1024;
const minCpuShares = 2;
/** Of files of a folder in memory: inodes are the kernel's memory, which an empty file takes a kilobyte of. */
const bytesPerFile = 4096;
/** What a container prints is read as it comes; the engine's own copy is for looking at, and bounded. */
const keptLog = { 'max-size': '1m', 'max-file': '1' };
/** Within a container, where the platform's socket is mounted. */
const socketInside = '/run/gpuwhisk.socket';
/** The user of all containers that share a GPU through a service that serves one user. */
const gpuUser = '65534:65534';

/** What a container is made from. */
export interface ContainerPlan {
  image: string;
  spec: ContainerSpec;
  /** A program in place of the image's own. */
  command?: readonly string[];
  /** Shown in the engine's list; containers that an earlier process left are found by it. */
  labels: Readonly<Record<string, string>>;
  env: Readonly<Record<string, string>>;
  network: string;
  /** Folders that it may write to, besides /tmp and /dev/shm. */
  writable: readonly string[];
  dns: readonly string[];
  /** Memory of the whole pool, which processors are shared by; MiB. */
  poolMemoryMiB: number;
  /** Path of the host's socket that its runtime connects to; absent: it listens itself. */
  socket?: string;
  /** Present where the spec has a GPU. */
  gpu?: GpuAccess;
  /** Where it shares the PID namespace of another container. */
  shared?: {
    /** `container:ID` */
    pidNamespace: string;
    /** Unique in that namespace, so that no container may signal or trace another. */
    userId: number;
  };
}

/** The Engine API's request to make the container. */
export function createRequest(plan: ContainerPlan): object {
  const { image, spec, labels, network, dns, socket, command, gpu, shared, writable } = plan;
  const memoryBytes = spec.memoryMiB * MiB;
  // What is in them counts against the memory, too.
  const folderBytes = Math.floor(memoryBytes / 2);
  const folder = `rw,exec,nosuid,nodev,mode=1777,size=${folderBytes},nr_inodes=${Math.floor(folderBytes / bytesPerFile)}`;
  const binds = [...(socket === undefined ? [] : [`${socket}:${socketInside}`]), ...gpuBinds(gpu)];
  return {
    Image: image,
    ...(command && { Cmd: command }),
    Env: Object.entries(environment(plan)).map(([name, value]) => `${name}=${value}`),
    Labels: labels,
    AttachStdout: true,
    AttachStderr: true,
    ...(gpu?.oneUser && { User: gpuUser }),
    ...(shared && { User: `${shared.userId}:${shared.userId}` }),
    HostConfig: {
      CpuShares: Math.max(minCpuShares, Math.floor((cpuSharesOfAll * spec.memoryMiB) / plan.poolMemoryMiB)),
      Memory: memoryBytes,
      MemorySwap: memoryBytes,
      PidsLimit: pidsLimit,
      NetworkMode: network,
      ...(dns.length > 0 && { Dns: dns }),
      CapDrop: ['ALL'],
      Privileged: false,
      ReadonlyRootfs: true,
      Tmpfs: Object.fromEntries(['/tmp', ...writable].map((path) => [path, folder])),
      // Its own, whatever the engine's default is.
      IpcMode: 'private',
      ShmSize: folderBytes,
      SecurityOpt: ['no-new-privileges'],
      Ulimits: [{ Name: 'nofile', Soft: openFiles, Hard: openFiles }],
      LogConfig: { Type: 'json-file', Config: keptLog },
      ...(binds.length > 0 && { Binds: binds }),
      ...(shared && { PidMode: shared.pidNamespace }),
      ...gpuDevices(spec, gpu),
    },
  };
}

function environment({ spec, env, socket, gpu }: ContainerPlan): Record<string, string> {
  const libraries = gpu === undefined || isNvidia(gpu) ? [] : gpu.libraries;
  return {
    ...env,
    ...gpu?.env,
    ...(libraries.length > 0 && { LD_LIBRARY_PATH: libraries.join(':') }),
    ...(spec.concurrency > 1 && { __OW_ALLOW_CONCURRENT: 'true' }),
    ...((spec.cuda || spec.gpu !== undefined) && { GPUWHISK_CUDA: 'true' }),
    ...(spec.imports.length > 0 && { GPUWHISK_IMPORTS: spec.imports.join(' ') }),
    ...(socket !== undefined && { GPUWHISK_SOCKET: socketInside }),
  };
}

/** Whether its devices are real ones, which NVIDIA's runtime brings into the container with the driver's libraries. */
function isNvidia(gpu: GpuAccess): boolean {
  return gpu.binds.some(({ mode }) => mode === 'dev');
}

function gpuBinds(gpu: GpuAccess | undefined): string[] {
  if (gpu === undefined) return [];
  const own = gpu.binds.filter(({ mode }) => mode !== 'dev' && (mode === 'rw' || !isNvidia(gpu)));
  const libraries = isNvidia(gpu) ? [] : gpu.libraries;
  return [
    ...own.map(({ path, mode }) => `${path}:${path}${mode === 'ro' ? ':ro' : ''}`),
    ...libraries.map((path) => `${path}:${path}:ro`),
  ];
}

/** As `docker run --gpus device=UUID`. */
function gpuDevices({ gpu: grant }: ContainerSpec, gpu: GpuAccess | undefined): object {
  if (gpu === undefined || grant === undefined || !isNvidia(gpu)) return {};
  const ids = grant.slice === undefined ? grant.devices : [grant.slice];
  return { DeviceRequests: [{ Driver: 'nvidia', DeviceIDs: ids, Capabilities: [['gpu', 'compute', 'utility']] }] };
}

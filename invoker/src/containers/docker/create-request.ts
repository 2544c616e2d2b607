import type { ContainerSpec } from '../container-factory.js';
import { kernelCaches, processBounds, usesGpu } from '../framework-needs.js';
import type { Bind, GpuAccess } from '../runtime-launch.js';

const MiB = 1024 * 1024;
const cpuSharesOfAll = 1024;
const minCpuShares = 2;
/** Bytes for each inode of a folder in memory: an empty file takes a kilobyte of the kernel's memory. */
const bytesPerFile = 4096;
/** Bounds of the engine's own copy of a container's output; the platform reads the output as a stream. */
const keptLog = { 'max-size': '1m', 'max-file': '1' };
/** Path of the platform's socket inside a container. */
const socketInside = '/run/gpuwhisk.socket';
/** The user of all containers that share a GPU through a service that serves one user. */
const gpuUser = '65534:65534';

/** Spec and settings of a container to be made. */
export interface ContainerPlan {
  image: string;
  spec: ContainerSpec;
  /** Replaces the image's own program. */
  command?: readonly string[];
  /** Labels in the engine's list; they identify containers of earlier processes. */
  labels: Readonly<Record<string, string>>;
  env: Readonly<Record<string, string>>;
  network: string;
  /** Folders that the container may write to, besides /tmp and /dev/shm. */
  writable: readonly string[];
  dns: readonly string[];
  /** Memory of the whole pool, MiB; a container's part of it is its part of the processors. */
  poolMemoryMiB: number;
  /** Files and folders of the host that are seen inside, read-only; absent: none. */
  binds?: readonly Bind[];
  /** Path of the host's socket that the runtime connects to; absent: the runtime listens itself. */
  socket?: string;
  /** Present if the spec has a GPU. */
  gpu?: GpuAccess;
  /** Present if the container shares another container's PID namespace. */
  shared?: {
    /** `container:ID` */
    pidNamespace: string;
    /** User id, unique in the namespace so that no container may signal or trace another. */
    userId: number;
  };
}

/** The Engine API's request to make the container. */
export function createRequest(plan: ContainerPlan): object {
  const { image, spec, labels, network, dns, socket, command, gpu, shared, writable, binds: seen = [] } = plan;
  const memoryBytes = spec.memoryMiB * MiB;
  const { openFiles, pids } = processBounds(spec);
  // The contents of these folders count against the container's memory, too.
  const folderBytes = Math.floor(memoryBytes / 2);
  const folder = `rw,exec,nosuid,nodev,mode=1777,size=${folderBytes},nr_inodes=${Math.floor(folderBytes / bytesPerFile)}`;
  const binds = [
    ...(socket === undefined ? [] : [`${socket}:${socketInside}`]),
    ...seen.map(({ source, target }) => `${source}:${target}:ro`),
    ...gpuBinds(gpu),
  ];
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
      PidsLimit: pids,
      NetworkMode: network,
      ...(dns.length > 0 && { Dns: dns }),
      CapDrop: ['ALL'],
      Privileged: false,
      ReadonlyRootfs: true,
      Tmpfs: Object.fromEntries(['/tmp', ...writable].map((path) => [path, folder])),
      // Set explicitly, as the engine's default may be shared.
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
    // The root is read-only, the home of an image's user, too.
    ...(usesGpu(spec) && kernelCaches('/tmp/.cache')),
    ...gpu?.env,
    ...(libraries.length > 0 && { LD_LIBRARY_PATH: libraries.join(':') }),
    ...(spec.concurrency > 1 && { __OW_ALLOW_CONCURRENT: 'true' }),
    ...(usesGpu(spec) && { GPUWHISK_CUDA: 'true' }),
    ...(spec.imports.length > 0 && { GPUWHISK_IMPORTS: spec.imports.join(' ') }),
    ...(spec.learned !== undefined && { GPUWHISK_LEARNED: 'true' }),
    ...(socket !== undefined && { GPUWHISK_SOCKET: socketInside }),
  };
}

/** Whether the devices are real ones: NVIDIA's runtime mounts their files and the driver's libraries. */
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

/** The device request of `docker run --gpus device=UUID`. */
function gpuDevices({ gpu: grant }: ContainerSpec, gpu: GpuAccess | undefined): object {
  if (gpu === undefined || grant === undefined || !isNvidia(gpu)) return {};
  const ids = grant.slice === undefined ? grant.devices : [grant.slice];
  return { DeviceRequests: [{ Driver: 'nvidia', DeviceIDs: ids, Capabilities: [['gpu', 'compute', 'utility']] }] };
}

import { describe, expect, test } from '@jest/globals';
import { bareSpec } from '../container-factory.js';
import type { GpuAccess } from '../runtime-launch.js';
import { createRequest } from './create-request.js';
import type { ContainerPlan } from './create-request.js';

const plan: ContainerPlan = {
  image: 'sha256:1',
  spec: bareSpec('python:3.11', 512),
  labels: { 'gpuwhisk.platform': 'p' },
  env: { __OW_API_HOST: 'http://172.17.0.1:3233' },
  network: 'gpuwhisk-1',
  writable: ['/action'],
  dns: [],
  poolMemoryMiB: 2048,
};

const uuid = 'GPU-1';
const share = { shareClass: 50, smRequest: 0.5, smLimit: 0.5, memoryMiB: 1024 } as const;
const grant = { devices: [uuid], share };
const nvidia: GpuAccess = {
  env: { CUDA_VISIBLE_DEVICES: uuid, CUDA_MPS_PIPE_DIRECTORY: '/data/mps/1' },
  binds: [
    { path: '/dev/nvidia0', mode: 'dev' },
    { path: '/data/mps/1', mode: 'rw' },
    { path: '/usr/lib/libcuda.so.1', mode: 'ro' },
  ],
  libraries: [],
  oneUser: true,
};

interface Request {
  Env: string[];
  User?: string;
  Cmd?: string[];
  HostConfig: Record<string, unknown>;
}

const request = (changed: Partial<ContainerPlan> = {}): Request => createRequest({ ...plan, ...changed }) as Request;

describe('the request for a container', () => {
  test('has the limits that its memory stands for', () => {
    const { HostConfig, Env } = request();
    expect(HostConfig).toMatchObject({ CpuShares: 256, Memory: 512 * 1024 * 1024, MemorySwap: 512 * 1024 * 1024 });
    const folder = 'rw,exec,nosuid,nodev,mode=1777,size=268435456,nr_inodes=65536';
    expect(HostConfig).toMatchObject({ Tmpfs: { '/tmp': folder, '/action': folder }, ShmSize: 256 * 1024 * 1024 });
    expect(HostConfig).toMatchObject({ CapDrop: ['ALL'], ReadonlyRootfs: true, IpcMode: 'private' });
    expect(HostConfig).not.toHaveProperty('DeviceRequests');
    expect(HostConfig).not.toHaveProperty('Binds');
    expect(Env).toEqual(['__OW_API_HOST=http://172.17.0.1:3233']);
    expect(request({ poolMemoryMiB: 1e9 }).HostConfig.CpuShares).toBe(2);
  });

  test('lets functions with a GPU have more files and processes, and keep compiled kernels in memory', () => {
    const withGpu = request({ spec: { ...plan.spec, gpu: grant }, gpu: nvidia });
    const limits = (files: number, pids: number): object => ({
      ...{ PidsLimit: pids, Ulimits: [{ Name: 'nofile', Soft: files, Hard: files }] },
    });
    expect(request().HostConfig).toMatchObject(limits(1024, 1024));
    expect(withGpu.HostConfig).toMatchObject(limits(65_536, 4096));
    expect(withGpu.Env).toEqual(expect.arrayContaining(['TRITON_CACHE_DIR=/tmp/.cache/triton']));
  });

  test('mounts files of the host read-only', () => {
    const binds = [{ source: '/data/certificates', target: '/run/certificates' }];
    expect(request({ binds, socket: '/s' }).HostConfig).toMatchObject({
      Binds: ['/s:/run/gpuwhisk.socket', '/data/certificates:/run/certificates:ro'],
    });
  });

  test('mounts the socket, and says what the runtime is to be ready for', () => {
    const spec = { ...plan.spec, concurrency: 3, imports: ['a', 'b'], cuda: true };
    const { HostConfig, Env, Cmd } = request({
      spec,
      socket: '/data/docker/wsk0_1',
      command: ['p', 'q'],
      dns: ['1.1.1.1'],
    });
    expect(HostConfig).toMatchObject({ Binds: ['/data/docker/wsk0_1:/run/gpuwhisk.socket'], Dns: ['1.1.1.1'] });
    expect(Cmd).toEqual(['p', 'q']);
    expect(Env).toEqual(
      expect.arrayContaining([
        '__OW_ALLOW_CONCURRENT=true',
        'GPUWHISK_IMPORTS=a b',
        'GPUWHISK_CUDA=true',
        'GPUWHISK_SOCKET=/run/gpuwhisk.socket',
      ]),
    );
  });

  test("asks NVIDIA's runtime for the devices of the grant, and shares no more than the pipe of MPS", () => {
    const { HostConfig, User, Env } = request({ spec: { ...plan.spec, gpu: grant }, gpu: nvidia });
    expect(HostConfig.DeviceRequests).toEqual([
      { Driver: 'nvidia', DeviceIDs: [uuid], Capabilities: [['gpu', 'compute', 'utility']] },
    ]);
    expect(HostConfig).toMatchObject({ Binds: ['/data/mps/1:/data/mps/1'], IpcMode: 'private' });
    expect(User).toBe('65534:65534');
    expect(Env).toEqual(expect.arrayContaining(['CUDA_MPS_PIPE_DIRECTORY=/data/mps/1', 'GPUWHISK_CUDA=true']));
    const slice = request({ spec: { ...plan.spec, gpu: { ...grant, slice: 'MIG-1' } }, gpu: nvidia });
    expect(slice.HostConfig.DeviceRequests).toMatchObject([{ DeviceIDs: ['MIG-1'] }]);
  });

  test('brings the stand-in driver, for which there is no runtime', () => {
    const standIn: GpuAccess = {
      env: {},
      binds: [{ path: '/tmp/sim.socket', mode: 'rw' }],
      libraries: ['/opt/cudasim'],
      oneUser: false,
    };
    const { HostConfig, User, Env } = request({ spec: { ...plan.spec, gpu: grant }, gpu: standIn });
    expect(HostConfig).not.toHaveProperty('DeviceRequests');
    expect(HostConfig.Binds).toEqual(['/tmp/sim.socket:/tmp/sim.socket', '/opt/cudasim:/opt/cudasim:ro']);
    expect(User).toBeUndefined();
    expect(Env).toContain('LD_LIBRARY_PATH=/opt/cudasim');
  });
});

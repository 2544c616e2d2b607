import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { Slice } from '@gpuwhisk/common/gpu';
import { nvidiaAccess } from './device-files.js';

let root: string;
let dev: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'gpuwhisk-device-files-'));
  dev = join(root, 'dev');
});
afterEach(() => rmSync(root, { recursive: true }));

function write(path: string, text = ''): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
}

/** Writes a device's files as the driver does in /proc/driver/nvidia. */
function device(bus: string, uuid: string, minor: number): void {
  const text = `Model: \t\t NVIDIA A100-SXM4-40GB\nIRQ:   \t\t 42\nGPU UUID: \t ${uuid}\nDevice Minor: \t ${minor}\n`;
  write(`proc/gpus/${bus}/information`, text);
  write(`dev/nvidia${minor}`);
}

function capability(path: string, minor: number): void {
  write(`proc/capabilities/${path}/access`, `DeviceFileMinor: ${minor}\nDeviceFileMode: 256\nDeviceFileModify: 1\n`);
  write(`dev/nvidia-caps/nvidia-cap${minor}`);
}

/** The slice of a GPU instance. */
const sliceOf = (instance?: number): Slice => ({
  uuid: `MIG-${instance}`,
  profile: '3g.20gb',
  startSlot: 0,
  slots: 4,
  smCount: 42,
  memoryMiB: 19_968,
  ...(instance !== undefined && { instance }),
});

async function filesOf(uuid: string, slice?: Slice): Promise<string[]> {
  const { binds, env, libraries, oneUser } = (await nvidiaAccess(join(root, 'proc'), dev, ''))(uuid, slice);
  expect([env, libraries, oneUser, binds.every(({ mode }) => mode === 'dev')]).toEqual([{}, [], false, true]);
  return binds.map(({ path }) => relative(dev, path)).sort();
}

test('a client sees the files of its own device and those of all clients, as far as they are there', async () => {
  device('0000:07:00.0', 'GPU-a', 1);
  device('0000:0f:00.0', 'GPU-b', 0);
  for (const name of ['nvidiactl', 'nvidia-uvm']) write(`dev/${name}`);
  expect(await filesOf('GPU-a')).toEqual(['nvidia-uvm', 'nvidia1', 'nvidiactl']);
  expect(await filesOf('GPU-b')).toEqual(['nvidia-uvm', 'nvidia0', 'nvidiactl']);
});

test('one of a slice sees the capabilities of its own instance, and of no other of its device', async () => {
  device('0000:07:00.0', 'GPU-a', 0);
  device('0000:0f:00.0', 'GPU-b', 1);
  capability('gpu0/mig/gi3', 12);
  capability('gpu0/mig/gi3/ci0', 13);
  capability('gpu0/mig/gi4', 15);
  capability('gpu0/mig/gi4/ci0', 16);
  capability('gpu1/mig/gi3', 21);
  capability('gpu1/mig/gi3/ci0', 22);
  expect(await filesOf('GPU-a')).toEqual(['nvidia0']);
  expect(await filesOf('GPU-a', sliceOf(3))).toEqual([
    'nvidia-caps/nvidia-cap12',
    'nvidia-caps/nvidia-cap13',
    'nvidia0',
  ]);
  expect(await filesOf('GPU-a', sliceOf(4))).toEqual([
    'nvidia-caps/nvidia-cap15',
    'nvidia-caps/nvidia-cap16',
    'nvidia0',
  ]);
  expect(await filesOf('GPU-a', sliceOf(5))).toEqual(['nvidia0']);
  expect(await filesOf('GPU-a', sliceOf())).toEqual(['nvidia0']);
});

test('the files of a device that was cut again are those of now', async () => {
  device('0000:07:00.0', 'GPU-a', 0);
  capability('gpu0/mig/gi3', 12);
  const access = await nvidiaAccess(join(root, 'proc'), dev);
  const capabilities = (): string[] =>
    access('GPU-a', sliceOf(3)).binds.flatMap(({ path }) => /nvidia-cap\d+$/.exec(path) ?? []);
  expect(capabilities()).toEqual(['nvidia-cap12']);
  capability('gpu0/mig/gi3', 30);
  expect(capabilities()).toEqual(['nvidia-cap30']);
});

test('a device that the driver does not know, or cannot be read, has no file of its own', async () => {
  write('dev/nvidiactl');
  write('proc/gpus/0000:07:00.0/information', 'Model: unknown\n');
  write('dev/nvidia0');
  expect(await filesOf('GPU-a')).toEqual(['nvidiactl']);
});

test('a machine without the driver has none', async () => {
  expect(await filesOf('GPU-a')).toEqual([]);
});

test("libraries that only LD_LIBRARY_PATH names are the client's, with the folder that their links lead to", async () => {
  write('release/libcuda.so.580.95');
  for (const folder of ['nvidia/lib64', 'nvidia/lib', 'other']) write(`${folder}/libother.so`);
  symlinkSync('libcuda.so.580.95', join(root, 'release/libcuda.so'));
  symlinkSync('../../release/libcuda.so', join(root, 'nvidia/lib64/libcuda.so.1'));
  const path = [join(root, 'other'), 'relative', join(root, 'absent'), '', join(root, 'nvidia/lib64')].join(':');
  const { libraries } = (await nvidiaAccess(join(root, 'proc'), dev, path))('GPU-a');
  expect(libraries).toEqual([join(root, 'nvidia/lib64'), join(root, 'release')]);
});

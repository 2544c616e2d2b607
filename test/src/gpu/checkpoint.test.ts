// Checkpoints of CUDA processes (cuCheckpointProcess…) by the stand-in driver.
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, describe, expect, test } from '@jest/globals';
import { standIn, startStandIn } from './stand-in.js';
import type { StandIn } from './stand-in.js';
import { startMps } from './driver-client.js';

const MiB = 1024 * 1024;
const [running, locked, checkpointed] = [0, 1, 2];
const [notInitialized, illegalState, notSupported, notReady] = [3, 401, 801, 600];

/** Evaluates each line of its input, with the driver as `cuda`, and prints what comes out. */
const program = `
import ctypes, sys, threading, time
cuda = ctypes.CDLL("libcuda.so.1")
class Args(ctypes.Structure):
    _fields_ = [("timeout", ctypes.c_uint), ("rest", ctypes.c_ubyte * 60)]
def command(name, pid, timeout=0):
    return getattr(cuda, "cuCheckpointProcess" + name)(pid, ctypes.byref(Args(timeout)))
def state(pid):
    now = ctypes.c_int(-1)
    return cuda.cuCheckpointProcessGetState(pid, ctypes.byref(now)) or [now.value]
def thread(pid):
    now = ctypes.c_int(-1)
    return cuda.cuCheckpointProcessGetRestoreThreadId(pid, ctypes.byref(now)) or [now.value]
def context():
    made = ctypes.c_void_p()
    return cuda.cuDevicePrimaryCtxRetain(ctypes.byref(made), 0) or cuda.cuCtxSetCurrent(made)
def allocate(size):
    global memory
    memory = ctypes.c_uint64()
    return cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(size))
def fill(size, value, call="cuMemAlloc_v2", *more):
    global memory
    memory = ctypes.c_uint64()
    return getattr(cuda, call)(ctypes.byref(memory), ctypes.c_size_t(size), *more) or cuda.cuMemsetD8_v2(memory, value, ctypes.c_size_t(size))
def content(size):
    room = ctypes.create_string_buffer(size)
    error = cuda.cuMemcpyDtoH_v2(room, memory, ctypes.c_size_t(size))
    return error or [min(room.raw), max(room.raw)]
def free():
    left, total = ctypes.c_size_t(), ctypes.c_size_t()
    return cuda.cuMemGetInfo_v2(ctypes.byref(left), ctypes.byref(total)) or [left.value]
def busy():
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    text = b'.version 7.0\\n// gpuwhisk threads=256 blocksPerSm=8 nsPerBlock=600000000000\\n.visible .entry work() { ret; }\\n'
    return (cuda.cuModuleLoadData(ctypes.byref(module), text) or cuda.cuModuleGetFunction(ctypes.byref(function), module, b'work')
        or cuda.cuLaunchKernel(function, 8, 1, 1, 256, 1, 1, 0, None, None, None))
def look_up(name, version):
    found = ctypes.c_void_p()
    return cuda.cuGetProcAddress_v2(name.encode(), ctypes.byref(found), version, ctypes.c_ulonglong(0), None)
for line in sys.stdin:
    print(eval(line), flush=True)
`;

class Client {
  private readonly child: ChildProcess;
  private readonly answers: AsyncIterator<string>;
  private readonly ended: Promise<unknown>;

  constructor(device: StandIn, env: Record<string, string> = {}) {
    this.child = spawn('python3', ['-c', program], {
      env: { ...process.env, GPUWHISK_SIM_SOCKET: device.socket, LD_LIBRARY_PATH: standIn.folder, ...env },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    this.ended = once(this.child, 'exit');
    const lines = createInterface({ input: this.child.stdout as NodeJS.ReadableStream });
    this.answers = lines[Symbol.asyncIterator]();
  }
  get pid(): number {
    return this.child.pid as number;
  }
  async ask(expression: string): Promise<unknown> {
    this.child.stdin?.write(`${expression}\n`);
    const { value } = (await this.answers.next()) as { value: string };
    return JSON.parse(value.replaceAll('None', 'null')) as unknown;
  }
  async end(): Promise<void> {
    this.child.kill('SIGKILL');
    await this.ended;
  }
}

(existsSync(standIn.daemon) ? describe : describe.skip)('checkpoints of CUDA processes', () => {
  let device: StandIn;
  let clients: Client[] = [];

  async function start(gpus = 'h100', env: Record<string, string> = {}): Promise<{ target: Client; other: Client }> {
    device = await startStandIn(gpus, ['--context-ms', '1', '--context-mib', '100']);
    const [target, other] = [new Client(device, env), new Client(device)];
    clients = [target, other];
    expect(await target.ask('cuda.cuInit(0) or context()')).toBe(0);
    expect(await other.ask('cuda.cuInit(0) or context()')).toBe(0);
    return { target, other };
  }
  afterEach(async () => {
    await Promise.all(clients.map((client) => client.end()));
    await device.close();
  });

  test('device memory is free while the process is checkpointed, and back afterwards', async () => {
    const { target, other } = await start();
    const [before] = (await other.ask('free()')) as [number];
    expect(await target.ask(`fill(${64 * MiB}, 7)`)).toBe(0);
    const [held] = (await other.ask('free()')) as [number];
    expect(before - held).toBe(64 * MiB);
    expect(await other.ask(`command("Lock", ${target.pid}, 5000)`)).toBe(0);
    expect(await other.ask(`state(${target.pid})`)).toEqual([locked]);
    expect(await other.ask(`command("Checkpoint", ${target.pid})`)).toBe(0);
    expect(await other.ask(`state(${target.pid})`)).toEqual([checkpointed]);
    const [free] = (await other.ask('free()')) as [number];
    expect(free - held).toBe(164 * MiB); // Its context's own memory, too.
    expect(await other.ask(`command("Restore", ${target.pid})`)).toBe(0);
    expect(await other.ask('free()')).toEqual([held]);
    expect(await other.ask(`state(${target.pid})`)).toEqual([locked]);
    expect(await other.ask(`command("Unlock", ${target.pid})`)).toBe(0);
    expect(await other.ask(`state(${target.pid})`)).toEqual([running]);
    expect(await target.ask(`content(${64 * MiB})`)).toEqual([7, 7]);
    expect(await target.ask(`cuda.cuMemFree_v2(memory) or fill(${MiB}, 8) or content(${MiB})`)).toEqual([8, 8]);
  });

  test('calls of a locked process wait until it is unlocked', async () => {
    const { target, other } = await start();
    expect(await other.ask(`command("Lock", ${target.pid})`)).toBe(0);
    let answered = false;
    const call = target.ask('cuda.cuCtxSynchronize()').finally(() => (answered = true));
    expect(await other.ask(`time.sleep(0.3) or state(${target.pid})`)).toEqual([locked]);
    expect(answered).toBe(false);
    expect(await other.ask(`command("Unlock", ${target.pid})`)).toBe(0);
    expect(await call).toBe(0);
  });

  test('a command that the state does not allow is refused', async () => {
    const { target, other } = await start();
    for (const name of ['Checkpoint', 'Restore', 'Unlock'])
      expect(await other.ask(`command("${name}", ${target.pid})`)).toBe(illegalState);
    expect(await other.ask(`command("Lock", ${target.pid})`)).toBe(0);
    for (const name of ['Lock', 'Restore'])
      expect(await other.ask(`command("${name}", ${target.pid})`)).toBe(illegalState);
    expect(await other.ask(`command("Checkpoint", ${target.pid})`)).toBe(0);
    for (const name of ['Lock', 'Checkpoint', 'Unlock'])
      expect(await other.ask(`command("${name}", ${target.pid})`)).toBe(illegalState);
  });

  test('processes without CUDA, and callers without cuInit, are not initialized', async () => {
    const { target, other } = await start();
    const fresh = new Client(device);
    clients.push(fresh);
    expect(await fresh.ask(`state(${target.pid})`)).toBe(notInitialized);
    expect(await other.ask(`state(${fresh.pid})`)).toBe(notInitialized);
    expect(await other.ask('state(-1)')).toBe(1);
    const [thread] = (await other.ask(`thread(${target.pid})`)) as [number];
    expect(existsSync(`/proc/${target.pid}/task/${thread}`)).toBe(true);
    expect(await other.ask('look_up("cuCheckpointProcessLock", 12080)')).toBe(0);
    expect(await other.ask('look_up("cuCheckpointProcessLock", 12070)')).toBe(500);
  });

  test('a lock that comes too late leaves the process running', async () => {
    const { target, other } = await start();
    expect(await target.ask('busy()')).toBe(0); // For minutes.
    expect(await other.ask(`command("Lock", ${target.pid}, 100)`)).toBe(notReady);
    expect(await other.ask(`state(${target.pid})`)).toEqual([running]);
  });

  test('a client of MPS is not supported', async () => {
    const { target, other } = await start();
    expect(await other.ask(`command("Lock", ${target.pid})`)).toBe(0);
    const mps = await startMps(device.socket, join(device.folder, 'mps'));
    const client = new Client(device, mps.env);
    clients.push(client);
    try {
      expect(await client.ask('cuda.cuInit(0) or context()')).toBe(0);
      expect(await other.ask(`command("Lock", ${client.pid})`)).toBe(notSupported);
    } finally {
      await client.end();
      await mps.end();
    }
  });

  test('managed memory cannot be saved, and the process goes on', async () => {
    const { target, other } = await start();
    expect(await target.ask(`fill(${MiB}, 5, "cuMemAllocManaged", 1)`)).toBe(0);
    expect(await other.ask(`command("Lock", ${target.pid})`)).toBe(0);
    expect(await other.ask(`command("Checkpoint", ${target.pid})`)).toBe(notSupported);
    expect(await other.ask(`command("Unlock", ${target.pid})`)).toBe(0);
    expect(await target.ask(`content(${MiB})`)).toEqual([5, 5]);
  });

  test('a restore without enough free memory fails, and can be repeated', async () => {
    const { target, other } = await start();
    expect(await target.ask(`allocate(${1024 * MiB})`)).toBe(0);
    expect(await other.ask(`command("Lock", ${target.pid}) or command("Checkpoint", ${target.pid})`)).toBe(0);
    expect(await other.ask(`allocate(free()[0] - ${512 * MiB})`)).toBe(0);
    expect(await other.ask(`command("Restore", ${target.pid})`)).toBe(2);
    expect(await other.ask(`state(${target.pid})`)).toEqual([checkpointed]);
    expect(await other.ask('cuda.cuMemFree_v2(memory)')).toBe(0);
    expect(await other.ask(`command("Restore", ${target.pid}) or command("Unlock", ${target.pid})`)).toBe(0);
    expect(await target.ask('content(4096)')).toEqual([0, 0]);
  });
});

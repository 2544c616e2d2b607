import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { standIn } from './stand-in.js';
import type { StandIn } from './stand-in.js';

/**
 * Makes a context on its first visible device, then answers commands: `sms` with the number of available SMs, `sync`
 * with the result of cuCtxSynchronize, `free` with the free and total bytes, `alloc BYTES` with the result of
 * cuMemAlloc. `next` makes a context on the next device, which later commands use, and answers with the result of
 * cuCtxCreate. `busy BLOCKS` launches one kernel of eight blocks an SM that runs for minutes.
 */
const program = `
import ctypes, os, sys
cuda = ctypes.CDLL('libcuda.so.1')
def check(what, result):
    if result != 0:
        print('failed', what, result, flush=True)
        sys.exit(1)
check('cuInit', cuda.cuInit(0))
device, context = ctypes.c_int(), ctypes.c_void_p()
check('cuDeviceGet', cuda.cuDeviceGet(ctypes.byref(device), 0))
check('cuCtxCreate', cuda.cuCtxCreate_v2(ctypes.byref(context), 0, device))
print('ready', flush=True)
for line in sys.stdin:
    words = line.split()
    if words[0] == 'sms':
        count = ctypes.c_int()
        check('cuDeviceGetAttribute', cuda.cuDeviceGetAttribute(ctypes.byref(count), 16, device))
        print(count.value, flush=True)
    elif words[0] == 'sync':
        print(cuda.cuCtxSynchronize(), flush=True)
    elif words[0] == 'free':
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        check('cuMemGetInfo', cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)))
        print(free.value, total.value, flush=True)
    elif words[0] == 'next':
        device = ctypes.c_int(device.value + 1)
        print(cuda.cuCtxCreate_v2(ctypes.byref(context), 0, device), flush=True)
    elif words[0] == 'alloc':
        pointer = ctypes.c_uint64()
        print(cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(int(words[1]))), flush=True)
    elif words[0] == 'busy':
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        text = b'.version 7.0\\n// gpuwhisk threads=256 blocksPerSm=8 nsPerBlock=600000000000\\n.visible .entry work() { ret; }\\n'
        check('cuModuleLoadData', cuda.cuModuleLoadData(ctypes.byref(module), text))
        check('cuModuleGetFunction', cuda.cuModuleGetFunction(ctypes.byref(function), module, b'work'))
        print(cuda.cuLaunchKernel(function, int(words[1]), 1, 1, 256, 1, 1, 0, None, None, None), flush=True)
`;

/** A program of the driver API, with a context on one device of the stand-in. */
export interface CudaClient {
  pid: number;
  /** Sends a command (see the program) and resolves with the numbers of the answer. */
  ask(command: string): Promise<number[]>;
  /** Ends the process; resolves when it has ended. */
  end(): Promise<void>;
}

/**
 * Starts a client with `env` on top of the variables that find the stand-in. Rejects with CUDA's error if the client
 * gets no context.
 */
export async function startCudaClient(
  machine: Pick<StandIn, 'socket'>,
  env: Record<string, string>,
): Promise<CudaClient> {
  const child = spawn('python3', ['-c', program], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { PATH: process.env.PATH, LD_LIBRARY_PATH: standIn.folder, GPUWHISK_SIM_SOCKET: machine.socket, ...env },
  });
  const ended = new Promise((resolve) => child.once('close', resolve));
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  const line = async (): Promise<string> => {
    const { done, value } = await lines.next();
    if (done) throw new Error('The CUDA client has ended.');
    return value;
  };
  const end = async (): Promise<void> => {
    child.kill('SIGKILL');
    await ended;
  };
  const first = await line();
  if (first !== 'ready') {
    await end();
    throw new Error(first);
  }
  return {
    pid: child.pid ?? 0,
    async ask(command) {
      child.stdin.write(`${command}\n`);
      return (await line()).split(' ').map(Number);
    },
    end,
  };
}

import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { until } from '@gpuwhisk/common/testing/until';
import { runProgram } from '@gpuwhisk/invoker/host/programs';
import { controlStandIn, startDriverClient, startMps } from './driver-client.js';
import type { DriverClient, MpsDaemon } from './driver-client.js';
import { standIn, startStandIn } from './stand-in.js';
import type { StandIn } from './stand-in.js';

const onThisMachine = existsSync(standIn.daemon) ? describe : describe.skip;
const MiB = 1024 * 1024;
/** Says hello 20 times, each time with a second request whose number of open files is the second argument. */
const senderOfFiles = `
import array, os, socket, struct, sys
path, count = sys.argv[1], int(sys.argv[2])
for _ in range(20):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(10)
    s.connect(path)
    s.send(struct.pack('=IIiI', 1, 1, 0, 8) + struct.pack('=II', 1, 0))
    s.recv(65536)
    files = array.array('i', [os.open('/dev/null', os.O_RDONLY) for _ in range(count)])
    s.sendmsg([struct.pack('=IIiI', 3, 2, 0, 20) + bytes(20)], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, files)])
    print(len(s.recv(65536)) > 0)
    for file in files: os.close(file)
`;
/** Says hello and requests the operation whose number is the second argument; prints the status. */
const senderOfOperation = `
import socket, struct, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.settimeout(10)
s.connect(sys.argv[1])
s.send(struct.pack('=IIiI', 1, 1, 0, 8) + struct.pack('=II', 1, 0))
s.recv(65536)
s.send(struct.pack('=IIiI', int(sys.argv[2]), 2, 0, 0))
print(struct.unpack('=IIiI', s.recv(65536)[:16])[2])
`;
const quick = ['--context-ms', '2', '--module-ms', '0.1', '--first-launch-ms', '0.01'];

onThisMachine('the stand-in driver', () => {
  let sim: StandIn;
  let clients: DriverClient[];
  let daemons: MpsDaemon[];

  beforeEach(async () => {
    sim = await startStandIn('a100-40x2,h100', [...quick, '--context-mib', '300']);
    clients = [];
    daemons = [];
  });
  afterEach(async () => {
    await Promise.all(clients.map((client) => client.end()));
    await Promise.all(daemons.map((daemon) => daemon.end()));
    await sim.close();
  });

  const client = (env: Record<string, string> = {}): DriverClient => {
    const started = startDriverClient(sim.socket, env);
    clients.push(started);
    return started;
  };
  /** A client with a context on its first visible device. */
  const ready = async (env: Record<string, string> = {}): Promise<DriverClient> => {
    const started = client(env);
    expect((await started.tell('context'))[0]).toBe('0');
    return started;
  };
  const mps = async (options: Parameters<typeof startMps>[2] = {}): Promise<Record<string, string>> => {
    const daemon = await startMps(sim.socket, join(sim.folder, `mps-${daemons.length}`), options);
    daemons.push(daemon);
    return daemon.env;
  };
  const share = (env: Record<string, string>, percent: number): Record<string, string> => ({
    ...env,
    CUDA_MPS_ACTIVE_THREAD_PERCENTAGE: String(percent),
  });
  /** Device milliseconds of `count` kernels that fill an A100, of a millisecond each. */
  const runMs = async (on: DriverClient, count: number): Promise<number> => {
    const [result, ms] = await on.tell(`run ${count} 864 1000000 0`);
    expect(result).toBe('0');
    return Number(ms);
  };
  const status = async (device: number): Promise<{ usedBytes: number; contexts: number; processes: object[] }> =>
    JSON.parse(await controlStandIn(sim.socket, 'status', device)) as never;

  test.each(['vecadd 100000', 'saxpy 1000', 'matmul 96', 'graph 5'])('computes %s', async (command) => {
    expect(await (await ready()).tell(command)).toEqual(['0', 'right']);
  });

  test('takes the time that kernels declare: of SMs, or of memory where that takes longer', async () => {
    const one = await ready();
    expect(await runMs(one, 20)).toBeCloseTo(20, 0);
    const [, ms] = await one.tell('run 10 864 1000 3000000');
    // 25.92 GB at 1555 GB/s
    expect(Number(ms)).toBeCloseTo(16.67, 0);
  });

  test('counts memory exactly, in pieces of 512 bytes, and refuses more than there is with error 2', async () => {
    const one = await ready();
    const free = async (): Promise<number> => Number((await one.tell('info'))[1]);
    const before = await free();
    expect(before).toBe((40 * 1024 - 300) * MiB);
    expect(await one.tell('alloc 1000000')).toEqual(['0', '0']);
    expect(await one.tell('alloc 1')).toEqual(['0', '1']);
    expect(before - (await free())).toBe(1000448 + 512);
    expect((await one.tell(`alloc ${before}`))[0]).toBe('2');
    expect((await one.tell('free 0'))[0]).toBe('0');
    expect(before - (await free())).toBe(512);
    expect((await status(0)).usedBytes).toBe(300 * MiB + 512);
    await one.end();
    expect((await status(0)).usedBytes).toBe(0);
  });

  test('gives one process nothing of what another has freed', async () => {
    const first = await ready();
    const second = await ready();
    expect((await first.tell(`alloc ${39 * 1024 * MiB}`))[0]).toBe('0');
    expect((await second.tell(`alloc ${1024 * MiB}`))[0]).toBe('2');
    await first.end();
    expect((await second.tell(`alloc ${1024 * MiB}`))[0]).toBe('0');
  });

  test.each([4096, 8 * MiB])('gives up what was made since a mark, and zeroes %d bytes of it', async (bytes) => {
    const one = await ready();
    expect(await one.tell('vecadd 100')).toEqual(['0', 'right']);
    expect(await one.tell('alloc 5000')).toEqual(['0', '0']);
    expect(await one.tell('mark')).toEqual(['0']);
    const before = await one.tell('info');
    expect(await one.tell(`plant ${bytes}`)).toEqual(['0']);
    expect(await one.tell(`look ${bytes}`)).toEqual(['0', 'dirty']); // A real device shows earlier data, too.
    for (let round = 0; round < 3; round += 1) {
      expect(await one.tell('alloc 3000000')).toEqual(['0', String(round + 1)]);
      expect(await one.tell('graph 3')).toEqual(['0', 'right']);
      expect(await one.tell('reset')).toEqual(['0']);
      expect(await one.tell('info')).toEqual(before);
    }
    expect(await one.tell(`look ${bytes}`)).toEqual(['0', 'clean']);
    expect(await (await ready()).tell(`look ${bytes}`)).toEqual(['0', 'clean']);
    // The reset cannot restore a freed allocation that existed before the mark.
    expect(await one.tell('free 0')).toEqual(['0']);
    expect(await one.tell('reset')).toEqual(['709']);
  });

  test.each([
    ['cuMemAlloc 12000 0', ['0', '0', 'cuMemAlloc_v2']],
    ['cuCtxCreate 11000 0', ['0', '0', 'cuCtxCreate_v2']],
    ['cuCtxCreate 13000 0', ['0', '0', 'cuCtxCreate_v4']],
    ['cuLaunchKernel 12000 0', ['0', '0', 'cuLaunchKernel']],
    ['cuLaunchKernel 12000 2', ['0', '0', 'cuLaunchKernel_ptsz']],
    ['cuMemcpyHtoD 12000 2', ['0', '0', 'cuMemcpyHtoD_v2_ptds']],
    ['cuGetProcAddress 12000 0', ['0', '0', 'cuGetProcAddress_v2']],
    ['cuLaunchKernelEx 11000 0', ['500', '2', '-']],
    ['cuNothing 13000 0', ['500', '1', '-']],
  ])('finds the entry point %s', async (question, answer) => {
    expect(await client().tell(`proc ${question}`)).toEqual(answer);
  });

  test('gives back what a killed process had', async () => {
    const one = await ready();
    expect((await one.tell(`alloc ${1024 * MiB}`))[0]).toBe('0');
    const running = one.tell('run 1000 864 10000000 0');
    process.kill(one.pid, 'SIGKILL');
    await expect(running).rejects.toThrow('ended');
    await one.end();
    expect(await status(0)).toMatchObject({ usedBytes: 0, contexts: 0, processes: [] });
    expect(await (await ready()).tell('vecadd 100')).toEqual(['0', 'right']);
  });

  test('does not work in a child of fork', async () => {
    const one = await ready();
    expect(await one.tell('fork')).toEqual(['3']);
    expect(await one.tell('vecadd 100')).toEqual(['0', 'right']);
  });

  test('says to a runtime library that is linked statically that it lacks the private tables that this asks for', async () => {
    // The first call of such a program after cuInit; the program ends after this error.
    const asks = `import ctypes
cuda = ctypes.CDLL('libcuda.so.1')
table = ctypes.c_void_p(1)
print(cuda.cuInit(0), cuda.cuGetExportTable(ctypes.byref(table), bytes(16)), table.value)`;
    const env = { PATH: process.env.PATH, LD_LIBRARY_PATH: standIn.folder, GPUWHISK_SIM_SOCKET: sim.socket };
    expect(await runProgram('python3', ['-c', asks], { timeoutMs: 60_000, env })).toBe('0 500 None\n');
  });

  test('has every call fail at once when its daemon is gone', async () => {
    const one = await ready();
    const running = one.tell('run 1000 864 10000000 0');
    await sim.close();
    expect((await running)[0]).toBe('999');
    expect(await one.tell('sync')).toEqual(['999']);
  });

  test('shows what CUDA_VISIBLE_DEVICES says', async () => {
    expect(await client({ CUDA_VISIBLE_DEVICES: '2' }).tell('context')).toEqual(['0', '132']);
    expect(await client({ CUDA_VISIBLE_DEVICES: '' }).tell('context')).toEqual(['100', '0']);
    expect(await client({ CUDA_VISIBLE_DEVICES: '7' }).tell('context')).toEqual(['100', '0']);
    expect(await client({ GPUWHISK_SIM_SOCKET: '/nowhere' }).tell('context')).toEqual(['46', '0']);
  });

  test('counts what each process used', async () => {
    const one = await ready();
    await runMs(one, 3);
    const { processes } = await status(0);
    expect(processes).toEqual([
      expect.objectContaining({ pid: one.pid, launches: 5, blocks: 3 * 864 + 2, mps: false, percent: 100 }),
    ]);
  });

  describe('with MPS', () => {
    test('holds clients to their shares', async () => {
      const env = await mps();
      const [half, other] = [await ready(share(env, 50)), await ready(share(env, 50))];
      const together = await Promise.all([runMs(half, 100), runMs(other, 100)]);
      for (const ms of together) expect(ms / 100).toBeCloseTo(2, 1);
      const [small, large] = [await ready(share(env, 30)), await ready(share(env, 70))];
      const [smallMs, largeMs] = await Promise.all([runMs(small, 30), runMs(large, 70)]);
      // floor(0.3 * 108) and floor(0.7 * 108) SMs
      expect(smallMs / 30).toBeCloseTo(108 / 32, 1);
      expect(largeMs / 70).toBeCloseTo(108 / 75, 1);
    });

    test('only lowers what the daemon gives', async () => {
      const env = await mps({ percent: 40, limitMiB: 2048 });
      expect((await client(share(env, 80)).tell('context'))[1]).toBe('43');
      const lower = client({ ...share(env, 20), CUDA_MPS_PINNED_DEVICE_MEM_LIMIT: '0=1G' });
      expect((await lower.tell('context'))[1]).toBe('21');
      expect(await lower.tell('info')).toEqual(['0', String(1024 * MiB), String(40 * 1024 * MiB)]);
    });

    test.each([
      ['0=1G', 1024],
      ['0=512M', 512],
      ['0=1G,7=1G', 40 * 1024 - 300],
    ])('takes the memory limit %s', async (limit, freeMiB) => {
      const one = await ready({ ...(await mps()), CUDA_MPS_PINNED_DEVICE_MEM_LIMIT: limit });
      expect(Number((await one.tell('info'))[1])).toBe(freeMiB * MiB);
      expect((await one.tell(`alloc ${freeMiB * MiB}`))[0]).toBe('0');
      expect((await one.tell('alloc 1'))[0]).toBe('2');
    });

    test('leaves out who names another pipe directory, without a word', async () => {
      const env = share(await mps(), 10);
      expect((await client(env).tell('context'))[1]).toBe('10');
      const escaped = client({ ...env, CUDA_MPS_PIPE_DIRECTORY: join(sim.folder, 'misspelt') });
      expect((await escaped.tell('context'))[1]).toBe('108');
    });

    test('takes 48 clients and refuses the 49th with 808', async () => {
      const env = { ...(await mps()), CUDA_VISIBLE_DEVICES: '0' };
      const results: string[] = [];
      for (let i = 0; i < 49; i += 1) results.push((await client(env).tell('context'))[0] as string);
      expect(results).toEqual([...Array<string>(48).fill('0'), '808']);
    });

    test('lets a fault hit all clients of the server, and newcomers in when they are gone', async () => {
      const env = await mps();
      const [faulty, neighbour] = [await ready(env), await ready(env)];
      const outside = await ready();
      expect((await faulty.tell('bad 100'))[0]).toBe('700');
      // The faulty client gets the error first.
      await until(async () => (await neighbour.tell('sync'))[0] === '700');
      expect(await outside.tell('vecadd 100')).toEqual(['0', 'right']);
      expect((await client(env).tell('context'))[0]).toBe('807');
      await Promise.all([faulty.end(), neighbour.end()]);
      expect((await client(env).tell('context'))[0]).toBe('0');
    });

    test('ends clients with their daemon', async () => {
      const env = await mps();
      const one = await ready(env);
      await daemons.pop()?.end();
      // The driver learns of the daemon's end a moment after this process does.
      await until(async () => (await one.tell('sync'))[0] === '807');
    });
  });

  describe('cut by MIG', () => {
    test('gives a program one slice, with its SMs and memory, and keeps slices apart', async () => {
      const small = (await controlStandIn(sim.socket, 'cut', 0, 19)).trim();
      const large = (await controlStandIn(sim.socket, 'cut', 0, 9)).trim();
      const on = (uuid: string) => ({ CUDA_VISIBLE_DEVICES: uuid });
      const [one, other] = [client(on(small)), client(on(large))];
      expect(await one.tell('context')).toEqual(['0', '14']);
      expect(await other.tell('context')).toEqual(['0', '42']);
      expect(Number((await one.tell('info'))[2])).toBe(4864 * MiB);
      const [smallMs, largeMs] = await Promise.all([runMs(one, 4), runMs(other, 12)]);
      expect(smallMs / 4).toBeCloseTo(108 / 14, 1);
      expect(largeMs / 12).toBeCloseTo(108 / 42, 1);
    });

    test('refuses to cut what is in use', async () => {
      await ready();
      await expect(controlStandIn(sim.socket, 'cut', 0, 9)).rejects.toThrow('in use');
    });
  });

  test.each([1, 2, 5])('keeps none of %d files that come with a request', async (count) => {
    const open = () => readdirSync(`/proc/${sim.pid}/fd`).length;
    const before = open();
    const stdout = await runProgram('python3', ['-c', senderOfFiles, sim.socket, String(count)], {
      timeoutMs: 20_000,
    });
    // The daemon closes the connection if a request has more than one file.
    expect(stdout.trim().split('\n')).toEqual(Array.from({ length: 20 }, () => (count === 1 ? 'True' : 'False')));
    await until(() => open() <= before);
  });

  // Numbers outside the enumeration.
  test.each([0, 0x8d0000])('answers operation %d, which there is none of', async (operation) => {
    const args = ['-c', senderOfOperation, sim.socket, String(operation)];
    expect(await runProgram('python3', args, { timeoutMs: 20_000 })).toBe('1\n');
  });

  test('a device that is lost takes its clients with it', async () => {
    const one = await ready();
    const other = await ready({ CUDA_VISIBLE_DEVICES: '1' });
    await sim.fault(0, 'lost');
    expect(await one.tell('sync')).toEqual(['999']);
    expect(await other.tell('sync')).toEqual(['0']);
    await sim.fault(0, 'recover');
    expect((await client().tell('context'))[0]).toBe('0');
  });
});

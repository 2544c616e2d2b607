import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { Device, ShareClass } from '@gpuwhisk/common/gpu';
import type { ShareEnforcer } from '@gpuwhisk/invoker/gpu-agent/enforcers/share-enforcer';
import { mpsClientLimit } from '@gpuwhisk/common/gpu';
import { until } from '@gpuwhisk/common/testing/until';
import { shareOf } from '../contract/share-enforcer.js';
import { startCudaClient } from './cuda-client.js';
import type { CudaClient } from './cuda-client.js';
import { describeOnStandIn, startMpsHome } from './mps-home.js';
import type { MpsHome } from './mps-home.js';
import { standIn } from './stand-in.js';

const shareError = { name: 'ShareError' };

describeOnStandIn('MPS', () => {
  let home: MpsHome;
  let enforcer: ShareEnforcer;
  let device: Device;
  const clients: CudaClient[] = [];
  const others: ShareEnforcer[] = [];
  beforeEach(async () => {
    home = await startMpsHome();
    ({ enforcer, device } = home);
  });
  afterEach(async () => {
    await Promise.all(clients.splice(0).map((client) => client.end()));
    for (const other of others.splice(0)) await other.close();
    await home.close();
  });

  const startWith = async (env: Record<string, string>): Promise<CudaClient> => {
    const client = await startCudaClient(home.machine, env);
    clients.push(client);
    return client;
  };
  const start = async (shareClass: ShareClass, memoryMiB?: number, slice?: string): Promise<CudaClient> => {
    const { env } = await enforcer.settings(device, shareOf(shareClass, memoryMiB), slice);
    return startWith(env);
  };
  const pipe = async (): Promise<string> => {
    const { env } = await enforcer.settings(device, shareOf(10));
    return env.CUDA_MPS_PIPE_DIRECTORY ?? '';
  };
  const command = async (text: string): Promise<string> =>
    home.control(text, { CUDA_MPS_PIPE_DIRECTORY: await pipe() });
  const another = (...options: Parameters<MpsHome['makeEnforcer']>): ShareEnforcer => {
    const made = home.makeEnforcer(...options);
    others.push(made);
    return made;
  };

  test('a share is what its client sees of the SMs, and nothing changes it later', async () => {
    await enforcer.open(device);
    const thirty = await start(30);
    const all = await start(100);
    expect(await thirty.ask('sms')).toEqual([32]);
    expect(await all.ask('sms')).toEqual([108]);
    await command('set_default_active_thread_percentage 50'); // Applies to the next server.
    expect(await (await start(100)).ask('sms')).toEqual([108]);
    await command(`set_active_thread_percentage ${(await command('get_server_list')).trim()} 50`);
    expect(await all.ask('sms')).toEqual([108]);
    expect(await (await start(100)).ask('sms')).toEqual([54]);
  });

  test('a client that clears its variables gets no more than the ceiling on the server', async () => {
    await enforcer.open(device);
    const hold = (percent: number, memoryMiB: number) =>
      enforcer.limitClients?.(device.uuid, undefined, { percent, memoryMiB });
    const freeMiB = async (client: CudaClient): Promise<number> => ((await client.ask('free'))[0] ?? 0) / 2 ** 20;
    const unbounded = { CUDA_VISIBLE_DEVICES: device.uuid, CUDA_MPS_PIPE_DIRECTORY: await pipe() };
    await hold(30, 1024); // The server does not run yet.
    const first = await startWith(unbounded);
    expect(await first.ask('sms')).toEqual([32]);
    expect(await freeMiB(first)).toBeLessThanOrEqual(1024);
    await hold(70, 4096);
    const second = await startWith({ ...unbounded, CUDA_MPS_ACTIVE_THREAD_PERCENTAGE: '100' });
    expect(await second.ask('sms')).toEqual([75]);
    expect(await freeMiB(second)).toBeGreaterThan(2048);
    expect(await freeMiB(second)).toBeLessThanOrEqual(4096);
    expect(await first.ask('sms')).toEqual([32]);
    expect(await (await start(10)).ask('sms')).toEqual([10]); // A client's own value can only lower its share.
    await hold(10, 1024);
    expect(await (await startWith(unbounded)).ask('sms')).toEqual([10]);
  });

  test('another user cannot command the daemon, which root takes to try', async () => {
    await enforcer.open(device);
    const directory = await pipe();
    if (process.getuid?.() !== 0) return;
    for (const path of [home.machine.folder, directory, join(directory, 'control')]) chmodSync(path, 0o777);
    const answerTo = (uid: number): string =>
      spawnSync(standIn.mpsControl, [], {
        uid,
        env: { CUDA_MPS_PIPE_DIRECTORY: directory },
        input: 'get_default_active_thread_percentage\n',
        encoding: 'utf8',
      }).stdout;
    expect(answerTo(0)).toBe('100.0\n');
    expect(answerTo(65_534)).toContain('Permission denied');
  });

  test('a second daemon gets no client onto a device that is exclusive', async () => {
    await enforcer.open(device);
    const first = await start(10);
    const own = join(home.machine.folder, 'own');
    const env = { CUDA_VISIBLE_DEVICES: device.uuid, CUDA_MPS_PIPE_DIRECTORY: own, CUDA_MPS_LOG_DIRECTORY: own };
    await home.control('', env, ['-d']);
    try {
      await expect(startWith(env)).rejects.toThrow(/failed cuCtxCreate/);
      expect(await first.ask('sms')).toEqual([10]);
    } finally {
      await home.control('quit', env);
    }
  });

  test('a memory limit is what its client sees free', async () => {
    await enforcer.open(device);
    const client = await start(50, 4096);
    const [free = 0] = await client.ask('free');
    expect(free).toBeLessThanOrEqual(4096 * 1024 * 1024);
    expect(free).toBeGreaterThan(3072 * 1024 * 1024);
  });

  test('a process that misses its daemon is not confirmed, and has the whole device where that is not exclusive', async () => {
    await enforcer.open(device);
    const { env } = await enforcer.settings(device, shareOf(10));
    const missing = { ...env, CUDA_MPS_PIPE_DIRECTORY: join(home.machine.folder, 'misspelt') };
    const inside = await start(10);
    await expect(startWith(missing)).rejects.toThrow(/failed cuCtxCreate/);
    await inside.end();
    await home.driver.setExclusive(device.uuid, false);
    const escaped = await startWith(missing);
    expect(await escaped.ask('sms')).toEqual([108]);
    await expect(enforcer.confirm({ pid: escaped.pid, device: device.uuid })).rejects.toMatchObject(shareError);
    expect(await enforcer.clients(device.uuid)).toEqual([]);
  });

  test('the device is exclusive while it is open', async () => {
    await enforcer.open(device);
    expect((await home.driver.devices())[0]?.mode).toBe('exclusive');
    await enforcer.close();
    expect((await home.driver.devices())[0]?.mode).toBe('timeslice');
  });

  test('the mode that an operator has set stays, and is as it was where MPS cannot be started', async () => {
    const modeNow = async () => (await home.driver.devices())[0]?.mode;
    const without = another({ control: { program: join(home.machine.folder, 'absent') } });
    await expect(without.open(device)).rejects.toMatchObject(shareError);
    expect(await modeNow()).toBe('timeslice');
    await home.driver.setExclusive(device.uuid, true);
    await enforcer.open({ ...device, mode: 'exclusive' });
    await enforcer.open({ ...device, mode: 'mps' });
    await enforcer.close();
    expect(await modeNow()).toBe('exclusive');
  });

  test('a daemon that was killed is noticed, and started again by open', async () => {
    await enforcer.open(device);
    const client = await start(50);
    const [server = 0] = (await command('get_server_list')).split('\n').map(Number);
    process.kill(server, 'SIGKILL');
    await until(async () => (await enforcer.check(device.uuid)) !== undefined);
    expect(await enforcer.check(device.uuid)).toMatch(/does not answer/);
    await until(async () => (await client.ask('sync'))[0] !== 0);
    await client.end();
    await enforcer.open(device);
    expect(await enforcer.check(device.uuid)).toBeUndefined();
    const next = await start(50);
    await enforcer.confirm({ pid: next.pid, device: device.uuid });
    expect(await next.ask('sync')).toEqual([0]);
  });

  test('a platform that starts again finds its daemon and clients', async () => {
    await enforcer.open(device);
    const client = await start(50);
    const restarted = another();
    await restarted.open(device);
    expect(await restarted.clients(device.uuid)).toEqual([{ pid: client.pid, device: device.uuid }]);
    expect(await client.ask('sync')).toEqual([0]);
  });

  test("a client's fault shuts the server to newcomers until its clients are gone", async () => {
    await enforcer.open(device);
    const [one, other] = [await start(50), await start(50)];
    await home.machine.fault(0, 'client', 31, one.pid);
    await until(async () => (await other.ask('sync'))[0] === 700);
    expect(await enforcer.check(device.uuid)).toMatch(/accepts no client/);
    await expect(start(50)).rejects.toThrow(/failed cuCtxCreate/);
    await Promise.all([one.end(), other.end()]);
    await until(async () => (await enforcer.check(device.uuid)) === undefined);
    expect(await (await start(50)).ask('sync')).toEqual([0]);
  });

  test('a client too many is refused before it starts', async () => {
    await home.driver.setMig(device.uuid, true);
    const slice = await home.driver.createSlice(device.uuid, '1g.5gb');
    [device] = (await home.driver.devices()) as [Device];
    await enforcer.open(device, slice.uuid);
    const limit = Math.floor((mpsClientLimit * slice.smCount) / device.smCount);
    for (let count = 0; count < limit; count++) await start(10, 64, slice.uuid);
    await expect(enforcer.settings(device, shareOf(10), slice.uuid)).rejects.toThrow(/no more than 6/);
  });

  test('a slice has a daemon of its own', async () => {
    await home.driver.setMig(device.uuid, true);
    const two = await home.driver.createSlice(device.uuid, '2g.10gb');
    const three = await home.driver.createSlice(device.uuid, '3g.20gb');
    [device] = (await home.driver.devices()) as [Device];
    for (const { uuid } of [two, three]) await enforcer.open(device, uuid);
    const inTwo = await start(50, 1024, two.uuid);
    const inThree = await start(50, 1024, three.uuid);
    expect(await inTwo.ask('sms')).toEqual([14]);
    expect(await inThree.ask('sms')).toEqual([21]);
    expect(await enforcer.clients(device.uuid, two.uuid)).toEqual([
      { pid: inTwo.pid, device: device.uuid, slice: two.uuid },
    ]);
    await enforcer.confirm({ pid: inThree.pid, device: device.uuid, slice: three.uuid });
    const elsewhere = { pid: inThree.pid, device: device.uuid, slice: two.uuid };
    await expect(enforcer.confirm(elsewhere)).rejects.toMatchObject(shareError);
  });

  test('a control program that knows nothing of several users serves one at a time', async () => {
    const program = join(home.machine.folder, 'old-control');
    const script = `#!/bin/sh
case "$*" in *multiuser*) echo 'Unknown option' >&2; exit 1;; esac
exec '${standIn.mpsControl}' "$@"
`;
    writeFileSync(program, script, { mode: 0o755 });
    enforcer = another({ control: { program, env: { GPUWHISK_SIM_SOCKET: home.machine.socket } } });
    await enforcer.open(device);
    const client = await start(50);
    await enforcer.confirm({ pid: client.pid, device: device.uuid });
    await client.end();
  });

  test('a path too long for a socket is refused', async () => {
    const deep = another({ folder: join(home.machine.folder, 'x'.repeat(100)) });
    await expect(deep.open(device)).rejects.toThrow(/too long for a socket/);
  });

  test('a machine without the control program is told so', async () => {
    const without = another({ control: { program: join(home.machine.folder, 'absent') } });
    await expect(without.open(device)).rejects.toMatchObject(shareError);
  });

  describe('on a real device that is not managed', () => {
    const foreign = (): string => join(home.machine.folder, 'foreign');
    /** The device as the driver of real hardware lists it. */
    const real = (): Device => ({ ...device, simulated: false });

    test('the daemon that somebody else runs is used, and left to run', async () => {
      const env = { CUDA_MPS_PIPE_DIRECTORY: foreign(), CUDA_MPS_LOG_DIRECTORY: foreign() };
      await home.control('', { ...env, CUDA_VISIBLE_DEVICES: device.uuid }, ['-d']);
      await enforcer.open(real());
      expect(await pipe()).toBe(foreign());
      const client = await start(30);
      await enforcer.confirm({ pid: client.pid, device: device.uuid });
      expect((await home.driver.devices())[0]?.mode).toBe('timeslice');
      await client.end();
      await enforcer.close();
      expect(await home.control('get_server_list', env)).toMatch(/^\d*\n?$/);
      await home.control('quit', env);
    });

    test('nothing is started where there is none', async () => {
      await expect(enforcer.open(real())).rejects.toThrow(/gpu\.manage\.mps is off/);
      expect(existsSync(join(home.machine.folder, 'mps'))).toBe(false);
    });
  });
});

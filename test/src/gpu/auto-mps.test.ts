import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { Device } from '@gpuwhisk/common/gpu';
import { createAutoMps } from '@gpuwhisk/invoker/gpu-agent/enforcers/auto-mps';
import type { ShareEnforcer } from '@gpuwhisk/invoker/gpu-agent/enforcers/share-enforcer';
import { shareOf } from '../contract/share-enforcer.js';
import { startCudaClient } from './cuda-client.js';
import type { CudaClient } from './cuda-client.js';
import { describeOnStandIn, startMpsHome } from './mps-home.js';
import type { MpsHome } from './mps-home.js';
import { standIn } from './stand-in.js';

const MiB = 1024 * 1024;

describeOnStandIn('MPS, automatically', () => {
  let home: MpsHome;
  let device: Device;
  const clients: CudaClient[] = [];
  const enforcers: ShareEnforcer[] = [];
  beforeEach(async () => {
    home = await startMpsHome();
    ({ device } = home);
  });
  afterEach(async () => {
    await Promise.all(clients.splice(0).map((client) => client.end()));
    for (const one of enforcers.splice(0)) await one.close();
    await home.close();
  });

  const kept = <One extends ShareEnforcer>(one: One): One => {
    enforcers.push(one);
    return one;
  };
  const auto = (options: Parameters<MpsHome['makeEnforcer']>[0] = {}, operators?: ShareEnforcer): ShareEnforcer =>
    kept(
      createAutoMps({
        driver: home.driver,
        own: home.makeEnforcer({ manage: true, setsMode: false, ...options }),
        ...(operators && { operators }),
        env: { GPUWHISK_SIM_SOCKET: home.machine.socket, LD_LIBRARY_PATH: standIn.folder },
        idleWithinMs: 600,
      }),
    );
  const start = async (env: Record<string, string>): Promise<CudaClient> => {
    const client = await startCudaClient(home.machine, env);
    clients.push(client);
    return client;
  };
  /** Opens the device and starts a client of 30 %; resolves with the SMs that the client sees. */
  const smsUnder = async (enforcer: ShareEnforcer): Promise<number | undefined> => {
    await enforcer.open(device);
    const client = await start((await enforcer.settings(device, shareOf(30))).env);
    await enforcer.confirm({ pid: client.pid, device: device.uuid });
    return (await client.ask('sms'))[0];
  };
  const modeNow = async () => (await home.driver.devices())[0]?.mode;

  test('is started on an idle device, whose compute mode stays', async () => {
    const enforcer = auto();
    expect(await smsUnder(enforcer)).toBe(32);
    expect(await modeNow()).toBe('timeslice');
    expect(enforcer.sharing?.(device.uuid)).toMatchObject({ isShared: true });
  });

  test('is started on a device that an operator has made exclusive, and the mode stays', async () => {
    await home.driver.setExclusive(device.uuid, true);
    [device] = (await home.driver.devices()) as [Device];
    const enforcer = auto();
    expect(await smsUnder(enforcer)).toBe(32);
    await Promise.all(clients.splice(0).map((client) => client.end()));
    await enforcer.close();
    expect(await modeNow()).toBe('exclusive');
  });

  test.each([
    ['holds memory', [`alloc ${300 * MiB}`], /other work holds \d+ MiB of its memory/],
    ['computes', ['busy 864'], /other work/],
  ])('a device with work that %s is used in turns, and no daemon is started', async (_, commands, why) => {
    const other = await start({ CUDA_VISIBLE_DEVICES: device.uuid });
    for (const command of commands) expect(await other.ask(command)).toEqual([0]);
    const enforcer = auto();
    expect(await smsUnder(enforcer)).toBe(108);
    expect(enforcer.sharing?.(device.uuid)).toMatchObject({ isShared: false, how: expect.stringMatching(why) });
    expect(await enforcer.clients(device.uuid)).toEqual([]);
    expect(await home.makeEnforcer({ manage: true }).isServed(device)).toBe(false);
    expect((await enforcer.settings(device, shareOf(30))).env).toEqual({ CUDA_VISIBLE_DEVICES: device.uuid });
  });

  test('a daemon that does not limit the test client is ended, and processes take turns', async () => {
    const program = join(home.machine.folder, 'idle-control');
    // Answers like a control program once a daemon was started, but clients find no daemon.
    const script = `#!/bin/sh
case "$*" in *-d*) touch ${program}.up;; esac
[ -e ${program}.up ] || { echo Cannot find MPS control daemon process; exit 1; }
cat >> ${program}.said
`;
    writeFileSync(program, script, { mode: 0o755 });
    const enforcer = auto({ control: { program } });
    expect(await smsUnder(enforcer)).toBe(108);
    expect(enforcer.sharing?.(device.uuid)).toEqual(
      expect.objectContaining({ isShared: false, how: 'MPS gives a client of 50 % 108 of 108 SMs' }),
    );
    expect(readLines(`${program}.said`).at(-1)).toBe('quit');
  });

  test('without a control program processes take turns, and the reason is told', async () => {
    const enforcer = auto({ control: { program: join(home.machine.folder, 'absent') } });
    expect(await smsUnder(enforcer)).toBe(108);
    expect(enforcer.sharing?.(device.uuid)?.how).toMatch(/MPS cannot be started.*No such file/);
  });

  test("an operator's daemon comes first, and is left to run", async () => {
    const pipe = join(home.machine.folder, 'foreign');
    const env = { CUDA_MPS_PIPE_DIRECTORY: pipe, CUDA_MPS_LOG_DIRECTORY: pipe };
    await home.control('', { ...env, CUDA_VISIBLE_DEVICES: device.uuid }, ['-d']);
    device = { ...device, simulated: false }; // As the driver of real hardware lists it.
    const enforcer = auto({}, home.makeEnforcer());
    expect(await smsUnder(enforcer)).toBe(32);
    expect((await enforcer.settings(device, shareOf(30))).env).toMatchObject({ CUDA_MPS_PIPE_DIRECTORY: pipe });
    await Promise.all(clients.splice(0).map((client) => client.end()));
    await enforcer.close();
    expect(await home.control('get_server_list', env)).toMatch(/^\d*\n?$/);
    await home.control('quit', env);
  });

  test('the daemon of an earlier process is used, though its clients keep the device busy', async () => {
    const earlier = auto();
    await earlier.open(device);
    const client = await start((await earlier.settings(device, shareOf(50))).env);
    expect(await client.ask(`alloc ${1000 * MiB}`)).toEqual([0]);
    const later = auto();
    expect(await smsUnder(later)).toBe(32);
    expect(await later.clients(device.uuid)).toContainEqual({ pid: client.pid, device: device.uuid });
    expect(await client.ask('sync')).toEqual([0]);
  });

  test('a process past the daemon, and memory of no listed process, are foreign work; clients are not', async () => {
    const enforcer = auto();
    expect(await smsUnder(enforcer)).toBe(32);
    const [inside] = clients as [CudaClient];
    const past = await start({ CUDA_VISIBLE_DEVICES: device.uuid });
    const look = (pids: number[], unlistedMiB: number | undefined) =>
      enforcer.foreignWork?.(device.uuid, { others: pids.map((pid) => ({ pid })), unlistedMiB });
    expect(await look([inside.pid], undefined)).toBeUndefined();
    expect(await look([inside.pid], 100)).toBeUndefined();
    expect(await look([inside.pid, past.pid], 0)).toBe(`process ${past.pid} uses it past MPS`);
    expect(await look([inside.pid], 600)).toMatch(/^600 MiB of its memory belong to no process/);
    await expect(enforcer.giveUp?.(device.uuid, 'it has clients')).rejects.toMatchObject({ name: 'ShareError' });
    await inside.end();
    await enforcer.giveUp?.(device.uuid, 'other work came');
    expect(await smsUnder(enforcer)).toBe(108);
    expect(enforcer.sharing?.(device.uuid)).toMatchObject({ isShared: false, how: 'other work came' });
  });
});

const readLines = (path: string): string[] => readFileSync(path, 'utf8').trim().split('\n');

// Processes that use several devices together under MPS, and the remains of a killed platform.
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { Device } from '@gpuwhisk/common/gpu';
import { until } from '@gpuwhisk/common/testing/until';
import type { ClientSettings, ShareEnforcer } from '@gpuwhisk/invoker/gpu-agent/enforcers/share-enforcer';
import { shareOf } from '../contract/share-enforcer.js';
import { startCudaClient } from './cuda-client.js';
import type { CudaClient } from './cuda-client.js';
import { describeOnStandIn, startMpsHome } from './mps-home.js';
import type { MpsHome } from './mps-home.js';

const MiB = 1024 * 1024;

describeOnStandIn('several devices under MPS', () => {
  let home: MpsHome;
  let enforcer: ShareEnforcer;
  let devices: Device[];
  const clients: CudaClient[] = [];
  const others: ShareEnforcer[] = [];
  beforeEach(async () => {
    home = await startMpsHome('a100-40x3');
    ({ enforcer } = home);
    devices = await home.driver.devices();
    for (const device of devices) await enforcer.open(device);
  });
  afterEach(async () => {
    await Promise.all(clients.splice(0).map((client) => client.end()));
    for (const other of others.splice(0)) await other.close();
    await home.close();
  });

  const start = async ({ env }: ClientSettings): Promise<CudaClient> => {
    const client = await startCudaClient(home.machine, env);
    clients.push(client);
    return client;
  };
  const only = (at: number): Device => devices[at] as Device;
  const pair = (): Device[] => devices.slice(0, 2);
  const startPair = async (memoryMiB = 2048): Promise<CudaClient> =>
    start(await enforcer.gangSettings(pair(), shareOf(50, memoryMiB)));
  const modes = async (): Promise<string[]> => (await home.driver.devices()).map(({ mode }) => mode);
  const restarted = (): ShareEnforcer => {
    const made = home.makeEnforcer();
    others.push(made);
    return made;
  };
  /** Kills the daemon of a client that was started with these settings; resolves once the device shows it. */
  const killDaemon = async (at: number, { env }: ClientSettings): Promise<void> => {
    const list = await home.control('get_server_list', { CUDA_MPS_PIPE_DIRECTORY: env.CUDA_MPS_PIPE_DIRECTORY ?? '' });
    const server = Number.parseInt(list, 10);
    expect(server).toBeGreaterThan(1);
    process.kill(server, 'SIGKILL');
    await until(async () => (await enforcer.check(only(at).uuid)) !== undefined);
  };

  test('a process has its share and its cap on each', async () => {
    const client = await startPair();
    for (const at of [0, 1]) {
      if (at > 0) expect(await client.ask('next')).toEqual([0]);
      expect(await client.ask('sms')).toEqual([54]);
      expect(await client.ask(`alloc ${1500 * MiB}`)).toEqual([0]);
      expect(await client.ask(`alloc ${1500 * MiB}`)).toEqual([2]);
      await enforcer.confirm({ pid: client.pid, device: only(at).uuid });
      expect(await enforcer.clients(only(at).uuid)).toEqual([{ pid: client.pid, device: only(at).uuid }]);
    }
    expect(await client.ask('next')).not.toEqual([0]);
    expect(await enforcer.check(only(0).uuid)).toBeUndefined();
    expect(await modes()).toEqual(['exclusive', 'exclusive', 'exclusive']);
  });

  test('another of the same devices is its neighbour; one of a single device waits until they are gone', async () => {
    const [one, other] = [await startPair(), await startPair()];
    expect(await enforcer.clients(only(1).uuid)).toHaveLength(2);
    await expect(enforcer.settings(only(0), shareOf(50))).rejects.toThrow(/has clients/);
    const beside = await start(await enforcer.settings(only(2), shareOf(50)));
    const soon = enforcer.settings(only(0), shareOf(50));
    await Promise.all([one.end(), other.end()]);
    const single = await start(await soon);
    await enforcer.confirm({ pid: single.pid, device: only(0).uuid });
    expect(await start(await enforcer.settings(only(1), shareOf(30))).then((client) => client.ask('sms'))).toEqual([
      32,
    ]);
    expect(await beside.ask('sync')).toEqual([0]);
  });

  test('nothing is found wrong with a device while one daemon makes way for another', async () => {
    let done = false;
    const problems = new Set<string | undefined>();
    const looking = (async () => {
      while (!done) {
        for (const at of [0, 1]) problems.add(await enforcer.check(only(at).uuid));
        await new Promise((next) => setTimeout(next, 5));
      }
    })();
    try {
      await enforcer.gangSettings(pair(), shareOf(50));
      await enforcer.settings(only(0), shareOf(50));
    } finally {
      done = true;
    }
    await looking;
    expect([...problems]).toEqual([undefined]);
  });

  test('it does not take a device from a process that is there', async () => {
    const there = await start(await enforcer.settings(only(1), shareOf(50)));
    await expect(enforcer.gangSettings(pair(), shareOf(50))).rejects.toThrow(/has clients/);
    expect(await there.ask('sync')).toEqual([0]);
    await there.end();
    expect(await (await startPair()).ask('sync')).toEqual([0]);
  });

  test('other sets of devices come after it, and closing gives all modes back', async () => {
    await (await startPair()).end();
    const next = await start(await enforcer.gangSettings(devices.slice(1), shareOf(50)));
    expect(await next.ask('next')).toEqual([0]);
    expect(await (await start(await enforcer.settings(only(0), shareOf(50)))).ask('sync')).toEqual([0]);
    await Promise.all(clients.splice(0).map((client) => client.end()));
    await enforcer.close();
    expect(await modes()).toEqual(['timeslice', 'timeslice', 'timeslice']);
  });

  test('its daemon killed, each device has one of its own again', async () => {
    const client = await startPair();
    await killDaemon(1, await enforcer.gangSettings(pair(), shareOf(10)));
    await client.end();
    await enforcer.open(only(1));
    expect([await enforcer.check(only(0).uuid), await enforcer.check(only(1).uuid)]).toEqual([undefined, undefined]);
    expect(await (await start(await enforcer.settings(only(0), shareOf(50)))).ask('sync')).toEqual([0]);
    expect(await (await start(await enforcer.settings(only(1), shareOf(50)))).ask('sync')).toEqual([0]);
  });

  test('a platform that starts again finds its daemon, its client, and what it changed', async () => {
    const client = await startPair();
    const after = restarted();
    for (const device of await home.driver.devices()) await after.open(device);
    expect(await after.clients(only(1).uuid)).toEqual([{ pid: client.pid, device: only(1).uuid }]);
    await client.end();
    const single = await start(await after.settings(only(0), shareOf(50)));
    expect(await single.ask('sync')).toEqual([0]);
    await single.end();
    await after.close();
    expect(await modes()).toEqual(['timeslice', 'timeslice', 'timeslice']);
  });

  test('a platform that was killed with its daemons finds devices that it made exclusive itself, and gives them back', async () => {
    for (const at of [0, 2]) {
      const settings = await enforcer.settings(only(at), shareOf(50));
      const client = await start(settings);
      await killDaemon(at, settings);
      await client.end();
    }
    expect(await modes()).toEqual(['exclusive', 'exclusive', 'exclusive']);
    const after = restarted();
    for (const device of await home.driver.devices()) await after.open(device);
    expect(await (await start(await after.settings(only(0), shareOf(50)))).ask('sync')).toEqual([0]);
    await Promise.all(clients.splice(0).map((client) => client.end()));
    await after.close();
    expect(await modes()).toEqual(['timeslice', 'timeslice', 'timeslice']);
  });
});

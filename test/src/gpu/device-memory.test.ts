import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { Share } from '@gpuwhisk/common/gpu';
import { tokenLibraryPath, TokenServer } from '@gpuwhisk/invoker/gpu-agent/enforcers/tokens/token-server';
import { startDriverClient, startMps } from './driver-client.js';
import type { DriverClient, MpsDaemon } from './driver-client.js';
import { standIn, startStandIn } from './stand-in.js';
import type { StandIn } from './stand-in.js';

const onThisMachine = existsSync(standIn.daemon) ? describe : describe.skip;
const MiB = 1024 * 1024;
const contextMiB = 300;

onThisMachine('kinds of device memory, and parts of its SMs', () => {
  let sim: StandIn;
  let clients: DriverClient[];
  let daemons: MpsDaemon[];

  beforeEach(async () => {
    const quick = ['--context-ms', '2', '--module-ms', '0', '--first-launch-ms', '0'];
    sim = await startStandIn('a100-40,h100', [...quick, '--context-mib', String(contextMiB)]);
    clients = [];
    daemons = [];
  });
  afterEach(async () => {
    await Promise.all(clients.map((client) => client.end()));
    await Promise.all(daemons.map((daemon) => daemon.end()));
    await sim.close();
  });

  const ready = async (env: Record<string, string> = {}): Promise<DriverClient> => {
    const client = startDriverClient(sim.socket, env);
    clients.push(client);
    expect((await client.tell('context'))[0]).toBe('0');
    return client;
  };
  const mps = async (limitMiB = 0): Promise<Record<string, string>> => {
    const daemon = await startMps(sim.socket, join(sim.folder, 'mps'), { limitMiB });
    daemons.push(daemon);
    return daemon.env;
  };
  const freeMiB = async (client: DriverClient): Promise<number> => Number((await client.tell('info'))[1]) / MiB;
  const wholeMiB = 40 * 1024 - contextMiB;

  test('managed memory is one for host and device, and counts', async () => {
    const client = await ready();
    expect(await client.tell(`managed ${3 * MiB}`)).toEqual(['0', 'right']);
    expect(await freeMiB(client)).toBe(wholeMiB - 3);
    expect(await client.tell(`managed ${41 * 1024 * MiB}`)).toEqual(['2', 'wrong']);
    expect(await freeMiB(client)).toBe(wholeMiB - 3);
  });

  test('managed memory is refused beyond the limit of MPS', async () => {
    const client = await ready(await mps(8));
    expect(await client.tell(`managed ${6 * MiB}`)).toEqual(['0', 'right']);
    expect(await client.tell(`managed ${3 * MiB}`)).toEqual(['2', 'wrong']);
  });

  test('memory is mapped into reserved addresses, counted while it is somebody’s', async () => {
    const client = await ready();
    // Unmapped addresses are not memory; a handle may be mapped again.
    expect(await client.tell('virtual 4')).toEqual(['0', 'right', '1', '0']);
    expect(await freeMiB(client)).toBe(wholeMiB);
  });

  test('a pool gives all of it back', async () => {
    const client = await ready();
    expect(await client.tell(`pool ${5 * MiB}`)).toEqual(['0', 'right']);
    expect(await freeMiB(client)).toBe(wholeMiB);
  });

  test('another process opens memory, sees what is written, and is charged nothing', async () => {
    const [owner, other] = [await ready(), await ready()];
    const [, handle] = await owner.tell(`export ${MiB + 100}`);
    const before = await freeMiB(other);
    expect(await other.tell(`import ${handle}`)).toEqual(['0', 'right']);
    expect(await freeMiB(other)).toBe(before);
    expect(await owner.tell('exported')).toEqual(['0', 'right']);
    // The owner may use the addresses again after that.
    expect(await owner.tell(`plant ${MiB}`)).toEqual(['0']);
    expect(await other.tell('imported 2')).toEqual(['0', 'right']);
    expect((await other.tell(`import ${handle}`))[0]).toBe('400');
  });

  test('memory is opened on its own device, by another process, while its owner lives', async () => {
    const owner = await ready();
    const elsewhere = await ready({ CUDA_VISIBLE_DEVICES: '1' });
    const late = await ready();
    const [, handle] = await owner.tell('export 4096');
    expect((await owner.tell(`import ${handle}`))[0]).toBe('201');
    expect((await elsewhere.tell(`import ${handle}`))[0]).toBe('801');
    await owner.end();
    expect((await late.tell(`import ${handle}`))[0]).toBe('400');
  });

  test('every kind of it is held to the cap of the interception library', async () => {
    const server = await TokenServer.start({ folder: sim.folder, contextMiB: () => contextMiB });
    const share: Share = {
      shareClass: 100,
      smRequest: 1,
      smLimit: 1,
      memoryMiB: contextMiB + 20,
      tokens: { maxTokens: 1000 },
    };
    try {
      const client = await ready({
        LD_PRELOAD: tokenLibraryPath,
        GPUWHISK_TOKENS_SOCKET: server.socketPath,
        GPUWHISK_TOKENS_TICKET: server.ticketFor('GPU-00000000-0000-0000-0000-000000000000', share),
      });
      expect(await freeMiB(client)).toBe(20);
      expect(await client.tell('virtual 4')).toEqual(['0', 'right', '1', '0']);
      expect(await client.tell(`pool ${5 * MiB}`)).toEqual(['0', 'right']);
      expect(await freeMiB(client)).toBe(20);
      expect((await client.tell('virtual 11'))[0]).toBe('2');
      expect((await client.tell(`pool ${21 * MiB}`))[0]).toBe('2');
      expect((await client.tell(`managed ${21 * MiB}`))[0]).toBe('2');
      expect((await client.tell(`export ${21 * MiB}`))[0]).toBe('2');
    } finally {
      await Promise.all(clients.splice(0).map((client) => client.end()));
      await server.close();
    }
  });

  test('what was opened or mapped since a mark is given up', async () => {
    const [owner, other] = [await ready(), await ready()];
    const [, handle] = await owner.tell('export 4096');
    expect(await other.tell('mark')).toEqual(['0']);
    const before = await freeMiB(other);
    expect(await other.tell(`import ${handle}`)).toEqual(['0', 'right']);
    expect(await other.tell(`managed ${MiB}`)).toEqual(['0', 'right']);
    expect(await other.tell('reset')).toEqual(['0']);
    expect(await freeMiB(other)).toBe(before);
    expect(await owner.tell('exported')).toEqual(['0', 'right']);
    expect(await other.tell(`look ${MiB}`)).toEqual(['0', 'clean']);
  });

  test.each([
    [27, 28, 'a100-40'],
    [54, 54, 'a100-40'],
    [2, 4, 'a100-40'],
  ])('a green context of %d SMs has %d and takes no more', async (asked, given) => {
    const client = await ready();
    const [result, sms, ms] = await client.tell(`green ${asked} 4 864 5000000`);
    expect([result, sms]).toEqual(['0', String(given)]);
    expect(Number(ms) / ((4 * 5 * 108) / given)).toBeCloseTo(1, 1);
  });

  test('a green context on Hopper has SMs by eights, and never more than its client', async () => {
    const hopper = await ready({ CUDA_VISIBLE_DEVICES: '1' });
    expect((await hopper.tell('green 9 1 8 1000')).slice(0, 2)).toEqual(['0', '16']);
    const client = await ready({ ...(await mps()), CUDA_MPS_ACTIVE_THREAD_PERCENTAGE: '10' });
    expect((await client.tell('green 64 1 8 1000'))[0]).toBe('915');
  });
});

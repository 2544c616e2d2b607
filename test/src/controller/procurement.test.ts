// Machines from a provider that answers late, twice, wrongly or not at all, on a simulated clock.
import { beforeEach, describe, expect, test } from '@jest/globals';
import { gpuNoticeTable } from '@gpuwhisk/common/gpu-nodes';
import { gpuTable } from '@gpuwhisk/common/gpu';
import type { NodeStatus } from '@gpuwhisk/common/gpu';
import type { JsonValue } from '@gpuwhisk/common/json';
import { createLogger } from '@gpuwhisk/common/logging';
import { embeddedState } from '@gpuwhisk/common/state/embedded-state';
import { simulatedStore } from '@gpuwhisk/common/testing/simulated-store';
import { sleep } from '@gpuwhisk/common/system/clock';
import { seededRandom } from '@gpuwhisk/common/system/random';
import type { Market } from '@gpuwhisk/gpu/view/decision';
import { boundedProvider } from '@gpuwhisk/controller/gpu/procure/bounded-provider';
import { commandProvider } from '@gpuwhisk/controller/gpu/procure/command-provider';
import { emulatedProvider } from '@gpuwhisk/controller/gpu/procure/emulated-provider';
import { Procurement } from '@gpuwhisk/controller/gpu/procure/procurement';
import { NoMachineError } from '@gpuwhisk/controller/gpu/procure/provider';
import type { MachineNotice, Provider, RentedMachine } from '@gpuwhisk/controller/gpu/procure/provider';
import { webhookProvider } from '@gpuwhisk/controller/gpu/procure/webhook-provider';
import { GpuTable } from '@gpuwhisk/controller/gpu/state/gpu-table';
import { a100, nodeRow } from '../api/gpu-nodes.js';
import { SimulatedClock } from '../simulation/simulated-clock.js';

const logger = createLogger({ level: 'silent' });
const bounds = { timeoutMs: 1000, tries: 3, maxPricePerHour: 50 };

/** A clock whose wall time can be set. */
class SettableClock extends SimulatedClock {
  offsetMs = 0;
  override now(): number {
    return super.now() + this.offsetMs;
  }
}

/** A cloud with scripted answers; it keeps what is rented by request. */
class ScriptedCloud implements Provider {
  readonly rented = new Map<string, string>();
  readonly calls: string[] = [];
  announced: MachineNotice[] = [];
  answer: (request: string, market: Market) => Promise<RentedMachine> = (request) => this.rent(request);

  rent(request: string, machine = `vm-${request}`): Promise<RentedMachine> {
    this.rented.set(machine, request);
    return Promise.resolve({ machine, pricePerHour: 10 });
  }
  acquire(request: string, market: Market): Promise<RentedMachine> {
    this.calls.push(`acquire ${market}`);
    return this.answer(request, market);
  }
  release(request: string, machine?: string): Promise<void> {
    this.calls.push(`release ${machine ?? 'any'}`);
    for (const [name, of] of this.rented)
      if (name === machine || (machine === undefined && of === request)) this.rented.delete(name);
    return Promise.resolve();
  }
  prices = () => Promise.resolve({ spot: 10, 'on-demand': 30 });
  notices = () => Promise.resolve(this.announced);
}

describe('a provider with bounds', () => {
  let clock: SimulatedClock;
  let cloud: ScriptedCloud;
  let bounded: Provider;
  beforeEach(() => {
    clock = new SimulatedClock();
    cloud = new ScriptedCloud();
    bounded = boundedProvider(cloud, { options: bounds, clock, logger });
  });
  const acquired = (): Promise<unknown> =>
    clock.runUntil(
      bounded.acquire('r', 'spot').then(
        ({ machine }) => machine,
        (error: Error) => error,
      ),
    );

  test('a call that fails is repeated, as often as is configured', async () => {
    let failures = 2;
    cloud.answer = (request) => (failures-- > 0 ? Promise.reject(new Error('busy')) : cloud.rent(request));
    expect(await acquired()).toBe('vm-r');
    failures = 3;
    expect(await acquired()).toMatchObject({ message: 'busy' });
    expect(cloud.calls.length).toBe(6);
  });

  test('a market without machines is not asked again', async () => {
    cloud.answer = () => Promise.reject(new NoMachineError('no capacity'));
    expect(await acquired()).toBeInstanceOf(NoMachineError);
    expect(cloud.calls).toEqual(['acquire spot']);
  });

  test('machines that are answered late, or beside another one, are given back', async () => {
    let calls = 0;
    cloud.answer = async (request) => {
      const name = `vm${(calls += 1)}`;
      if (calls === 1) await sleep(clock, 3000);
      return cloud.rent(request, name);
    };
    expect(await acquired()).toBe('vm2');
    await clock.runFor(5000);
    expect([...cloud.rented.keys()]).toEqual(['vm2']);
  });

  test('a machine that comes after all attempts have failed is given back', async () => {
    cloud.answer = async (request) => {
      await sleep(clock, 20_000);
      return cloud.rent(request);
    };
    expect(await acquired()).toMatchObject({ message: 'acquire: no answer within 2000 ms' });
    await clock.runFor(30_000);
    expect(cloud.rented.size).toBe(0);
  });

  test.each([51, -1, NaN])('a machine that is billed %p per hour is given back', async (pricePerHour) => {
    cloud.answer = async (request) => ({ ...(await cloud.rent(request)), pricePerHour });
    expect(await acquired()).toMatchObject({ name: 'ProviderAnswerError' });
    expect(cloud.rented.size).toBe(0);
  });
});

test('commands get the request in their environment, and their answers are checked', async () => {
  const ran: unknown[] = [];
  const answers: string[] = [];
  const run = (command: readonly string[], { env }: { env: object }): Promise<string> => {
    ran.push([command, env]);
    return Promise.resolve(answers.shift() ?? '');
  };
  const commands = { acquire: ['rent', 'x'], release: ['end'], prices: ['prices'], notices: ['notices'] };
  const provider = commandProvider(commands, { run, timeoutMs: 1000 });
  answers.push(
    '{"machine":"i-1","pricePerHour":9.8}',
    '',
    '{"spot":9.8}',
    '[{"machine":"i-1","leavesAt":"1970-01-01T00:00:05Z"}]',
  );
  expect(await provider.acquire('r1', 'spot')).toEqual({ machine: 'i-1', pricePerHour: 9.8 });
  await provider.release('r1', 'i-1');
  expect(await provider.prices()).toEqual({ spot: 9.8 });
  expect(await provider.notices()).toEqual([{ machine: 'i-1', leavesAt: 5000 }]);
  expect(ran.slice(0, 2)).toEqual([
    [['rent', 'x'], { GPUWHISK_REQUEST: 'r1', GPUWHISK_MARKET: 'spot' }],
    [['end'], { GPUWHISK_REQUEST: 'r1', GPUWHISK_MACHINE: 'i-1' }],
  ]);
  for (const wrong of ['no json', '{}', '{"machine":7}', '{"machine":"i","pricePerHour":"9"}', '[]']) {
    answers.push(wrong);
    await expect(provider.acquire('r2', 'spot')).rejects.toMatchObject({ name: 'ProviderAnswerError' });
  }
  answers.push('{"none":"no capacity"}');
  await expect(provider.acquire('r2', 'spot')).rejects.toThrow(NoMachineError);
});

test('a webhook is asked with a key and an idempotency key, and its errors are told', async () => {
  const sent: object[] = [];
  const replies = [
    { status: 200, text: '{"machine":"m"}' },
    { status: 204, text: '' },
    { status: 404, text: 'none' },
    { status: 500, text: '' },
  ];
  const network = {
    request: (request: object) => {
      sent.push(request);
      const { status = 500, text = '' } = replies.shift() ?? {};
      return Promise.resolve({ status, headers: {}, body: Buffer.from(text) });
    },
  };
  const provider = webhookProvider({ url: 'http://cloud/v1/', token: 't' }, { network, timeoutMs: 1000 });
  expect(await provider.acquire('r', 'on-demand')).toEqual({ machine: 'm' });
  await provider.release('r', 'm');
  expect(await provider.prices()).toEqual({});
  await expect(provider.notices()).rejects.toThrow('GET notices was answered 500');
  expect(sent[0]).toMatchObject({
    ...{
      method: 'POST',
      url: 'http://cloud/v1/acquire',
      body: '{"request":"r","market":"on-demand"}',
      timeoutMs: 1000,
    },
    headers: { authorization: 'Bearer t', 'idempotency-key': 'acquire r' },
  });
});

describe('procurement', () => {
  let clock: SettableClock;
  let cloud: ScriptedCloud;
  let state: ReturnType<typeof embeddedState>;
  let table: GpuTable;
  let store: ReturnType<typeof simulatedStore>;
  let lease: { epoch: number | undefined };
  let retired: string[];
  let changes: number;
  const open = async (provider: Provider = cloud): Promise<Procurement> => {
    const procurement = new Procurement({
      ...{ provider, store, state, table, lease, clock, logger, random: seededRandom(1), workloads: { shown: [] } },
      options: { nodes: 1, pollMs: 1000, bootMs: 60_000 },
      retire: (invoker) => Promise.resolve(retired.push(invoker) > 0),
    });
    procurement.open(() => (changes += 1));
    await clock.runFor(100);
    return procurement;
  };
  beforeEach(async () => {
    clock = new SettableClock();
    cloud = new ScriptedCloud();
    state = embeddedState(clock);
    table = new GpuTable(state, clock, logger);
    await table.open();
    store = simulatedStore({ clock, random: seededRandom(1), latencyMs: 0 });
    lease = { epoch: 1 };
    retired = [];
    changes = 0;
  });
  /** A node that reports while `isThere` is true. */
  const reporting = (id: string, invoker: string, changes: Partial<NodeStatus> = {}): { isThere: boolean } => {
    const node = { isThere: true };
    const tell = (): void => {
      if (!node.isThere) return;
      const row = nodeRow([a100(`GPU-${invoker}`)], [], {
        invoker,
        at: clock.now(),
        labels: { machine: id },
        ...changes,
      });
      void state.setRow(gpuTable, invoker, { ...row, version: clock.now() } as unknown as JsonValue, 5000);
      clock.setBackgroundTimer(1000, tell);
    };
    tell();
    return node;
  };
  const one = (procurement: Procurement) => procurement.state().machines[0]!;
  const noticed = async (): Promise<unknown> => (await state.rows(gpuNoticeTable)).get('invoker7');

  test('a machine is rented, serves, and is given back once nothing runs there', async () => {
    const procurement = await open();
    expect(await clock.runUntil(procurement.acquire('spot'))).toBeUndefined();
    expect(one(procurement)).toMatchObject({ market: 'spot', state: 'booting', pricePerHour: 10 });
    const { id } = one(procurement);
    const node = reporting(id, 'invoker7', { inHand: [{ activationId: 'a', at: 0, epoch: 1, version: 1 }] });
    await clock.runFor(2500);
    expect(one(procurement)).toMatchObject({ state: 'up', node: 'invoker7' });
    expect(await clock.runUntil(procurement.giveBack('invoker7'))).toBeUndefined();
    await clock.runFor(5000);
    expect([await noticed(), cloud.rented.size]).toEqual([{ why: 'given-back', at: expect.any(Number) }, 1]);
    node.isThere = false;
    reporting(id, 'invoker7');
    await clock.runFor(5000);
    expect([cloud.rented.size, retired, procurement.state().machines]).toEqual([0, ['invoker7'], []]);
    expect(await noticed()).toBeUndefined();
    expect(await clock.runUntil(procurement.giveBack('invoker7'))).toEqual(expect.any(String));
  });

  test('a notice reaches the node, and a machine that was taken away is settled', async () => {
    const procurement = await open();
    await clock.runUntil(procurement.acquire('spot'));
    const { id } = one(procurement);
    const node = reporting(id, 'invoker7');
    await clock.runFor(2500);
    const before = changes;
    const leavesAt = clock.now() + 10_000;
    cloud.announced = [{ machine: `vm-${id}`, leavesAt }];
    await clock.runFor(1500);
    expect([one(procurement).leavesAt, changes]).toEqual([leavesAt, before + 1]);
    expect(await noticed()).toMatchObject({ why: 'revoked', leavesAt });
    await clock.runFor(9000);
    node.isThere = false;
    cloud.announced = [];
    await clock.runFor(10_000);
    expect([cloud.calls.at(-1), retired, procurement.state().machines]).toEqual([`release vm-${id}`, ['invoker7'], []]);
  });

  test("a machine that goes at once with an operator's notice is settled, though its agent told of none", async () => {
    const procurement = await open();
    await clock.runUntil(procurement.acquire('spot'));
    const node = reporting(one(procurement).id, 'invoker7');
    await clock.runFor(2500);
    node.isThere = false;
    await state.setRow(gpuNoticeTable, 'invoker7', { why: 'revoked', at: clock.now(), leavesAt: clock.now() });
    await clock.runFor(1500);
    expect(one(procurement).leavesAt).toBeLessThan(clock.now());
    await clock.runFor(8000);
    expect([cloud.rented.size, retired]).toEqual([0, ['invoker7']]);
  });

  test('a notice of no time, before the machine has reported, ends it', async () => {
    const procurement = await open();
    await clock.runUntil(procurement.acquire('spot'));
    cloud.announced = [{ machine: `vm-${one(procurement).id}`, leavesAt: clock.now() }];
    await clock.runFor(5000);
    expect([cloud.rented.size, procurement.state().machines]).toEqual([0, []]);
  });

  test('a market without a machine is told, and nothing is left of the request', async () => {
    const procurement = await open();
    cloud.answer = () => Promise.reject(new NoMachineError('no capacity'));
    expect(await clock.runUntil(procurement.acquire('spot'))).toBe('no capacity');
    expect(procurement.state()).toMatchObject({ machines: [], refusedAt: { spot: clock.now() } });
    expect(await clock.runUntil(procurement.list())).toEqual([]);
  });

  test('a request that got no answer is released, as it may have rented a machine', async () => {
    const procurement = await open();
    cloud.answer = async (request) => {
      await cloud.rent(request);
      throw new Error('the connection broke');
    };
    expect(await clock.runUntil(procurement.acquire('spot'))).toBe('the connection broke');
    await clock.runFor(3000);
    expect([cloud.rented.size, procurement.state().machines]).toEqual([0, []]);
  });

  test('one machine for two requests is refused, and stays with the first', async () => {
    const procurement = await open();
    cloud.answer = (request) => cloud.rent(request, 'vm-same');
    await clock.runUntil(procurement.acquire('spot'));
    expect(await clock.runUntil(procurement.acquire('spot'))).toMatch(/is rented for request 'gw-\w+' already/);
    await clock.runFor(3000);
    expect([procurement.state().machines.length, cloud.rented.size]).toEqual([1, 1]);
  });

  test('a machine that does not boot, and one that reports no more, are given back, however the clock is set', async () => {
    const procurement = await open();
    await clock.runUntil(procurement.acquire('spot'));
    await clock.runFor(50_000);
    clock.offsetMs = -86_400_000;
    expect(cloud.rented.size).toBe(1);
    await clock.runFor(15_000);
    expect(cloud.rented.size).toBe(0);
    await clock.runUntil(procurement.acquire('spot'));
    const node = reporting(one(procurement).id, 'invoker8');
    clock.offsetMs = 2 * 86_400_000;
    await clock.runFor(120_000);
    expect(one(procurement)).toMatchObject({ state: 'up', node: 'invoker8' });
    node.isThere = false;
    await clock.runFor(80_000);
    expect([cloud.rented.size, retired]).toEqual([0, ['invoker8']]);
  });

  test('a new leader goes on with the machines of the last one, and asks again with the same request', async () => {
    const first = await open();
    let asked = '';
    cloud.answer = (request) => {
      asked = request;
      return new Promise(() => undefined);
    };
    void first.acquire('spot');
    await clock.runFor(100);
    lease = { epoch: 2 };
    cloud.answer = (request) => cloud.rent(request);
    const second = await open();
    await clock.runFor(2000);
    expect(one(second)).toMatchObject({ id: asked, state: 'booting' });
    expect([...cloud.rented.values()]).toEqual([asked]);
  });

  test('how many nodes are wanted is kept', async () => {
    const procurement = await open();
    expect(procurement.state().wanted).toBe(1);
    await clock.runUntil(procurement.setWanted(3));
    lease = { epoch: 2 };
    expect((await open()).state().wanted).toBe(3);
  });
});

test('the emulated cloud gives the same machine to a request, refuses, announces and cuts as drawn', async () => {
  const clock = new SimulatedClock();
  const log: string[] = [];
  const machines = {
    start: ({ name }: { name: string }) => Promise.resolve(void log.push(`start ${name}`)),
    stop: (name: string, isCut: boolean) => Promise.resolve(void log.push(`${isCut ? 'cut' : 'stop'} ${name}`)),
    close: () => Promise.resolve(),
  };
  const options = { seed: 1, everyS: 60, noticeS: 30, bootS: 0, spotPrice: 9.8, onDemandPrice: 32.8, set: {} };
  const sure = emulatedProvider({ ...options, revocation: 0 }, { clock, logger, machines });
  expect(await sure.acquire('a', 'spot')).toEqual({ machine: 'a', pricePerHour: 9.8 });
  expect(await sure.acquire('a', 'spot')).toEqual({ machine: 'a', pricePerHour: 9.8 });
  await clock.runFor(600_000);
  expect([await sure.notices(), log]).toEqual([[], ['start a']]);
  await clock.runUntil(sure.release('a', undefined));
  await clock.runUntil(sure.release('a', 'a'));
  expect(log).toEqual(['start a', 'stop a']);
  const scarce = emulatedProvider({ ...options, revocation: 1 }, { clock, logger, machines });
  await expect(scarce.acquire('b', 'spot')).rejects.toThrow(NoMachineError);
  expect(await scarce.acquire('b', 'on-demand')).toEqual({ machine: 'b', pricePerHour: 32.8 });
  await clock.runFor(600_000);
  expect(await scarce.notices()).toEqual([]);
  const half = emulatedProvider({ ...options, revocation: 0.5 }, { clock, logger, machines });
  for (let request = 0; request < 20; request += 1) await half.acquire(`h${request}`, 'spot').catch(() => undefined);
  await clock.runFor(60_500);
  const told = await half.notices();
  expect(told.length).toBeGreaterThan(0);
  await clock.runFor(30_500);
  expect(log.filter((line) => line.startsWith('cut ')).sort()).toEqual(
    told.map(({ machine }) => `cut ${machine}`).sort(),
  );
});

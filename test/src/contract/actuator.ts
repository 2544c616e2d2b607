// Contract of actuators: the live one with agents on simulated GPUs, and the replay simulator's.
import { afterEach, expect, test } from '@jest/globals';
import type { Action, Actuator } from '@gpuwhisk/gpu/view/decision';
import { usedPlaces } from '@gpuwhisk/gpu/ledger/used-places';
import type { InstanceState, View } from '@gpuwhisk/gpu/view/view';

/** A function of the contract: memory and class on a GPU, and whether a stopped run is repeated. */
export interface ContractFunction {
  name: string;
  memoryMiB: number;
  share: number;
  isIdempotent?: boolean;
}

/** A run that was started. */
export interface ContractRun {
  /** Ends the run. */
  end(): void;
  /** How the run ended, or undefined while it is under way. */
  outcome(): 'ended' | 'stopped' | undefined;
}

/** An actuator on one node with two GPUs of 40 GiB that can be cut. The start of an instance takes 500 ms. */
export interface ActuatorHarness {
  actuator: Actuator;
  view(): View;
  /** Sends a request of the function and starts its run. */
  run(one: ContractFunction): Promise<ContractRun>;
  /** Advances the clock by `ms`. */
  pass(ms: number): Promise<void>;
  /** Id of the whole GPU with this index. */
  device(index: number): string;
  /** Has the driver refuse to make slices from now on, or not. */
  refuseSlices(refuses: boolean): void;
  close(): Promise<void>;
}

const one: ContractFunction = { name: 'one', memoryMiB: 4000, share: 0.5 };
const caseMs = 20_000;

/** Registers the cases that every Actuator must pass. */
export function actuatorContract(open: () => Promise<ActuatorHarness>): void {
  let harness: ActuatorHarness | undefined;
  afterEach(async () => {
    await harness?.close();
    harness = undefined;
  });
  const opened = async (): Promise<ActuatorHarness> => (harness = await open());
  const instances = ({ name }: ContractFunction): InstanceState[] =>
    (harness!.view().instances ?? []).filter((it) => it.function.endsWith(`/${name}`));
  const states = (of: ContractFunction): string[] =>
    instances(of)
      .map(({ state }) => state)
      .sort();
  const until = async (what: string, isSo: () => boolean): Promise<void> => {
    for (let look = 0; look < 400; look += 1) {
      if (isSo()) return;
      await harness!.pass(50);
    }
    throw new Error(`${what} has not come about: ${JSON.stringify(harness!.view().instances)}`);
  };
  /** Runs the function once and returns its idle instance. */
  const idling = async (of: ContractFunction): Promise<InstanceState> => {
    const run = await harness!.run(of);
    await until('it runs', () => states(of).includes('running'));
    run.end();
    await until('it idles', () => states(of).includes('idle'));
    return instances(of).find(({ state }) => state === 'idle')!;
  };
  const does = (action: Action): Promise<string | undefined> => harness!.actuator.carryOut(action);
  const reason = 'a test';

  test(
    'launch: an instance loads on the GPU that is named, then idles with its share, and serves the next request',
    async () => {
      const { device, run } = await opened();
      const { id: first } = await idling(one);
      const [{ function: name, namespace } = { function: '', namespace: '' }] = instances(one);
      expect(await does({ kind: 'retire', instance: first, reason })).toBeUndefined();
      await until('the first has gone', () => instances(one).length === 0);
      const launch = { kind: 'launch', function: name, namespace, gpus: [device(1)], share: 0.3, reason } as const;
      expect(await does(launch)).toBeUndefined();
      await harness!.pass(100);
      expect(states(one)).toEqual(['loading']);
      await until('it idles', () => states(one).includes('idle'));
      const [launched] = instances(one);
      expect(launched).toMatchObject({ gpus: [device(1)], share: { class: 0.3 }, memoryMiB: 4000 });
      expect(await does({ ...launch, gpus: [device(0)], share: 0.5 })).toBeUndefined();
      await until('there are two', () => states(one).join() === 'idle,idle');
      const served = await run(one);
      await until('one runs', () => states(one).join() === 'idle,running');
      served.end();
    },
    caseMs,
  );

  test(
    'launch: refused where there is no room, no such GPU, or no such function',
    async () => {
      const { device } = await opened();
      const { function: name, namespace } = await idling(one);
      const launch = { kind: 'launch', function: name, namespace, gpus: [device(1)], share: 0.5, reason } as const;
      expect(await does({ ...launch, gpus: ['GPU-none'] })).toEqual(expect.any(String));
      expect(await does({ ...launch, function: '/alice/none' })).toEqual(expect.any(String));
      await harness!.pass(1000);
      expect(instances(one)).toHaveLength(1);
    },
    caseMs,
  );

  test(
    'retire: an idle instance goes; one that runs goes when its run has ended, and is draining until then',
    async () => {
      const { run } = await opened();
      const { id } = await idling(one);
      const again = await run(one);
      await until('it runs', () => states(one).includes('running'));
      expect(await does({ kind: 'retire', instance: id, reason })).toBeUndefined();
      await until('it drains', () => states(one).includes('draining'));
      await harness!.pass(2000);
      expect(again.outcome()).toBeUndefined();
      again.end();
      await until('it has gone', () => instances(one).length === 0);
      expect(again.outcome()).toBe('ended');
    },
    caseMs,
  );

  test(
    'retire with grace: the run is stopped after it, and repeated only if that was allowed',
    async () => {
      const { run } = await opened();
      const repeated: ContractFunction = { name: 'repeated', memoryMiB: 4000, share: 0.5, isIdempotent: true };
      for (const of of [one, repeated]) {
        const stopped = await run(of);
        await until('it runs', () => states(of).includes('running'));
        const [{ id } = { id: '' }] = instances(of);
        expect(await does({ kind: 'retire', instance: id, graceMs: 500, reason })).toBeUndefined();
        await harness!.pass(200);
        expect(stopped.outcome()).toBeUndefined();
        if (of === one) {
          await until('it is stopped', () => stopped.outcome() === 'stopped');
          await until('its instance has gone', () => instances(of).length === 0);
        } else {
          await until('it runs in another one', () =>
            instances(of).some((it) => it.id !== id && it.state === 'running'),
          );
          stopped.end();
          await until('it ends', () => stopped.outcome() === 'ended');
        }
      }
    },
    caseMs,
  );

  test(
    'reshare: request and limit move, below the class, and stay where they were moved',
    async () => {
      const { run } = await opened();
      const { id } = await idling(one);
      expect(await does({ kind: 'reshare', instance: id, request: 0.1, limit: 0.2, reason })).toBeUndefined();
      const again = await run(one);
      await until('it runs with less', () => instances(one).some(({ share }) => share.limit === 0.2));
      expect(instances(one)[0]).toMatchObject({ id, share: { limit: 0.2, class: 0.5 } });
      expect(await does({ kind: 'reshare', instance: id, request: 0.9, limit: 0.9, reason })).toBeUndefined();
      await until('it has its class', () => instances(one).some(({ share }) => share.limit === 0.5));
      again.end();
    },
    caseMs,
  );

  test(
    'reshare while it is busy: the next run has the share that it was decided',
    async () => {
      const { run } = await opened();
      const { id } = await idling(one);
      const first = await run(one);
      await until('it runs', () => states(one).includes('running'));
      const moved = { kind: 'reshare', instance: id, request: 0.1, limit: 0.2, whileBusy: true, reason } as const;
      expect(await does(moved)).toBeUndefined();
      await until('it runs with less', () => instances(one).some(({ share }) => share.limit === 0.2));
      first.end();
      await until('it idles', () => states(one).includes('idle'));
      await harness!.pass(100);
      const next = await run(one);
      await until('it runs again', () => states(one).includes('running'));
      await until('it has its share', () => instances(one).some(({ share }) => share.limit === 0.5));
      next.end();
    },
    caseMs,
  );

  test(
    'cut: no new work, what runs ends first, then there are slices; and the whole device again',
    async () => {
      const { run, device, view } = await opened();
      const whole = device(0);
      const cut = { kind: 'cut', device: whole, profiles: ['3g.20gb', '3g.20gb'], reason } as const;
      const running = await run(one);
      await until('it runs', () => states(one).includes('running'));
      const [there = ''] = instances(one)[0]!.gpus;
      const other = device(there === whole ? 1 : 0);
      expect(await does({ ...cut, device: there })).toBeUndefined();
      await until('nothing is put there', () => !usedPlaces(view().ledger).some(({ id }) => id === there));
      await harness!.pass(3000);
      expect(running.outcome()).toBeUndefined();
      const elsewhere = await run({ ...one, name: 'elsewhere' });
      await until('others go elsewhere', () =>
        instances({ ...one, name: 'elsewhere' }).some(({ gpus }) => gpus[0] === other),
      );
      for (const it of [running, elsewhere]) it.end();
      const places = (): string[] =>
        (view().devices ?? []).find(({ id }) => id === there)?.places.map(({ profile = 'whole' }) => profile) ?? [];
      await until('it is cut', () => places().join() === '3g.20gb,3g.20gb');
      expect(usedPlaces(view().ledger).filter(({ mode }) => mode === 'mig')).toHaveLength(2);
      expect(await does({ ...cut, device: there, profiles: [] })).toBeUndefined();
      await until('it is whole', () => places().join() === 'whole');
    },
    caseMs,
  );

  test(
    'cut: what no device can be cut into is refused; a device that the driver does not cut works on, and says why',
    async () => {
      const { run, device, view } = await opened();
      const cut = { kind: 'cut', device: device(0), profiles: ['4g.20gb', '3g.20gb'], reason } as const;
      const seen = () => (view().devices ?? []).find(({ id }) => id === device(0));
      expect(await does({ ...cut, profiles: ['4g.20gb', '4g.20gb'] })).toContain('do not fit together');
      expect(await does({ ...cut, profiles: ['nine'] })).toContain('no profile');
      expect(seen()?.cut).toBeUndefined();
      harness!.refuseSlices(true);
      expect(await does(cut)).toBeUndefined();
      await until('it is under way', () => seen()?.cut !== undefined);
      await until('it is tried again', () => seen()?.cut?.refused !== undefined).catch(() => undefined);
      await until('it is given up', () => seen()?.cut?.refused !== undefined);
      expect(seen()).toMatchObject({ mode: expect.not.stringMatching('mig'), places: [{ id: device(0) }] });
      await until('it is used again', () => usedPlaces(view().ledger).some(({ id }) => id === device(0)));
      const served = await run(one);
      await until('a run begins', () => states(one).includes('running'));
      served.end();
      harness!.refuseSlices(false);
      expect(await does({ ...cut, profiles: ['3g.20gb', '3g.20gb'] })).toBeUndefined();
      await until('it is cut', () => seen()?.places.length === 2 && seen()?.cut === undefined);
    },
    caseMs,
  );

  test(
    'an action on what is not there is refused, and changes nothing',
    async () => {
      const { view } = await opened();
      const { id } = await idling(one);
      const before = JSON.stringify(view().instances?.map((it) => ({ ...it, idleSince: 0 })));
      const gone = 'none';
      const actions: Action[] = [
        { kind: 'retire', instance: gone, reason },
        { kind: 'reshare', instance: gone, request: 0.1, limit: 0.1, reason },
        { kind: 'cut', device: gone, profiles: [], reason },
        { kind: 'give-back', node: gone, reason },
      ];
      for (const action of actions) expect(await does(action)).toEqual(expect.any(String));
      await harness!.pass(1000);
      expect(JSON.stringify(view().instances?.map((it) => ({ ...it, idleSince: 0 })))).toBe(before);
      expect(await does({ kind: 'retire', instance: id, reason })).toBeUndefined();
      await until('it has gone', () => instances(one).length === 0);
      expect(await does({ kind: 'retire', instance: id, reason })).toEqual(expect.any(String));
    },
    caseMs,
  );

  test(
    'a node is taken and given back, where nodes can be',
    async () => {
      const { view } = await opened();
      const nodes = (): string[] => (view().nodes ?? []).map(({ id }) => id);
      const [own = ''] = nodes();
      expect(await does({ kind: 'acquire', market: 'spot', reason })).toBeUndefined();
      await until('it comes', () => nodes().length === 2);
      const came = view().nodes!.find(({ id }) => id !== own)!;
      expect(came.market).toBe('spot');
      await until('its GPUs can be used', () =>
        usedPlaces(view().ledger).some(({ place }) => place.node.invoker === came.id),
      );
      expect(await does({ kind: 'give-back', node: came.id, reason })).toBeUndefined();
      await until('it has gone', () => nodes().join() === own);
    },
    caseMs,
  );
}

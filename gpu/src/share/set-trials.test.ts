// Trials of sets: what their runs decide, what they may cost, and what is remembered.
import { describe, expect, test } from '@jest/globals';
import { seededRandom, randomFraction } from '@gpuwhisk/common/system/random';
import { taskOf } from '../testing/fixtures.js';
import type { Task } from '../view/view.js';
import { readTriedSet } from './set-codec.js';
import { SetTrials } from './set-trials.js';
import type { Sharer, TriedSet } from './set-trials.js';

const gpu = { id: 'g0', gpuType: 'a100-40', mode: 'mps' } as const;
const f = taskOf('f', { function: '/a/f' });
const g = taskOf('g', { function: '/a/g' });
const h = taskOf('h', { function: '/a/h' });
const hour = 3_600_000;

const sharers = (...tasks: Task[]): Sharer[] => tasks.map((task) => ({ task, share: 1 }));

/** Trials with runs of functions that take 100 ms alone. `factor`: how many times longer all take together. */
class World {
  at = 0;
  readonly changes: [string, TriedSet | undefined][] = [];
  readonly trials = new SetTrials((key, set) => this.changes.push([key, set]));

  alone(task: Task, runs = 4, ms = 100): this {
    for (let run = 0; run < runs; run += 1) this.ran(task, ms, []);
    return this;
  }

  together(tasks: readonly Task[], rounds: number, factor: (task: Task) => number, part = 1): this {
    for (let round = 0; round < rounds; round += 1) {
      for (const task of tasks) {
        const others = tasks.filter((one) => one !== task);
        this.ran(task, 100 * factor(task), others, part);
      }
    }
    return this;
  }

  ran(task: Task, ranMs: number, others: readonly Task[], part = 1): void {
    this.at += ranMs;
    const beside = others.map((one) => ({ task: one, share: 1, part }));
    this.trials.ran({ task, gpu, share: 1, ranMs, endedAt: this.at, beside });
  }

  standing(...tasks: Task[]) {
    return this.trials.standing(gpu, sharers(...tasks), this.at);
  }
}

const measured = (): World => new World().alone(f).alone(g).alone(h);

describe('a pair', () => {
  test('stays after five runs if it does at least 1.1 times the work of turns', () => {
    const world = measured();
    expect(world.standing(f, g)).toEqual({ state: 'untried', runs: 0 });
    world.together([f, g], 2, () => 1.35);
    expect(world.standing(f, g)).toMatchObject({ state: 'trying', runs: 4, slowdowns: [1.35, 1.35] });
    world.ran(f, 135, [g]);
    expect(world.standing(g, f)).toMatchObject({ state: 'stays', gain: { mean: expect.closeTo(2 / 1.35) } });
  });

  test.each([2.4, 1.95])(
    'is split after ten runs if all take %d times as long, and tried again after a day',
    (factor) => {
      const world = measured().together([f, g], 5, () => factor);
      expect(world.standing(f, g)).toMatchObject({
        state: 'split',
        runs: 10,
        gain: { mean: expect.closeTo(2 / factor) },
      });
      world.at += 24 * hour;
      expect(world.standing(f, g)).toEqual({ state: 'untried', runs: 0 });
      world.together([f, g], 1, () => 1.2);
      expect(world.standing(f, g)).toMatchObject({ state: 'trying', runs: 2 });
    },
  );

  test('whose members lose unequally is judged by the sum', () => {
    // 0.9 + 0.5 of the work of one.
    const world = measured().together([f, g], 3, (task) => (task === f ? 1 / 0.9 : 2));
    const { state, slowdowns } = world.standing(g, f);
    expect([state, slowdowns]).toEqual(['stays', [2, expect.closeTo(1 / 0.9)]]);
  });

  test('that gained is split once it does not any more', () => {
    const world = measured().together([f, g], 6, () => 1.2);
    expect(world.standing(f, g).state).toBe('stays');
    world.together([f, g], 16, () => 2.5);
    expect(world.standing(f, g).state).toBe('split');
  });

  test('of two instances of one function is a pair', () => {
    const world = measured();
    for (let run = 0; run < 5; run += 1) world.ran(f, 130, [f]);
    expect(world.standing(f, f)).toMatchObject({ state: 'stays', gain: { mean: expect.closeTo(2 / 1.3) } });
  });

  test('is measured by the part of a run that was beside the other', () => {
    // Half of 135 ms beside: 67.5 ms alone, 67.5 ms at the rest of its work.
    const world = measured();
    const ranMs = 100 / (0.4 + 0.6 / 1.5);
    for (let run = 0; run < 3; run += 1)
      for (const [one, other] of [
        [f, g],
        [g, f],
      ] as const)
        world.ran(one, ranMs, [other], 0.6);
    expect(world.standing(f, g).slowdowns).toEqual([expect.closeTo(1.5), expect.closeTo(1.5)]);
  });

  test('with a gain but uneven times is tried on, at most for thirty runs', () => {
    const random = seededRandom(3);
    const world = measured();
    const states = new Set<string>();
    for (let run = 0; run < 15; run += 1) {
      for (const [one, other] of [
        [f, g],
        [g, f],
      ] as const) {
        world.ran(one, randomFraction(random) < 0.5 ? 100 : 320, [other]);
        const { state, runs } = world.standing(f, g);
        if (runs > 10 && runs < 30) states.add(state);
      }
    }
    expect([states.has('split'), world.standing(f, g).state]).toEqual([false, 'stays']);
  });

  test('of which one member has a single long run is split, too', () => {
    const world = measured();
    world.ran(g, 250, [f]);
    for (let run = 0; run < 9; run += 1) world.ran(f, 220, [g]);
    expect(world.standing(f, g)).toMatchObject({ state: 'split', runs: 10 });
  });

  test('says nothing while a member was never measured alone', () => {
    const world = new World().alone(f).together([f, g], 6, () => 3);
    expect(world.standing(f, g)).toMatchObject({ state: 'trying', runs: 6 });
    expect(world.standing(f, g).gain).toBeUndefined();
  });

  test('of functions like those of a split one is split, too', () => {
    const like = (task: Task, smUtil: number, id: string): Task => ({
      ...task,
      ...{ function: `/a/${id}`, features: { smUtil, dramUtil: 0.5, l2Util: 0.5 } },
    });
    const [one, other] = [like(f, 0.9, 'one'), like(g, 0.6, 'other')];
    const world = new World()
      .alone(one)
      .alone(other)
      .together([one, other], 5, () => 2.5);
    const asked = (smUtil: number): string => world.standing(like(f, 0.62, 'x'), like(g, smUtil, 'y')).state;
    expect([asked(0.92), asked(0.7)]).toEqual(['split', 'untried']);
  });
});

describe('three', () => {
  const trio = [f, g, h];

  test('are tried beside a pair that gains much, and stay if they do 1.05 times the work of the best two', () => {
    const world = measured().together([f, g], 3, () => 1.1);
    const may = (one: Task, other: Task): boolean => world.trials.mayTryThird(gpu, sharers(one, other), world.at);
    expect([may(f, g), may(f, h)]).toEqual([true, false]);
    world.together(trio, 2, () => 1.4);
    expect(world.standing(...trio).state).toBe('stays');
  });

  test('are split if they do no more than the best two', () => {
    const world = measured()
      .together([f, g], 3, () => 1.1)
      .together(trio, 4, () => 1.65);
    expect(world.standing(...trio)).toMatchObject({ state: 'split', gain: { mean: expect.closeTo(3 / 1.65) } });
  });
});

describe('what trials may cost', () => {
  test('is 2 % of the time that a place was busy in ten minutes, and of a minute at least', () => {
    const world = measured();
    expect(world.trials.budgetSpent('g0', world.at)).toBeUndefined();
    // A run of 3000 ms of a set of 100 ms beside another one loses 1400 ms; 1200 ms may be lost.
    world.ran(f, 3000, [g]);
    const spent = world.trials.budgetSpent('g0', world.at);
    expect(spent).toMatchObject({ lostMs: expect.closeTo(1400), busyMs: expect.closeTo(2700) });
    expect(world.trials.budgetSpent('g1', world.at)).toBeUndefined();
    expect(world.trials.budgetSpent('g0', spent!.nextAt)).toBeUndefined();
    world.alone(h, 680);
    expect(world.trials.budgetSpent('g0', world.at)).toBeUndefined();
  });

  test('is nothing for sets that gain', () => {
    const world = measured().together([f, g], 2, () => 1.2);
    expect(world.trials.budgetSpent('g0', world.at)).toBeUndefined();
  });
});

describe('a run alone', () => {
  const ask = (world: World, task: Task, place = 'g0'): string | undefined =>
    world.trials.keptFor(gpu, place, { task, share: 1 }, world.at);

  test('has a place kept for it after twenty runs without one, for one run', () => {
    const world = new World().alone(f, 1000).together([f, g], 9, () => 1.2);
    world.ran(g, 120, [f]);
    expect(ask(world, g)).toBeUndefined();
    world.ran(f, 120, [g]);
    expect([ask(world, g), ask(world, f), ask(world, g, 'g1')]).toEqual(['itself', 'another', undefined]);
    world.ran(g, 100, []);
    expect([ask(world, f), ask(world, g)]).toEqual([undefined, undefined]);
  });

  test('keeps a place for half a minute at most', () => {
    const world = new World().alone(f, 1000).together([f, g], 10, () => 1.2);
    expect([ask(world, g), ask(world, f)]).toEqual(['itself', 'another']);
    world.at += 30_000;
    expect([ask(world, f), ask(world, g)]).toEqual([undefined, undefined]);
  });

  test('is held for in 2 % of the runs at most', () => {
    const world = new World().alone(f, 10);
    const others = Array.from({ length: 5 }, (_, at) => taskOf(`o${at}`, { function: `/a/o${at}` }));
    for (const one of others) for (let run = 0; run < 20; run += 1) world.ran(one, 120, [f]);
    // 110 runs: two may be held for.
    const kept = others.filter((one, at) => ask(world, one, `g${at}`) === 'itself');
    expect(kept).toHaveLength(2);
  });
});

describe('what is remembered', () => {
  test('goes with the version of a function, and with the driver', () => {
    const world = measured()
      .together([f, g], 3, () => 1.2)
      .together([g, h], 3, () => 1.2);
    world.trials.sawVersion('/a/f', f.version);
    expect(world.standing(f, g).state).toBe('stays');
    world.trials.sawVersion('/a/f', '0.0.9');
    expect([world.standing(f, g).state, world.standing(g, h).state]).toEqual(['untried', 'stays']);
    expect(world.changes.at(-1)).toEqual([expect.stringContaining('/a/f@'), undefined]);
    // The first one that is told is the one that was there.
    world.trials.sawDriver('a100-40', 550);
    expect(world.standing(g, h).state).toBe('stays');
    world.trials.sawDriver('a100-40', 560);
    expect(world.standing(g, h).state).toBe('untried');
  });

  test('is stored set by set, and read again', () => {
    const world = measured()
      .together([f, g], 5, () => 2.4)
      .together([g, h], 2, () => 1.2);
    const again = new SetTrials();
    for (const set of world.trials.all()) again.restoreSet(readTriedSet(JSON.parse(JSON.stringify(set))));
    const at = world.at;
    for (const pair of [sharers(f, g), sharers(g, h)]) {
      expect(again.standing(gpu, pair, at)).toEqual(world.trials.standing(gpu, pair, at));
    }
    for (const bad of [{}, null, { ...world.trials.all()[0], ratios: {} }]) {
      expect(() => readTriedSet(bad)).toThrow('this is no set of trials');
    }
  });

  test('is in a saved state whole', () => {
    const world = new World().alone(f, 1000).together([f, g], 20, () => 1.2);
    world.trials.keptFor(gpu, 'g0', { task: g, share: 1 }, world.at);
    const again = new SetTrials();
    again.restore(JSON.parse(JSON.stringify(world.trials.saved())));
    expect(again.saved()).toEqual(world.trials.saved());
    expect(again.keptFor(gpu, 'g0', { task: f, share: 1 }, world.at)).toBe('another');
  });

  test.each([NaN, Infinity, 0, -5])('is no run of %d ms', (ms) => {
    const world = measured().together([f, g], 2, () => 1.2);
    const before = JSON.stringify(world.trials.saved());
    world.trials.ran({ task: f, gpu, share: 1, ranMs: ms, endedAt: world.at, beside: [] });
    expect(JSON.stringify(world.trials.saved())).toBe(before);
  });
});

import { describe, expect, test } from '@jest/globals';
import { tokenStates } from '@gpuwhisk/common/gpu';
import {
  columnsBytes,
  columnsOver,
  type ColumnName,
  type TokenColumns,
  emergencyPeriods,
  leastShare,
  TokenMachine,
} from './token-machine.js';
import { rememberedCycles, windowPeriods, learnedAfter } from './launch-history.js';

const places = 8;
const soloRate = 1000;

class Node {
  readonly columns: TokenColumns = columnsOver(new ArrayBuffer(columnsBytes(places)), 0, places);
  readonly machine = new TokenMachine(this.columns);

  /** A client with the solo rate 1000 on GPU 0, unless told otherwise. */
  add(place: number, values: Partial<Record<ColumnName, number>> = {}): void {
    this.set(place, { epoch: place + 1, gpu: 0, request: 0.4, limit: 0.8, maxTokens: soloRate, ...values });
  }

  set(place: number, values: Partial<Record<ColumnName, number>>): void {
    for (const [name, value] of Object.entries(values)) this.columns[name as ColumnName][place] = value;
  }

  run(periods: number): void {
    for (let i = 0; i < periods; i += 1) this.machine.step();
  }

  /** Ends a launch cycle and makes the step that sees it. */
  cycle(place: number, cycleMs: number, cycleBatch = 1): void {
    this.set(place, { cycles: this.columns.cycles[place]! + 1, cycleMs, cycleBatch });
    this.run(1);
  }

  budget(place: number): number {
    return this.columns.budget[place]!;
  }
}

/** One with an SLO that has run cycles of 10 ms, beside one without; both are busy. */
function contended(): Node {
  const node = new Node();
  node.add(0, { violation: 0.2, used: 10 });
  node.add(1, { used: 10 });
  node.run(1);
  node.cycle(0, 10);
  node.cycle(0, 10);
  return node;
}

describe('the token machine', () => {
  test('a client alone gets its limit, and everything if that is all', () => {
    const node = new Node();
    node.add(0);
    node.run(1);
    expect(node.budget(0)).toBe(800);
    expect(node.machine.stateOf(0)).toBe('NONE');
    node.set(0, { limit: 1 });
    node.run(1);
    expect(node.budget(0)).toBe(Infinity);
  });

  test('busy clients get their requests', () => {
    const node = contended();
    expect(node.machine.stateOf(0)).toBe('CONTENTION');
    expect([node.budget(0), node.budget(1)]).toEqual([400, 400]);
  });

  test('a changed request or limit holds from the next period on, in every state', () => {
    const node = contended();
    node.set(0, { request: 0.7 });
    node.set(1, { request: 0.1, limit: 0.2 });
    node.run(1);
    expect([node.budget(0), node.budget(1)]).toEqual([700, 100]);
    node.set(1, { request: 0.5, limit: 0.6 });
    node.run(1);
    expect(node.budget(1)).toBe(500);
    // While the other idles it grows beyond its request; a lower one holds at once when the other is back.
    node.set(0, { used: 0 });
    node.run(windowPeriods + 1);
    expect(node.budget(1)).toBe(600);
    node.set(0, { used: 10 });
    node.set(1, { request: 0.3 });
    node.run(1);
    expect(node.budget(1)).toBe(300);
    node.cycle(0, 20);
    node.set(0, { limit: 0.9 });
    node.run(1);
    expect(node.budget(0)).toBe(900);
  });

  test('tells every client the state of its GPU', () => {
    const node = contended();
    node.add(2, { gpu: 1 });
    node.cycle(0, 20);
    expect([0, 1, 2].map((place) => tokenStates[node.columns.state[place]!])).toEqual([
      'EMERGENCY',
      'EMERGENCY',
      'NONE',
    ]);
  });

  test('GPUs know nothing of each other', () => {
    const node = contended();
    node.add(2, { gpu: 1 });
    node.cycle(0, 20);
    expect(node.machine.stateOf(0)).toBe('EMERGENCY');
    expect(node.machine.stateOf(1)).toBe('NONE');
    expect(node.budget(2)).toBe(800);
  });

  test('a violated client gets its limit, and its neighbour less the longer its cycles are', () => {
    const node = contended();
    node.cycle(0, 15);
    expect(node.machine.stateOf(0)).toBe('EMERGENCY');
    expect(node.budget(0)).toBe(800);
    expect(node.budget(1)).toBeCloseTo(400 / 1.5);
    node.run(1);
    expect(node.budget(1)).toBeCloseTo(400 / 1.5 / 1.5);
  });

  test('an emergency leaves neighbours something, never raises them, and they regain their request after it', () => {
    const node = contended();
    node.cycle(0, 12.1);
    let before = 400;
    for (let i = 0; i < 100; i += 1) {
      expect(node.budget(1)).toBeLessThanOrEqual(before);
      before = node.budget(1);
      node.run(1);
    }
    expect(node.budget(1)).toBeCloseTo(leastShare * soloRate);
    node.cycle(0, 10);
    expect(node.machine.stateOf(0)).toBe('CONTENTION');
    node.run(20);
    expect(node.budget(1)).toBe(400);
  });

  test('a cycle that goes on for too long is an emergency before it ends', () => {
    const node = contended();
    node.set(0, { runningMs: 11, runningBatch: 1 });
    node.run(1);
    expect(node.machine.stateOf(0)).toBe('CONTENTION');
    node.set(0, { runningMs: 13 });
    node.run(1);
    expect(node.machine.stateOf(0)).toBe('EMERGENCY');
  });

  test('a larger batch is compared with its like', () => {
    const node = contended();
    node.cycle(0, 80, 8);
    expect(node.machine.stateOf(0)).toBe('CONTENTION');
    node.cycle(0, 120, 8);
    expect(node.machine.stateOf(0)).toBe('EMERGENCY');
  });

  test('the shortest cycle is forgotten after 64 others', () => {
    const node = contended();
    for (let i = 0; i < rememberedCycles; i += 1) node.cycle(0, 20);
    expect(node.machine.stateOf(0)).toBe('CONTENTION');
  });

  test('an emergency ends when its owner is idle or gone, and with the last of several', () => {
    const node = contended();
    node.add(2, { violation: 0.2, used: 10, request: 0.2, limit: 0.8 });
    node.run(1);
    node.cycle(2, 10);
    node.cycle(0, 20);
    node.cycle(2, 20);
    expect([node.budget(0), node.budget(2)]).toEqual([500, 500]);
    node.set(2, { used: 0 });
    node.run(windowPeriods);
    expect(node.machine.stateOf(0)).toBe('EMERGENCY');
    expect([node.budget(0), node.budget(2)]).toEqual([800, 200]);
    node.set(0, { epoch: 0 });
    node.run(1);
    expect(node.machine.stateOf(0)).toBe('RECOVERY');
  });

  test('without marks no client is protected', () => {
    const node = new Node();
    node.add(0, { violation: 0.2, used: 10, runningMs: 1000 });
    node.add(1, { used: 10 });
    node.run(5);
    expect(node.machine.stateOf(0)).toBe('CONTENTION');
  });

  test('the busy one grows to its limit while the other is idle, and returns to its request at once', () => {
    const node = contended();
    node.set(1, { used: 0 });
    node.run(windowPeriods);
    expect(node.machine.stateOf(0)).toBe('RECOVERY');
    expect(node.budget(0)).toBeCloseTo(400 * 1.3);
    node.run(10);
    expect(node.budget(0)).toBe(800);
    node.set(1, { used: 1 });
    node.run(1);
    expect(node.budget(0)).toBe(400);
  });

  test('one without SLO grows while those with one are idle', () => {
    const node = contended();
    node.set(0, { used: 0 });
    node.run(windowPeriods + 10);
    expect(node.budget(1)).toBe(800);
    expect(node.budget(0)).toBe(400);
  });

  test('a solo rate that is not given is learned, and until then bounds no client', () => {
    const node = new Node();
    node.add(0, { maxTokens: 0, used: 500 });
    node.run(learnedAfter - 1);
    expect(node.budget(0)).toBe(Infinity);
    node.run(1);
    expect(node.columns.soloRate[0]).toBeGreaterThanOrEqual(500);
    expect(node.columns.soloRate[0]).toBeLessThan(500 * 1.03);
    expect(node.budget(0)).toBeCloseTo(node.columns.soloRate[0]! * 0.8);
  });

  test('a period in which it had to wait teaches nothing, and one beside a neighbour only at first', () => {
    const node = new Node();
    node.add(0, { maxTokens: 0, used: 100 });
    node.add(1, { used: 10 });
    node.run(learnedAfter);
    const beside = node.columns.soloRate[0]!;
    node.set(0, { held: 1, used: 7 });
    node.set(1, { used: 0 });
    node.run(100);
    expect(node.columns.soloRate[0]).toBe(beside);
    node.set(0, { held: 0, used: 1000 });
    node.run(learnedAfter);
    expect(node.columns.soloRate[0]).toBeGreaterThanOrEqual(1000);
  });

  test('another client in the same place starts without history', () => {
    const node = new Node();
    node.add(0, { maxTokens: 0, used: 500 });
    node.run(learnedAfter);
    node.set(0, { epoch: 99 });
    node.run(1);
    expect(node.budget(0)).toBe(Infinity);
  });

  test('whatever happens, a budget is at least one block and at most the limit', () => {
    const wrong = [];
    for (let seed = 1; seed <= 50; seed += 1) {
      let random = seed;
      const next = (): number => (random = (random * 48271) % 2147483647) / 2147483647;
      const node = new Node();
      for (let step = 0; step < 300; step += 1) {
        const place = Math.floor(next() * places);
        if (next() < 0.1) {
          const limit = Math.max(0.01, next());
          const violation = next() < 0.5 ? 0.2 : 0;
          node.add(place, { epoch: step + 1, gpu: Math.floor(next() * 2), request: limit * next(), limit, violation });
        }
        node.set(place, { used: next() < 0.3 ? 0 : next() * 2000, runningMs: next() < 0.5 ? 0 : next() * 100 });
        if (next() < 0.5) node.set(place, { cycles: step, cycleMs: next() * 50, cycleBatch: Math.ceil(next() * 12) });
        node.run(1);
        for (let i = 0; i < places; i += 1) {
          if (node.columns.epoch[i] === 0) continue;
          const alone = node.machine.stateOf(node.columns.gpu[i]!) === 'NONE';
          const most = alone && node.columns.limit[i]! >= 1 ? Infinity : soloRate * node.columns.limit[i]!;
          if (node.budget(i) < 1 || node.budget(i) > Math.max(1, most))
            wrong.push({ seed, step, budget: node.budget(i) });
        }
      }
    }
    expect(wrong).toEqual([]);
  });

  test('a client that says its cycles are long for ever holds its neighbours back for a sixth of the time', () => {
    const node = contended();
    let emergencies = 0;
    const periods = 12_000;
    for (let i = 0; i < periods; i += 1) {
      node.cycle(0, i % 60 === 0 ? 1 : 60_000);
      if (node.machine.stateOf(0) === 'EMERGENCY') emergencies += 1;
    }
    expect(emergencies).toBeGreaterThanOrEqual(emergencyPeriods);
    expect(emergencies / periods).toBeLessThan(0.21);
  });
});

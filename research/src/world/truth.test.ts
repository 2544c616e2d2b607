import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { drawnAnswers, spreadOf } from './draws.js';
import { leftOutErrors } from './left-out.js';
import type { Predictor, Split } from './left-out.js';
import { workloadKey } from './sets.js';
import { readMeasured } from './sources.js';
import type { Measured } from './sources.js';
import { planted, plantedContention, plantedFiles, writeFiles } from './testing/planted.js';
import type { Planted } from './testing/planted.js';
import { forms, Truth } from './truth.js';
import type { Asked, Form } from './truth.js';

let folder: string;
let measured: Measured;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'bench-data-'));
  await writeFiles(folder, plantedFiles());
  measured = await readMeasured(folder, { licensed: false });
});
afterAll(() => rm(folder, { recursive: true }));

const [one, two, three, four] = planted as unknown as [Planted, Planted, Planted, Planted];
const key = ({ model }: Planted): string =>
  workloadKey({ source: 'kace', model, variant: '', batch: 8, task: 'inference' });
const asked = (workload: Planted, share = 1): Asked => ({ workload: key(workload), share });
const fresh = (form: Form, { sets, alone } = measured): Truth => new Truth('v100', 'mps', form, sets, alone);
const truths = new Map<Form, Truth>();
/** One truth of each form for all tests: a fit takes a second. */
function truthOf(form: Form): Truth {
  const truth = truths.get(form) ?? fresh(form);
  truths.set(form, truth);
  return truth;
}

describe('left-out errors on planted sets', () => {
  const ofSplit = (split: Split): ((predictor: Predictor, kind: string) => number) => {
    const part = { source: 'kace', gpu: 'v100', mode: 'mps' } as const;
    const { errors } = leftOutErrors(part, measured.sets, measured.alone, [split]);
    return (predictor, kind) => {
      const among = kind.startsWith('2') ? 'all' : 'paired';
      const found = errors.find((each) => each.predictor === predictor && each.kind === kind && each.among === among);
      if (found === undefined) throw new Error(`no error of ${predictor} on ${kind}`);
      return found.mae;
    };
  };

  test('the form of T1 predicts triples and quads of models whose larger sets it has not seen', () => {
    const mae = ofSplit('larger');
    for (const kind of ['3 whole', '4 whole']) {
      expect(mae('T1', kind)).toBeLessThan(0.3 * mae('multiplied', kind));
      expect(mae('T2', kind)).toBeLessThan(mae('constant', kind));
    }
  });

  test('a model that is left out is predicted by its features', () => {
    const mae = ofSplit('models');
    expect(mae('T1', '2 whole')).toBeLessThan(0.85 * mae('constant', '2 whole'));
    expect(mae('T2', '2 whole')).toBeLessThan(0.85 * mae('constant', '2 whole'));
  });
});

describe.each(forms)('truth %s', (form) => {
  test('a measured set is answered by its measurement exactly', () => {
    const answers = truthOf(form).answer([asked(one, 0.5), asked(two, 0.5)]);
    expect(answers.map(({ extrapolated }) => extrapolated)).toEqual([false, false]);
    for (const { slowdown } of answers) expect(slowdown).toBeCloseTo(2 * 1.02, 9);
    expect(answers[0]?.rows).toEqual([expect.stringMatching(/^interference\/kace_v100_pairs\.csv:\d+$/)]);
  });

  test('another set is extrapolated', () => {
    const sets = [one, one, two, four];
    const answers = truthOf(form).answer(sets.map((workload) => asked(workload)));
    expect(answers.every(({ extrapolated, rows }) => extrapolated && rows.length === 0)).toBe(true);
    const real = plantedContention(one, [one, two, four]);
    expect(answers[0]?.slowdown).toBeGreaterThan(0.5 * real);
    expect(answers[0]?.slowdown).toBeLessThan(2 * real);
  });

  test('a time alone at a share between measured ones is interpolated, below them it is refused', () => {
    const truth = truthOf(form);
    const [between] = truth.answer([asked(one, 0.4)]);
    expect(between?.extrapolated).toBe(true);
    expect(between?.slowdown).toBeCloseTo(1 / 0.4, 6);
    expect(truth.answer([asked(one, 0.25)])[0]).toMatchObject({ slowdown: 4, extrapolated: false });
    expect(() => truth.answer([asked(one, 0.1)])).toThrow(RangeError);
  });

  test('a partial overlap has a price in each bracket, and none without', () => {
    const truth = truthOf(form);
    const members = [asked(one, 0.7), asked(two, 0.7)];
    expect(() => truth.answer(members)).toThrow('name the bracket');
    const [disjoint] = truth.answer(members, 'disjoint');
    const [whole] = truth.answer(members, 'whole');
    expect(whole?.slowdown).toBeCloseTo(plantedContention(one, [two]), 9);
    expect(disjoint?.slowdown).toBeGreaterThan(1 / 0.7 - 1e-9);
    expect(disjoint?.slowdown).toBeLessThan(1.2 / 0.7);
    expect([disjoint?.extrapolated, whole?.extrapolated]).toEqual([true, true]);
  });

  test('sets beyond the measured ones are refused', () => {
    const truth = truthOf(form);
    expect(() => truth.answer([one, two, three, four, one].map((each) => asked(each)))).toThrow('at most 4');
    expect(() => truth.answer([asked({ model: 'unknown', ms: 1 })])).toThrow('was not measured on v100');
  });

  test('a GPU type with ten measured processes has measured sets only', () => {
    const few = { ...measured, sets: measured.sets.filter(({ members }) => members.length === 2).slice(0, 10) };
    const truth = fresh(form, few);
    const [first] = few.sets;
    expect(truth.answer(first?.members ?? []).every(({ extrapolated }) => !extrapolated)).toBe(true);
    // The second model is in the fourth of these pairs, beside the first.
    expect(() => truth.answer([asked(two), asked(three)])).toThrow('a model needs 24');
  });
});

test('the two truths differ', () => {
  const set = [one, one, two, four].map((each) => asked(each));
  const [t1, t2] = forms.map((form) =>
    truthOf(form)
      .answer(set)
      .map(({ slowdown }) => slowdown),
  );
  expect(t1).not.toEqual(t2);
});

describe('draws', () => {
  const spread = {
    repeat: 0.04,
    residual: new Map([
      [2, 0.1],
      [4, 0.2],
    ]),
  };
  const extrapolated = [one, one, two, four].map((each) => asked(each));
  const pair = [asked(one), asked(two)];

  test('the same seed and draw give the same answers in any order of questions; another draw gives others', () => {
    const truth = truthOf('T1');
    const first = drawnAnswers(truth, spread, { seed: 1, draw: 3 });
    const [a, b] = [first(extrapolated), first(pair)];
    const again = drawnAnswers(fresh('T1'), spread, { seed: 1, draw: 3 });
    expect(again(pair)).toEqual(b);
    expect(again(extrapolated)).toEqual(a);
    expect(drawnAnswers(truth, spread, { seed: 1, draw: 4 })(pair)).not.toEqual(b);
    expect(drawnAnswers(truth, spread, { seed: 2, draw: 3 })(pair)).not.toEqual(b);
  });

  test('measured answers are off by the repeatability, extrapolated ones by the residual as well', () => {
    const truth = truthOf('T1');
    const deviations = (members: readonly Asked[]): number => {
      const exact = truth.answer(members)[0]?.slowdown ?? NaN;
      const logs = Array.from({ length: 400 }, (_, draw) => {
        const drawn = drawnAnswers(truth, spread, { seed: 1, draw })(members)[0]?.slowdown ?? NaN;
        return Math.log(drawn / exact) ** 2;
      });
      return Math.sqrt(logs.reduce((sum, value) => sum + value, 0) / logs.length);
    };
    expect(deviations(pair)).toBeCloseTo(0.04, 2);
    expect(Math.abs(deviations(extrapolated) - Math.hypot(0.2, 0.04))).toBeLessThan(0.03);
  });

  test('the spread comes from the errors on sets left out, by number of processes', () => {
    const of = { split: 'sets', predictor: 'T1', among: 'all', mae: 0, logP90: 0 } as const;
    const found = spreadOf(
      [
        { ...of, kind: '2 whole', sides: 10, log: 0.2 },
        { ...of, kind: '2 disjoint', sides: 30, log: 0.04 },
        { ...of, kind: '3 whole', sides: 5, log: 0.3 },
        { ...of, kind: '3 whole', sides: 5, log: 9, split: 'models' },
        { ...of, kind: '3 whole', sides: 5, log: 9, predictor: 'T2' },
      ],
      'T1',
    );
    expect(found.residual.get(2)).toBeCloseTo(0.08 * Math.sqrt(Math.PI / 2), 12);
    expect(found.residual.get(3)).toBeCloseTo(0.3 * Math.sqrt(Math.PI / 2), 12);
    expect(found.repeat).toBeCloseTo(0.0398, 3);
  });
});

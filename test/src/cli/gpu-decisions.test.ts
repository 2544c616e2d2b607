import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { describeCases, errorWithHint } from './cases.js';
import { startFakeOpenWhisk } from './fake-openwhisk.js';
import { runWsk, withFolder } from './wsk-process.js';

const base = '/api/v1/gpu';

describeCases('wsk gpu: decisions of the scheduler', [
  {
    wsk: 'gpu policy',
    answers: [
      [
        200,
        {
          policy: 'exclusive share=unlimited slots=3',
          admission: 'refuse',
          decides: false,
          functions: 2,
          sharedSets: 1,
          shareChoices: {
            hit: { choices: 5, taken: 2, savedMs: 1200 },
            near: { choices: 1, taken: 0, savedMs: 0 },
            miss: { choices: 3, taken: 1, savedMs: -40 },
          },
          stages: { admit: 'before-slo', share: 'unlimited' },
          settings: { admit: {}, share: { slots: 3 } },
          inert: [
            {
              stage: 'share',
              part: 'dilu',
              why: 'no GPU has kernel tokens',
              mend: 'npm start -- --set gpu.tokens=true',
            },
          ],
          models: [
            { gpuType: 'a100-40', mode: 'mps', version: 2, sampleCount: 40, learnedAt: 0, error: 0.1234, runs: 9 },
            { gpuType: 'h100', mode: 'mig', version: 0, sampleCount: 0 },
          ],
          geometry: {
            at: 0,
            targets: [
              {
                ...{ type: 'a100-40', devices: 2, bestEffort: 3, memoryMiB: 3000, low: 2, high: 5 },
                ...{ profiles: ['4g.20gb', '2g.10gb', '1g.5gb'], reason: '3 batches expected' },
              },
              { type: 'h100', devices: 1, bestEffort: 0, memoryMiB: 0, reason: 'no requests are expected' },
            ],
            devices: [
              { device: 'GPU-0', profiles: [], mismatches: 3, cutInto: ['4g.20gb', '3g.20gb'] },
              { device: 'GPU-1', profiles: ['4g.20gb', '3g.20gb'], mismatches: 2 },
              { device: 'GPU-2', profiles: [], mismatches: 0, left: 'gpu.manage.mig is off on its node' },
            ],
            cuts: [{ at: 0, device: 'GPU-0', profiles: ['4g.20gb', '3g.20gb'], reason: 'one too many' }],
          },
        },
      ],
    ],
    requests: [`GET ${base}/policy`],
    stdout: `policy     exclusive share=unlimited slots=3 (another controller decides now)
admission  refuse
admit      before-slo
share      unlimited  slots=3
inert      share dilu: no GPU has kernel tokens; npm start -- --set gpu.tokens=true
learned    2 functions, shares of 1 sets
shares     5 by measurements of the set (1200 ms saved), 1 by a similar set, 3 by prediction (-40 ms saved)
predictor  a100-40/mps: version 2, learned from 40 runs at 1970-01-01T00:00:00.000Z, off by 12.3 % in 9 runs beside others
predictor  h100/mig: capacity model
slices     a100-40: 4g.20gb, 2g.10gb, 1g.5gb wanted: 3 batches expected
slices     h100: no change wanted: no requests are expected
device     GPU-0: whole, is being cut into 4g.20gb, 3g.20gb
device     GPU-1: 4g.20gb, 3g.20gb, differs for 2 windows
device     GPU-2: whole, is left: gpu.manage.mig is off on its node
cut        1970-01-01T00:00:00.000Z GPU-0 into 4g.20gb, 3g.20gb: one too many
`,
  },
  {
    wsk: 'gpu policy',
    answers: [
      [
        200,
        {
          ...{ policy: 'smore', configured: 'auto', admission: 'refuse', decides: true, functions: 0, sharedSets: 0 },
          set: { at: 0, by: 'ada' },
          undone: { at: 1000, policy: 'own', why: '4 faults within 5 minutes, the last: Error: no' },
          problem: "there is no policy 'own'",
          changes: [{ at: 0, by: 'ada', from: 'auto', to: 'smore' }],
          ...{ stages: {}, settings: {}, models: [] },
        },
      ],
    ],
    requests: [`GET ${base}/policy`],
    stdout: `policy     smore
set        1970-01-01T00:00:00.000Z by ada; configured is auto (wsk gpu policy reset)
undone     1970-01-01T00:00:01.000Z own: 4 faults within 5 minutes, the last: Error: no
problem    the policy that was set is not used: there is no policy 'own'
admission  refuse
learned    0 functions, shares of 0 sets
change     1970-01-01T00:00:00.000Z by ada: auto to smore
`,
  },
  {
    wsk: 'gpu policy set smore',
    answers: [[200, { at: 0, by: 'ada', from: 'auto', to: 'smore' }]],
    requests: [`PUT ${base}/policy {"policy":"smore"}`],
    stdout: 'ok: policy smore is in force, in place of auto\n',
  },
  {
    wsk: 'gpu policy set {"base":"exclusive","order":"due-first"}',
    answers: [[400, { error: 'no', code: 'c' }]],
    requests: [`PUT ${base}/policy {"policy":{"base":"exclusive","order":"due-first"}}`],
    code: 144,
    stderr: 'error: Unable to set the policy: no (code c)',
  },
  {
    wsk: 'gpu policy reset',
    answers: [[200, { at: 0, by: 'ada', from: 'smore', to: 'auto' }]],
    requests: [`DELETE ${base}/policy`],
    stdout: 'ok: policy auto is in force, in place of smore\n',
  },
  {
    wsk: 'gpu policy try exclusive --minutes 5 --arrivals arrivals.json',
    files: { 'arrivals.json': '[{"function":"f"}]' },
    answers: [
      [
        200,
        {
          arrivals: 20,
          leftOut: 1,
          gpus: 2,
          results: [
            {
              policy: 'faashare',
              meanWaitMs: 1.26,
              p99WaitMs: 40,
              meanMs: 100.04,
              missed: 1,
              withSlo: 9,
              refused: 0,
              stopped: 0,
              gpuHours: 0.01234,
            },
            {
              policy: 'exclusive',
              meanWaitMs: 0,
              p99WaitMs: 0,
              meanMs: 0,
              missed: 0,
              withSlo: 9,
              refused: 2,
              stopped: 3,
              gpuHours: 0,
              problem: 'it waits',
            },
          ],
        },
      ],
    ],
    requests: [`POST ${base}/policy/trials {"policy":"exclusive","minutes":5,"arrivals":[{"function":"f"}]}`],
    stdout: `20 arrivals on 2 GPUs; 1 more left out, never measured or of several GPUs
               faashare  exclusive
mean wait, ms       1.3        0.0
P99 wait, ms       40.0        0.0
mean time, ms     100.0        0.0
SLO missed       1 of 9     0 of 9
refused               0          2
stopped               0          3
GPU hours        0.0123     0.0000
exclusive did not end: it waits
Runs take what was learned of them, which favours policies that predict by the same.
`,
  },
  {
    wsk: 'gpu policy tray x',
    code: 1,
    stderr: errorWithHint("Invalid argument(s). 'try' or 'set' and a policy, 'reset', or nothing is required."),
  },
  {
    wsk: 'gpu queue',
    answers: [
      [
        200,
        [
          {
            activationId: 'a1',
            action: '/alice/f',
            namespace: 'alice',
            position: 1,
            waitedMs: 20,
            sloMs: 100,
            memoryMiB: 2048,
            gpus: 1,
            refusals: [],
            rejected: [],
          },
          {
            activationId: 'a2',
            action: '/alice/long',
            namespace: 'alice',
            position: 12,
            waitedMs: 3000,
            memoryMiB: 512,
            gpus: 2,
            refusals: [],
            rejected: [],
          },
        ],
      ],
    ],
    requests: [`GET ${base}/queue`],
    stdout: ` #  Activation  Action       Waited ms  SLO ms   MiB  GPUs
 1  a1          /alice/f            20     100  2048     1
12  a2          /alice/long       3000       -   512     2
`,
  },
  {
    wsk: 'gpu functions',
    answers: [
      [
        200,
        [
          {
            function: '/alice/f',
            version: '0.0.1',
            gpuType: 'rtx3090',
            mode: 'mps',
            heldMiB: 900,
            features: { smUtil: 0.5, dramUtil: 0.25 },
            fillSource: 'launches',
            batches: [
              {
                batch: 1,
                soloMs: 12.34,
                measured: true,
                startMs: 250,
                runs: 5,
                slowdown: { predicted: 1.349, measured: 1.5, runs: 3 },
              },
              { batch: 8, measured: false, runs: 0 },
            ],
          },
          { function: '/alice/new', version: '', gpuType: 'h100', mode: 'mig', batches: [] },
        ],
      ],
    ],
    requests: [`GET ${base}/functions`],
    stdout: `Function    Version  GPU          Batch  Input  Alone ms  Start ms  Runs  Slowdown  Predicted  SMs   Told by  DRAM  Holds
/alice/f    0.0.1    rtx3090/mps      1      -      12.3     250.0     5      1.50       1.35  50%  launches   25%    900
/alice/f    0.0.1    rtx3090/mps      8      -        -*         -     0         -          -  50%  launches   25%    900
/alice/new  -        h100/mig         -      -         -         -     0         -          -    -         -     -      -
`,
  },
  {
    wsk: 'gpu forecast f',
    answers: [
      [
        200,
        [
          { function: '/alice/other', namespace: 'alice', requests: [1], expected: [1] },
          {
            ...{ function: '/alice/f', namespace: 'alice', requests: [0, 1, 4, 8], expected: [null, 2, 6.5, 7] },
            now: { requests: 7, active: 0.987 },
          },
        ],
      ],
    ],
    requests: [`GET ${base}/forecasts`],
    stdout: `/alice/f for alice: 7.0 expected in this minute, any with a probability of 99 %
requests  | ▁▄█|  last 60 minutes, at most 8 in one
expected  | ▂▇▇|
`,
  },
  {
    wsk: 'gpu forecast /_/new',
    answers: [[200, [{ function: '/alice/new', namespace: 'alice', requests: [2], expected: [null] }]]],
    requests: [`GET ${base}/forecasts`],
    stdout: `/alice/new for alice: no model has been trained yet
requests  |█|  last 60 minutes, at most 2 in one
expected  | |
`,
  },
  {
    wsk: 'gpu forecast never',
    answers: [[200, []]],
    requests: [`GET ${base}/forecasts`],
    code: 1,
    stderr: "error: No request of 'never' came in the last day.",
  },
  {
    wsk: 'gpu degradations',
    answers: [
      [
        200,
        {
          models: [
            {
              ...{ gpuType: 'rtx3090', mode: 'mps', victim: 'function', neighbour: 'function' },
              ...{ pairs: 31, measurements: 45, predictedBy: 'model', version: 2, trainedAt: 0, trainedPairs: 30 },
              errors: {
                judged: 30,
                model: { rmsle: 0.0512, mae: 0.06 },
                figures: { rmsle: 0.2, mae: 0.25 },
                constant: { rmsle: 0.11, mae: 0.13 },
              },
            },
            {
              ...{ gpuType: 'rtx3090', mode: 'mps', victim: 'workload', neighbour: 'function' },
              ...{ pairs: 3, measurements: 8, predictedBy: 'measuring' },
            },
          ],
          drifts: [
            {
              ...{ gpuType: 'rtx3090', mode: 'mps', direction: 'worse', departed: 12, observed: 20 },
              ...{ victim: { kind: 'workload', name: 'train' }, predicted: 0.081, measured: 0.249 },
              neighbour: { kind: 'function', name: '/alice/f', namespace: 'bob' },
            },
          ],
          measurements: {
            ...{ functions: 5, chosen: 15, measured: 12, spentS: 33.4, budgetS: 360 },
            problems: [{ function: '/alice/g', problem: 'the action has no sample' }],
          },
        },
      ],
    ],
    requests: [`GET ${base}/degradations`],
    stdout: `GPU          Slower    Beside    Pairs  Measurements  Predicted by  Trained                   RMSLE  Of figures  Of mean    MAE  Of figures  Of mean
rtx3090/mps  function  function     31            45  model         1970-01-01T00:00:00.000Z  0.051       0.200    0.110  0.060       0.250    0.130
rtx3090/mps  workload  function      3             8  measuring     -                             -           -        -      -           -        -

GPU          Slower  Beside            Predicted  Measured  Departed
rtx3090/mps  train   /alice/f for bob         8%       25%  12 of 20

12 of 15 pairs of 5 functions are measured; 33 s of 360 s in the last hour
  /alice/g is not run: the action has no sample
`,
  },
  {
    wsk: 'gpu quotas',
    answers: [
      [
        200,
        [
          {
            id: 'k',
            gpuType: 'rtx3090',
            mode: 'mps',
            driverMajor: 550,
            search: { stage: 'done' },
            jobs: [{ function: '/alice/f' }, { function: '(of others)' }],
            points: [
              { shares: [50, 70], slowdowns: [1.1, 1.255], measurements: 3 },
              { shares: [30, 70], slowdowns: [2, 1], measurements: 1 },
            ],
          },
        ],
      ],
    ],
    requests: [`GET ${base}/quotas`],
    stdout: `GPU          Functions             Shares   Slowdowns  Points  Measurements  Search  Id
rtx3090/mps  /alice/f (of others)  50% 70%  1.10 1.25       2             4  done    k
`,
  },
  {
    wsk: 'gpu functions --forget /alice/f',
    answers: [[200, { ok: true }]],
    requests: [`DELETE ${base}/functions/%2Falice%2Ff`],
    stdout: 'ok: forgot /alice/f',
  },
  {
    wsk: 'gpu quotas --forget k',
    answers: [[403, { error: 'operators only', code: 'tid' }]],
    requests: [`DELETE ${base}/quotas/k`],
    code: 147,
    stderr: "error: Unable to forget 'k': operators only (code tid)",
  },
  {
    wsk: 'gpu explain a1',
    answers: [
      [
        200,
        {
          sentence: 'Queued 1 ms, ran 2 ms.',
          decisions: [
            {
              at: 1000,
              activationId: 'a1',
              action: '/alice/f',
              namespace: 'alice',
              policy: 'faashare',
              placement: { devices: ['GPU-1'], share: { shareClass: 30 } },
              reason: 'placed',
              rejected: [
                { what: 'GPU-0', reason: 'too little free memory', numbers: { freeMiB: 1, needMiB: 2, rate: 1 / 3 } },
              ],
            },
            {
              at: 0,
              activationId: 'a1',
              action: '/alice/f',
              namespace: 'alice',
              policy: 'faashare',
              reason: 'it waits',
              rejected: [],
            },
          ],
        },
      ],
    ],
    requests: [`GET ${base}/explanations/a1`],
    stdout: `Queued 1 ms, ran 2 ms.
1970-01-01T00:00:00.000Z  faashare: it waits
1970-01-01T00:00:01.000Z  faashare: placed  GPU-1 at 30%
    not GPU-0: too little free memory (freeMiB 1, needMiB 2, rate 0.333)
`,
  },
  {
    wsk: 'gpu explain a1',
    answers: [[200, { decisions: [] }]],
    requests: [`GET ${base}/explanations/a1`],
    code: 1,
    stderr: "error: No decision about activation 'a1' is known.",
  },
  {
    wsk: 'gpu explain --last',
    answers: [
      [200, [{ activationId: 'a9', name: 'f', namespace: 'alice' }]],
      [200, { sentence: 'Ran 2 ms.', decisions: [] }],
    ],
    requests: ['GET /activations?limit=1&skip=0', `GET ${base}/explanations/a9`],
    stdout: 'Ran 2 ms.\n',
  },
  { wsk: 'gpu explain', code: 1, stderr: errorWithHint('Invalid argument(s). An activation ID is required.') },
  {
    wsk: 'gpu explain --view view.json',
    answers: [[403, { error: 'operators only', code: 'tid' }]],
    requests: [`GET ${base}/view`],
    code: 147,
    stderr: 'error: Unable to save the view of the GPUs: operators only (code tid)',
  },
  {
    wsk: 'gpu explain --view view.json',
    files: { 'view.json': 'old' },
    answers: [[200, { at: 1 }]],
    requests: [`GET ${base}/view`],
    code: 2,
    stderr: errorWithHint("The file 'view.json' already exists"),
  },
]);

test('wsk gpu explain --view writes the view, its numbers as they are', async () => {
  const server = await startFakeOpenWhisk();
  const view = { format: 'gpuwhisk view', version: 1, at: 1.7976931348623157e308, waiting: [{ soloMs: 0.1 + 0.2 }] };
  const decision = { at: 0, activationId: 'a1', policy: 'faashare', reason: 'it waits', rejected: [] };
  server.expect([
    [200, { sentence: 'Queued.', decisions: [decision] }],
    [200, view],
  ]);
  try {
    await withFolder(async (directory) => {
      const words = ['--apihost', server.url, '--auth', 'user:secret', 'gpu', 'explain', 'a1', '--view', 'v.json'];
      expect(await runWsk(words, { directory })).toEqual({
        code: 0,
        stderr: '',
        stdout: 'Queued.\n1970-01-01T00:00:00.000Z  faashare: it waits\nok: saved the view of the GPUs in v.json\n',
      });
      expect(JSON.parse(readFileSync(join(directory, 'v.json'), 'utf8'))).toEqual(view);
    });
  } finally {
    await server.close();
  }
});

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { describeCases, errorWithHint } from './cases.js';
import { startFakeOpenWhisk } from './fake-openwhisk.js';
import { runWsk, withFolder } from './wsk-process.js';

const route = '/api/v1/gpu/functions/classify/profile';
const trial = (share: number, ms: number): object => ({ batch: 1, share, ms });
const kind = { gpuType: 'a100-40', mode: 'mps', mostTrials: 6, trials: [trial(20, 45.2), trial(10, 90)] };
const found = { request: 200, limit: 400, batch: 1, ms: 45.2, keepsGoal: true, reason: 'batch 1 is the greatest' };
const shown = { action: '/alice/classify', version: '0.0.2', state: 'done', goal: { sloMs: 100 } };
const done = { ...shown, kinds: [{ ...kind, profile: found }] };
const failed = { ...kind, trials: [{ batch: 1, share: 10, failure: 'killed' }], failed: 'killed' };

describeCases('wsk gpu profile', [
  {
    wsk: 'gpu profile classify',
    answers: [[200, done]],
    requests: [`GET ${route}`],
    stdout: `/alice/classify 0.0.2 done
a100-40/mps  [####################] 2 trials
Batch      10%      20%
    1  90.0 ms  45.2 ms
request 20 %, limit 40 %, batch 1
batch 1 is the greatest
`,
  },
  {
    wsk: 'gpu profile classify',
    answers: [
      [200, { ...shown, state: 'none', kinds: [] }],
      [202, { ...shown, state: 'waiting', kinds: [kind] }],
    ],
    requests: [`GET ${route}`, `POST ${route}`],
    stdout: `/alice/classify 0.0.2 waiting
a100-40/mps  [#######.............] 2 of at most 6 trials
Batch      10%      20%
    1  90.0 ms  45.2 ms
Trials run while a GPU is idle; the same command shows them.
`,
  },
  {
    wsk: 'gpu profile classify',
    answers: [
      [200, { ...shown, kinds: [failed] }],
      [202, { ...shown, state: 'impossible', problem: 'no sample', kinds: [] }],
    ],
    requests: [`GET ${route}`, `POST ${route}`],
    stdout: '/alice/classify 0.0.2 impossible: no sample',
  },
  {
    wsk: 'gpu profile classify --cancel',
    answers: [[200, { ...shown, state: 'cancelled', kinds: [kind] }]],
    requests: [`DELETE ${route}`],
    stdout: 'ok: /alice/classify is not profiled any more',
  },
  {
    wsk: 'gpu profile classify --svg plot.svg',
    answers: [[200, { ...shown, state: 'impossible', kinds: [] }]],
    requests: [`GET ${route}`],
    code: 1,
    stdout: '/alice/classify 0.0.2 impossible',
    stderr: errorWithHint('There is no trial to plot yet.'),
  },
  {
    wsk: 'gpu profile classify',
    answers: [[400, { error: 'no GPU', code: 'tid' }]],
    requests: [`GET ${route}`],
    code: 144,
    stderr: "error: Unable to obtain the profile of 'classify': no GPU (code tid)",
  },
]);

test('a plot has a line for each batch, and marks request and limit', async () => {
  const server = await startFakeOpenWhisk();
  try {
    await withFolder(async (directory) => {
      server.expect([[200, done]]);
      const flags = ['--apihost', server.url, '--auth', 'user:secret'];
      const result = await runWsk([...flags, 'gpu', 'profile', 'classify', '--svg', 'plot.svg'], { directory });
      expect(result).toMatchObject({ code: 0, stdout: expect.stringContaining('ok: saved the plot in plot.svg') });
      const svg = await readFile(join(directory, 'plot.svg'), 'utf8');
      expect(svg.match(/<polyline/g)).toHaveLength(1);
      expect(svg.match(/<circle/g)).toHaveLength(2);
      expect(svg).toContain('>request<');
      expect(svg).toContain('>limit<');
      expect(svg).not.toContain('NaN');
    });
  } finally {
    await server.close();
  }
});

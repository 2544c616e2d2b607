import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { describeCases, errorWithHint } from './cases.js';
import { startFakeOpenWhisk, type FakeOpenWhisk } from './fake-openwhisk.js';
import { runBinary, runWsk, withFolder, wskBinary, type WskResult } from './wsk-process.js';

const base = '/api/v1/gpu';
const a100 = {
  ...{ invoker: 'invoker0', uuid: 'GPU-0', index: 0, name: 'NVIDIA A100', type: 'a100-40', mode: 'mps', smCount: 108 },
  ...{ memoryMiB: 40960, usedMemoryMiB: 2048, utilisation: 0.256, simulated: true, health: { state: 'healthy' } },
  functions: [
    { container: 'c1', action: '/alice/classify', namespace: 'alice', share: 0.3, memoryMiB: 2048, running: 2 },
    { share: 0.5, memoryMiB: 512, running: 0 },
    { container: 'c2', slice: 'MIG-1', share: 0.2, memoryMiB: 300, heldMiB: 252, running: 0 },
  ],
  workloads: [
    { id: 'ab12', name: 'train', origin: 'registered', pid: 77, memoryMiB: 9000 },
    { name: 'x', origin: 'started' },
  ],
};
const lost = {
  ...{
    invoker: 'invoker12',
    uuid: 'GPU-1',
    type: 'h100',
    mode: 'mig',
    smCount: 132,
    memoryMiB: 81920,
    simulated: false,
  },
  ...{ health: { state: 'offline' }, functions: [], workloads: [] },
};

const devices = `GPU    Invoker    Type                 Mode  State    SMs  Busy  Used MiB    MiB  Functions
GPU-0  invoker0   a100-40 (simulated)  mps   healthy  108   26%      2048  40960          3
GPU-1  invoker12  h100                 mig   offline  132     -         -  81920          0
`;
const picture = `GPU    Invoker    Type                 Mode  State    SMs  Busy  Used MiB    MiB  Functions
    Function            Share   MiB  Holds  Running
GPU-0  invoker0   a100-40 (simulated)  mps   healthy  108   26%      2048  40960          3
    /alice/classify       30%  2048      -        2
    (of others)           50%   512      -        0
    (pre-warmer)          20%   300    252        0  MIG-1
    train (registered)      -  9000      -        -  process 77
    x (started)             -     -      -        -
GPU-1  invoker12  h100                 mig   offline  132     -         -  81920          0
`;
const verbs = 'Invalid argument(s). One of add, list, rate, remove and run is required.';

describeCases('wsk gpu', [
  { wsk: 'gpu devices', answers: [[200, [a100, lost]]], requests: [`GET ${base}/devices`], stdout: devices },
  { wsk: 'gpu top', answers: [[200, [a100, lost]]], requests: [`GET ${base}/devices`], stdout: picture },
  { wsk: 'gpu top --once', answers: [[200, []]], requests: [`GET ${base}/devices`], stdout: 'There is no GPU.' },
  {
    wsk: 'gpu devices',
    answers: [[401, { error: 'who are you?', code: 'tid' }]],
    requests: [`GET ${base}/devices`],
    code: 145,
    stderr: 'error: Unable to obtain the list of GPUs: who are you? (code tid)',
  },
  {
    wsk: 'gpu instances',
    answers: [[200, [a100, lost]]],
    requests: [`GET ${base}/devices`],
    stdout: `Container  Action           GPU    Share   MiB  Running
c1         /alice/classify  GPU-0    0.3  2048        2
c2         -                MIG-1    0.2   300        0
`,
  },
  {
    wsk: 'gpu launch classify --on GPU-0,GPU-1 --percent 30',
    answers: [[200, { action: '/alice/classify', device: 'GPU-0', share: 0.3 }]],
    requests: [`POST ${base}/instances {"action":"classify","devices":["GPU-0","GPU-1"],"mpsPercent":30}`],
    stdout: 'ok: launched an instance of /alice/classify on GPU-0',
  },
  {
    wsk: 'gpu launch slow',
    answers: [[202, { activationId: 'a1' }]],
    requests: [`POST ${base}/instances {"action":"slow"}`],
    stdout: 'ok: an instance of slow starts',
  },
  {
    wsk: 'gpu launch classify',
    answers: [[503, { error: 'The instance was not launched: no room.', code: 'tid' }]],
    requests: [`POST ${base}/instances {"action":"classify"}`],
    code: 247,
    stderr: "error: Unable to launch an instance of 'classify': The instance was not launched: no room. (code tid)",
  },
  {
    wsk: 'gpu retire c1',
    answers: [[200, { container: 'c1', running: 1 }]],
    requests: [`DELETE ${base}/instances/c1`],
    stdout: 'ok: instance c1 ends once nothing runs in it',
  },
  {
    wsk: 'gpu retire c1 --grace 500',
    answers: [[200, { container: 'c1', running: 1 }]],
    requests: [`DELETE ${base}/instances/c1?graceMs=500`],
    stdout: 'ok: instance c1 ends within 500 ms',
  },
  {
    wsk: 'gpu reshare c1 --limit 0.3 --request 0.1',
    answers: [[200, { smRequest: 0.1, smLimit: 0.3 }]],
    requests: [`PUT ${base}/instances/c1 {"smRequest":0.1,"smLimit":0.3}`],
    stdout: 'ok: instance c1 is to have 0.1 to 0.3 of its GPU',
  },
  {
    wsk: 'gpu reshare c1 --limit 1.3',
    code: 1,
    stderr: errorWithHint('Invalid argument(s). --request and --limit are fractions, 0 < request <= limit <= 1.'),
  },
  {
    wsk: 'gpu policy',
    answers: [
      [
        200,
        {
          ...{ policy: 'mps-equal slots=3', admission: 'refuse', decides: false, functions: 2, sharedSets: 1 },
          stages: { admit: 'before-slo', share: 'unlimited' },
          settings: { admit: {}, share: { slots: 3 } },
          models: [
            { gpuType: 'a100-40', mode: 'mps', version: 2, sampleCount: 40, learnedAt: 0, error: 0.1234, runs: 9 },
            { gpuType: 'h100', mode: 'mig', version: 0, sampleCount: 0 },
          ],
        },
      ],
    ],
    requests: [`GET ${base}/policy`],
    stdout: `policy     mps-equal slots=3 (another controller decides now)
admission  refuse
admit      before-slo
share      unlimited  slots=3
learned    2 functions, shares of 1 sets
predictor  a100-40/mps: version 2, learned from 40 runs at 1970-01-01T00:00:00.000Z, off by 12.3 % in 9 runs beside others
predictor  h100/mig: capacity model
`,
  },
  {
    wsk: 'gpu policy try fcfs --minutes 5 --arrivals arrivals.json',
    files: { 'arrivals.json': '[{"function":"f"}]' },
    answers: [
      [
        200,
        {
          ...{ arrivals: 20, leftOut: 1, gpus: 2 },
          results: [
            {
              ...{ policy: 'faashare', meanWaitMs: 1.26, p99WaitMs: 40, meanMs: 100.04 },
              ...{ missed: 1, withSlo: 9, refused: 0, stopped: 0, gpuHours: 0.01234 },
            },
            {
              ...{
                policy: 'fcfs',
                meanWaitMs: 0,
                p99WaitMs: 0,
                meanMs: 0,
                missed: 0,
                withSlo: 9,
                refused: 2,
                stopped: 3,
              },
              ...{ gpuHours: 0, problem: 'it waits' },
            },
          ],
        },
      ],
    ],
    requests: [`POST ${base}/policy/trials {"policy":"fcfs","minutes":5,"arrivals":[{"function":"f"}]}`],
    stdout: `20 arrivals on 2 GPUs; 1 more left out, never measured or of several GPUs
               faashare    fcfs
mean wait, ms       1.3     0.0
P99 wait, ms       40.0     0.0
mean time, ms     100.0     0.0
SLO missed       1 of 9  0 of 9
refused               0       2
stopped               0       3
GPU hours        0.0123  0.0000
fcfs did not end: it waits
Runs take what was learned of them, which favours policies that predict by the same.
`,
  },
  {
    wsk: 'gpu policy tray x',
    code: 1,
    stderr: errorWithHint("Invalid argument(s). 'try' and the name of a policy, or nothing is required."),
  },
  {
    wsk: 'gpu cut GPU-0 3g.20gb,2g.10gb',
    answers: [[200, { profiles: ['3g.20gb', '2g.10gb'] }]],
    requests: [`PUT ${base}/devices/GPU-0/slices {"profiles":["3g.20gb","2g.10gb"]}`],
    stdout: 'ok: GPU GPU-0 is to be cut into 3g.20gb, 2g.10gb, once nothing runs on the slices that go',
  },
  {
    wsk: 'gpu queue',
    answers: [
      [
        200,
        [
          {
            ...{ activationId: 'a1', action: '/alice/f', namespace: 'alice', position: 1, waitedMs: 20, sloMs: 100 },
            ...{ memoryMiB: 2048, gpus: 1, refusals: [], rejected: [] },
          },
          {
            ...{ activationId: 'a2', action: '/alice/long', namespace: 'alice', position: 12, waitedMs: 3000 },
            ...{ memoryMiB: 512, gpus: 2, refusals: [], rejected: [] },
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
            ...{ function: '/alice/f', version: '0.0.1', gpuType: 'rtx3090', mode: 'mps', heldMiB: 900 },
            ...{ features: { smUtil: 0.5, dramUtil: 0.25 }, fillSource: 'launches' },
            batches: [
              {
                ...{ batch: 1, soloMs: 12.34, measured: true, startMs: 250, runs: 5 },
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
    stdout: `Function    Version  GPU          Batch  Alone ms  Start ms  Runs  Slowdown  Predicted  SMs   Told by  DRAM  Holds
/alice/f    0.0.1    rtx3090/mps      1      12.3     250.0     5      1.50       1.35  50%  launches   25%    900
/alice/f    0.0.1    rtx3090/mps      8        -*         -     0         -          -  50%  launches   25%    900
/alice/new  -        h100/mig         -         -         -     0         -          -    -         -     -      -
`,
  },
  {
    wsk: 'gpu quotas',
    answers: [
      [
        200,
        [
          {
            ...{ id: 'k', gpuType: 'rtx3090', mode: 'mps', driverMajor: 550, search: { stage: 'done' } },
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
        [
          {
            ...{ at: 1000, activationId: 'a1', action: '/alice/f', namespace: 'alice', policy: 'faashare' },
            placement: { devices: ['GPU-1'], share: { shareClass: 30 } },
            reason: 'placed',
            rejected: [
              { what: 'GPU-0', reason: 'too little free memory', numbers: { freeMiB: 1, needMiB: 2, rate: 1 / 3 } },
            ],
          },
          {
            ...{ at: 0, activationId: 'a1', action: '/alice/f', namespace: 'alice', policy: 'faashare' },
            ...{ reason: 'it waits', rejected: [] },
          },
        ],
      ],
    ],
    requests: [`GET ${base}/decisions?activation=a1`],
    stdout: `1970-01-01T00:00:00.000Z  faashare: it waits
1970-01-01T00:00:01.000Z  faashare: placed  GPU-1 at 30%
    not GPU-0: too little free memory (freeMiB 1, needMiB 2, rate 0.333)
`,
  },
  {
    wsk: 'gpu explain a1',
    answers: [[200, []]],
    requests: [`GET ${base}/decisions?activation=a1`],
    code: 1,
    stderr: "error: No decision about activation 'a1' is known.",
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
  {
    wsk: 'gpu cordon GPU-0',
    answers: [[200, { uuid: 'GPU-0', wish: 'cordon', at: 1 }]],
    requests: [`PUT ${base}/devices/GPU-0 {"wish":"cordon"}`],
    stdout: 'ok: cordon GPU GPU-0',
  },
  {
    wsk: 'gpu drain GPU-9',
    answers: [[404, { error: 'There is no GPU GPU-9.', code: 'tid' }]],
    requests: [`PUT ${base}/devices/GPU-9 {"wish":"drain"}`],
    code: 148,
    stderr: "error: Unable to drain GPU 'GPU-9': There is no GPU GPU-9. (code tid)",
  },
  { wsk: 'gpu uncordon', code: 1, stderr: errorWithHint('Invalid argument(s). The UUID of a GPU is required.') },
  { wsk: 'gpu devices now', code: 1, stderr: errorWithHint('Invalid argument(s): now. No arguments are required.') },
  {
    wsk: 'gpu workload add train --device GPU-0 --pid 77 --memory 9000 --degradation 0.1',
    answers: [[200, { id: 'ab12', device: 'GPU-0' }]],
    requests: [
      `POST ${base}/workloads {"name":"train","device":"GPU-0","memoryMiB":9000,"maxDegradation":0.1,"pid":77}`,
    ],
    stdout: 'ok: registered workload ab12 on GPU-0',
  },
  {
    wsk: 'gpu workload list',
    answers: [
      [
        200,
        [
          {
            id: 'ab12',
            name: 'train',
            origin: 'registered',
            invoker: 'invoker0',
            device: 'GPU-0',
            pid: 77,
            namespace: 'a',
          },
          {
            id: 'invoker0-5',
            name: 'process 5',
            origin: 'discovered',
            invoker: 'invoker0',
            device: 'GPU-0',
            memoryMiB: 100,
          },
        ],
      ],
    ],
    requests: [`GET ${base}/workloads`],
    stdout: `Workload    Name       Origin      Invoker   GPU    Process  MiB  Namespace
ab12        train      registered  invoker0  GPU-0       77    -  a
invoker0-5  process 5  discovered  invoker0  GPU-0        -  100  -`,
  },
  {
    wsk: 'gpu workloads',
    answers: [[200, [{ id: 'ab12', name: 'train', origin: 'registered', device: 'GPU-0', pid: 77 }]]],
    requests: [`GET ${base}/workloads`],
    stdout: `Workload  Name   Origin      Invoker  GPU    Process  MiB  Namespace
ab12      train  registered  -        GPU-0       77    -  -`,
  },
  { wsk: 'gpu workloads now', code: 1, stderr: errorWithHint('Invalid argument(s): now. No arguments are required.') },
  {
    wsk: 'gpu workload rate ab12 11.5 --baseline 12.5',
    requests: [`PUT ${base}/workloads/ab12 {"rate":11.5,"baselineRate":12.5}`],
    stdout: 'ok: told the rate of workload ab12',
  },
  { wsk: 'gpu workload rate ab12 fast', code: 2, stderr: errorWithHint('the rate must be a number above 0') },
  {
    wsk: 'gpu workload remove ab12',
    requests: [`DELETE ${base}/workloads/ab12`],
    stdout: 'ok: removed workload ab12',
  },
  { wsk: 'gpu workload', code: 1, stderr: errorWithHint(verbs) },
  { wsk: 'gpu workload toString', code: 1, stderr: errorWithHint(verbs) },
  { wsk: 'gpu workload add', code: 1, stderr: errorWithHint('Invalid argument(s). A workload name is required.') },
  {
    wsk: 'gpu workload add a --degradation 5',
    code: 2,
    stderr: errorWithHint('--degradation must be a number from 0 to 1'),
  },
  {
    wsk: 'gpu workload run',
    code: 1,
    stderr: errorWithHint("Invalid argument(s). A command is required, after '--'."),
  },
]);

test('wsk gpu explain --view writes the view, its numbers as they are', async () => {
  const server = await startFakeOpenWhisk();
  const view = { format: 'gpuwhisk view', version: 1, at: 1.7976931348623157e308, waiting: [{ soloMs: 0.1 + 0.2 }] };
  const decision = { at: 0, activationId: 'a1', policy: 'faashare', reason: 'it waits', rejected: [] };
  server.expect([
    [200, [decision]],
    [200, view],
  ]);
  try {
    await withFolder(async (directory) => {
      const words = ['--apihost', server.url, '--auth', 'user:secret', 'gpu', 'explain', 'a1', '--view', 'v.json'];
      expect(await runWsk(words, { directory })).toEqual({
        ...{ code: 0, stderr: '' },
        stdout: '1970-01-01T00:00:00.000Z  faashare: it waits\nok: saved the view of the GPUs in v.json\n',
      });
      expect(JSON.parse(readFileSync(join(directory, 'v.json'), 'utf8'))).toEqual(view);
    });
  } finally {
    await server.close();
  }
});

describe('wsk gpu workload run', () => {
  let server: FakeOpenWhisk;
  beforeAll(async () => {
    server = await startFakeOpenWhisk();
  });
  afterAll(() => server.close());

  const settings = { CUDA_VISIBLE_DEVICES: 'GPU-0', LD_LIBRARY_PATH: '/of/the/gpu' };
  const run = (words: string[], more: object = {}): Promise<WskResult> => {
    server.expect([[200, { id: 'ab12', env: settings }]]);
    return withFolder((directory) =>
      runWsk(['--apihost', server.url, '--auth', 'user:secret', 'gpu', 'workload', 'run', ...words], {
        directory,
        ...more,
      }),
    );
  };
  const requests = (): string[] => server.requests.map(({ line }) => line);

  test('starts a command with its settings, tells its process, and forgets it in the end', async () => {
    const script = 'echo "$$ $GPUWHISK_WORKLOAD $CUDA_VISIBLE_DEVICES $LD_LIBRARY_PATH $*"; exit 7';
    const words = ['--name', 'train', '--percent', '40', '--', 'sh', '-c', script, 'x', '-p', 'y', '--name'];
    const { code, stdout, stderr } = await run(words, { environment: { LD_LIBRARY_PATH: '/own' } });
    const [pid] = stdout.split(' ');
    expect({ code, stdout, stderr }).toEqual({
      ...{ code: 7, stderr: '' },
      stdout: `${pid} ab12 GPU-0 /of/the/gpu:/own -p y --name\n`,
    });
    const [posted, put = '', deleted] = requests();
    expect([posted, put.replace(/,"processStart":[1-9]\d*/, ''), deleted]).toEqual([
      `POST ${base}/workloads ${JSON.stringify({ name: 'train', start: true, command: `sh -c ${script} x -p y --name`, mpsPercent: 40 })}`,
      `PUT ${base}/workloads/ab12 {"pid":${pid}}`,
      `DELETE ${base}/workloads/ab12`,
    ]);
  });

  test('passes a signal on, and ends as the command does', async () => {
    const script = 'trap "echo ended; exit 3" TERM; echo begun; for n in $(seq 400); do sleep 0.05; done';
    const result = await run(['--', 'sh', '-c', script], { signalOn: { stdout: /begun/, signal: 'SIGTERM' } });
    expect(result).toEqual({ code: 3, stdout: 'begun\nended\n', stderr: '' });
    expect(requests().at(-1)).toBe(`DELETE ${base}/workloads/ab12`);
  });

  test('does not mind that its node has seen the end of the command first', async () => {
    server.expect([
      [200, { id: 'ab12', env: settings }],
      [200, {}],
      [404, { error: 'The requested resource does not exist.', code: 'tid' }],
    ]);
    const result = await withFolder((directory) =>
      runWsk(['--apihost', server.url, '--auth', 'user:secret', 'gpu', 'workload', 'run', '--', 'echo', 'ran'], {
        directory,
      }),
    );
    expect(result).toEqual({ code: 0, stdout: 'ran\n', stderr: '' });
  });

  test('says what cannot be started, and forgets it', async () => {
    const { code, stderr } = await run(['/there/is/none']);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^error: Unable to start '\/there\/is\/none': /);
    expect(requests().map((line) => line.split(' ')[0])).toEqual(['POST', 'DELETE']);
  });

  test('starts nothing where the server refuses', async () => {
    server.expect([[409, { error: 'Device GPU-0 takes no MPS clients.', code: 'tid' }]]);
    const result = await withFolder((directory) =>
      runWsk(['--apihost', server.url, '--auth', 'user:secret', 'gpu', 'workload', 'run', '--', 'echo', 'ran'], {
        directory,
      }),
    );
    expect([result.stdout, result.stderr]).toEqual([
      '',
      'error: Unable to register the workload: Device GPU-0 takes no MPS clients. (code tid)\n',
    ]);
    expect(requests()).toHaveLength(1);
  });
});

test('wsk gpu top shows the GPUs again and again on a terminal', async () => {
  const server = await startFakeOpenWhisk();
  server.expect([
    [200, [a100]],
    [500, { error: 'for a moment', code: 'tid' }],
    [200, [lost]],
  ]);
  const inTerminal = 'import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)';
  try {
    const { stdout } = await withFolder((directory) =>
      runBinary(
        'python3',
        ['-c', inTerminal, wskBinary, '--apihost', server.url, '--auth', 'user:secret', 'gpu', 'top'],
        {
          directory,
          environment: { NO_COLOR: '1', TERM: 'xterm' },
          signalOn: { stdout: /invoker12/, signal: 'SIGTERM' },
        },
      ),
    );
    const frames = stdout.split('\u001b[H\u001b[2J').slice(1);
    expect(frames.length).toBeGreaterThanOrEqual(3);
    expect(frames[0]).toContain('/alice/classify');
    expect(frames[1]).toContain('for a moment');
    expect(frames[2]).toContain('GPU-1');
  } finally {
    await server.close();
  }
});

import { expect, test } from '@jest/globals';
import { describeCases, errorWithHint } from './cases.js';
import { startFakeOpenWhisk } from './fake-openwhisk.js';
import { runBinary, withFolder, wskBinary } from './wsk-process.js';

const base = '/api/v1/gpu';

const a100 = {
  invoker: 'invoker0',
  uuid: 'GPU-0',
  index: 0,
  name: 'NVIDIA A100',
  type: 'a100-40',
  mode: 'mps',
  smCount: 108,
  memoryMiB: 40960,
  usedMemoryMiB: 2048,
  utilisation: 0.256,
  simulated: true,
  health: { state: 'healthy' },
  functions: [
    { container: 'c1', action: '/alice/classify', namespace: 'alice', share: 0.3, memoryMiB: 2048, running: 2 },
    { share: 0.5, memoryMiB: 512, running: 0 },
    { container: 'c2', slice: 'MIG-1', share: 0.2, memoryMiB: 300, heldMiB: 252, running: 0 },
  ],
  workloads: [
    {
      ...{ id: 'ab12', name: 'train', origin: 'registered', pid: 77, memoryMiB: 9000, maxDegradation: 0.05 },
      ...{
        baselineRate: 12,
        baselineFrom: 'measured',
        rate: 9,
        reportedAt: 1,
        degradation: 0.25,
        state: 'beyond-bound',
      },
    },
    { name: 'x', origin: 'started', maxDegradation: 0.1, baselineRate: 1000, rate: 7, reportedAt: 1, state: 'stale' },
  ],
};

const lost = {
  invoker: 'invoker12',
  uuid: 'GPU-1',
  type: 'h100',
  mode: 'mig',
  smCount: 132,
  memoryMiB: 81920,
  simulated: false,
  health: { state: 'offline' },
  functions: [],
  workloads: [],
};

const loaded = {
  ...{ action: '/alice/pkg/classify', version: '0.0.2', state: 'loaded', waiting: 1 },
  instances: [
    {
      ...{ state: 'idle', container: 'c1', version: '0.0.2', invoker: 'invoker0', gpus: ['GPU-0'], share: 0.3 },
      ...{ memoryMiB: 2048, heldMiB: 700, loadMs: 900, since: 1000, idleSince: 2000, running: 0 },
    },
    { state: 'loading', gpus: ['GPU-1', 'GPU-2'], share: 1, memoryMiB: 2048, running: 0 },
  ],
};
const drainingOne = (one: object): object => ('container' in one ? { state: 'draining' } : {});

const devices = `GPU    Invoker    Type                 Mode  State    SMs  Busy  Used MiB    MiB  Functions
GPU-0  invoker0   a100-40 (simulated)  mps   healthy  108   26%      2048  40960          3
GPU-1  invoker12  h100                 mig   offline  132     -         -  81920          0
`;

const picture = `GPU    Invoker    Type                 Mode  State    SMs  Busy  Used MiB    MiB  Functions
    Function            Share   MiB  Holds  Running  Baseline  Now  Degradation  Bound
GPU-0  invoker0   a100-40 (simulated)  mps   healthy  108   26%      2048  40960          3
    /alice/classify       30%  2048      -        2
    (of others)           50%   512      -        0
    (pre-warmer)          20%   300    252        0                                     MIG-1
    train (registered)      -  9000      -        -       12*    9          25%     5%  process 77, beyond-bound
    x (started)             -     -      -        -      1000    7            -    10%  stale
GPU-1  invoker12  h100                 mig   offline  132     -         -  81920          0
`;

const counting = {
  ...a100,
  tokenState: 'EMERGENCY',
  functions: [
    {
      ...{ container: 'c1', action: '/alice/classify', namespace: 'alice', share: 0.7, smRequest: 0.3, smLimit: 0.6 },
      ...{ memoryMiB: 2048, running: 1, launches: { blocks: 9, state: 'EMERGENCY', budget: 0.6 } },
    },
    {
      ...{ container: 'c2', action: '/alice/learn', namespace: 'alice', share: 0.5, smRequest: 0.4, smLimit: 0.5 },
      ...{ memoryMiB: 300, running: 1, launches: { blocks: 9, state: 'EMERGENCY' } },
    },
    { share: 0.5, smRequest: 0.5, smLimit: 0.5, memoryMiB: 512, running: 0 },
  ],
  workloads: [],
};

const tokensPicture = `GPU    Invoker    Type                 Mode  State    SMs  Busy  Used MiB    MiB  Functions  Tokens
    Function         Share  Request  Limit  Budget   MiB  Holds  Running
GPU-0  invoker0   a100-40 (simulated)  mps   healthy  108   26%      2048  40960          3  EMERGENCY
    /alice/classify    70%      30%    60%     60%  2048      -        1
    /alice/learn       50%      40%    50%     all   300      -        1
    (of others)        50%      50%    50%       -   512      -        0
GPU-1  invoker12  h100                 mig   offline  132     -         -  81920          0  -
`;

const paired = {
  ...a100,
  functions: [
    ...['fa', 'fb'].map((name, at, all) => ({
      ...{ container: name, action: `/guest/${name}`, namespace: 'guest', share: 1, memoryMiB: 2048, running: 1 },
      sets: [{ text: `trying beside /guest/${all[1 - at]} (3 runs measured)` }],
    })),
  ],
  workloads: [],
};

const pairPicture = `GPU    Invoker   Type                 Mode  State    SMs  Busy  Used MiB    MiB  Functions
    Function   Share   MiB  Holds  Running
GPU-0  invoker0  a100-40 (simulated)  mps   healthy  108   26%      2048  40960          2
    /guest/fa   100%  2048      -        1  trying beside /guest/fb (3 runs measured)
    /guest/fb   100%  2048      -        1  trying beside /guest/fa (3 runs measured)
`;

describeCases('wsk gpu: devices and instances', [
  { wsk: 'gpu top', answers: [[200, [paired]]], requests: [`GET ${base}/devices`], stdout: pairPicture },
  { wsk: 'gpu devices', answers: [[200, [a100, lost]]], requests: [`GET ${base}/devices`], stdout: devices },
  { wsk: 'gpu top', answers: [[200, [a100, lost]]], requests: [`GET ${base}/devices`], stdout: picture },
  { wsk: 'gpu top', answers: [[200, [counting, lost]]], requests: [`GET ${base}/devices`], stdout: tokensPicture },
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
    wsk: 'gpu model load /_/pkg/classify',
    answers: [[200, loaded]],
    requests: [`POST ${base}/functions/%2F_%2Fpkg%2Fclassify/model`],
    stdout: 'ok: /alice/pkg/classify is loaded on GPU-0',
  },
  {
    wsk: 'gpu model load classify',
    answers: [[202, { action: '/alice/classify', version: '0.0.1', state: 'loading', instances: [], waiting: 0 }]],
    requests: [`POST ${base}/functions/classify/model`],
    stdout: 'ok: /alice/classify is being loaded',
  },
  {
    wsk: 'gpu model load classify',
    answers: [[503, { error: 'The instance was not launched: GPU-0: no memory.', code: 'tid' }]],
    requests: [`POST ${base}/functions/classify/model`],
    code: 247,
    stderr:
      "error: Unable to load the model of 'classify': The instance was not launched: GPU-0: no memory. (code tid)",
  },
  {
    wsk: 'gpu model status pkg/classify',
    answers: [[200, loaded]],
    requests: [`GET ${base}/functions/pkg%2Fclassify/model`],
    stdout: `/alice/pkg/classify 0.0.2 loaded, 1 waiting
Container  Version  State    GPU          Share   MiB  Holds  Running  Since                     Last use
c1         0.0.2    idle     GPU-0          0.3  2048    700        0  1970-01-01T00:00:01.000Z  1970-01-01T00:00:02.000Z
-          -        loading  GPU-1,GPU-2      1  2048      -        0  -                         -
`,
  },
  {
    wsk: 'gpu model delete classify --grace 500',
    answers: [[200, { ...loaded, instances: loaded.instances.map((one) => ({ ...one, ...drainingOne(one) })) }]],
    requests: [`DELETE ${base}/functions/classify/model?graceMs=500`],
    stdout: `ok: instances of /alice/pkg/classify that end once nothing runs in them: 1
instances that have yet to start, delete again: 1
`,
  },
  {
    wsk: 'gpu model delete classify',
    answers: [[200, { ...loaded, instances: [] }]],
    requests: [`DELETE ${base}/functions/classify/model`],
    stdout: 'ok: no instance of /alice/pkg/classify is loaded',
  },
  {
    wsk: 'gpu model unload classify',
    code: 1,
    stderr: errorWithHint('Invalid argument(s). One of load, delete and status is required.'),
  },
  { wsk: 'gpu model load', code: 1, stderr: errorWithHint('Invalid argument(s). An action name is required.') },
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
    wsk: 'gpu cut GPU-0 3g.20gb,2g.10gb',
    answers: [[200, { profiles: ['3g.20gb', '2g.10gb'] }]],
    requests: [`PUT ${base}/devices/GPU-0/slices {"profiles":["3g.20gb","2g.10gb"]}`],
    stdout: 'ok: GPU GPU-0 is to be cut into 3g.20gb, 2g.10gb, once nothing runs on the slices that go',
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
]);

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

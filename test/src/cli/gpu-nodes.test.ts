import { describeCases, errorWithHint } from './cases.js';

const base = '/api/v1/gpu';
const nodes = {
  wanted: 2,
  nodes: [
    {
      ...{ invoker: 'invoker3', state: 'leaving', market: 'spot', pricePerHour: 9.8318, leavesAt: 0 },
      ...{ machine: 'i-1', labels: {}, devices: ['GPU-0', 'GPU-1'], running: 3 },
    },
    { state: 'booting', market: 'on-demand', machine: 'gw-2', labels: {}, devices: [], running: 0 },
  ],
};
const cost = {
  ...{ from: '2026-01-01', to: '2026-01-30', total: 11, idle: 2.5, boot: 1 },
  functions: [
    { namespace: 'alice', action: '/alice/f', gpuSeconds: 1800, cost: 5 },
    { namespace: 'bob', action: '/alice/f', gpuSeconds: 900.04, cost: 2.50004 },
  ],
  markets: [{ market: 'spot', hours: 1.1, cost: 11, idle: 2.5, boot: 1 }],
};

describeCases('wsk gpu: nodes and costs', [
  {
    wsk: 'gpu nodes',
    answers: [[200, nodes]],
    requests: [`GET ${base}/nodes`],
    stdout: `Invoker   Market     Price/h  GPUs  Running  Machine  State
invoker3  spot        9.8318     2        3  i-1      leaving at 1970-01-01T00:00:00.000Z
-         on-demand        -     0        0  gw-2     booting

2 rented nodes are wanted
`,
  },
  {
    wsk: 'gpu rent 3',
    answers: [[200, { wanted: 3 }]],
    requests: [`PUT ${base}/nodes {"wanted":3}`],
    stdout: 'ok: 3 rented nodes are wanted',
  },
  { wsk: 'gpu rent x', code: 1, stderr: errorWithHint("Invalid argument(s). 'x' is no number of nodes.") },
  {
    wsk: 'gpu notice invoker3 --in 120',
    answers: [[200, {}]],
    requests: [`PUT ${base}/nodes/invoker3/notice {"inS":120}`],
    stdout: 'ok: invoker3 leaves in 120 s',
  },
  {
    wsk: 'gpu notice invoker3 --withdraw',
    answers: [[200, {}]],
    requests: [`DELETE ${base}/nodes/invoker3/notice`],
    stdout: 'ok: invoker3 has no notice',
  },
  {
    wsk: 'gpu notice invoker3',
    code: 1,
    stderr: errorWithHint('Invalid argument(s). Either --in or --withdraw is required.'),
  },
  {
    wsk: 'gpu cost --days 30',
    answers: [[200, cost]],
    requests: [`GET ${base}/cost?days=30`],
    stdout: `2026-01-01 to 2026-01-30 (UTC)
Namespace  Action    GPU-seconds    Cost
alice      /alice/f       1800.0  5.0000
bob        /alice/f        900.0  2.5000

Market  Hours     Cost    Idle    Boot
spot     1.10  11.0000  2.5000  1.0000

Total: 11.0000
`,
  },
  {
    wsk: 'gpu cost --csv',
    answers: [[200, 'namespace,action,gpuSeconds,cost\r\nbob,/alice/f,900,2.5\r\n']],
    requests: [`GET ${base}/cost?format=csv`],
    stdout: 'namespace,action,gpuSeconds,cost\r\nbob,/alice/f,900,2.5\r\n',
  },
]);

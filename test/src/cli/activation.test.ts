import { expect, test } from '@jest/globals';
import { describeCases, errorWithHint, printed } from './cases.js';
import type { Answer } from './fake-openwhisk.js';
import { startFakeOpenWhisk } from './fake-openwhisk.js';
import { runWsk, withFolder } from './wsk-process.js';

const first = '0123456789abcdef0123456789abcdef';
const second = 'f123456789abcdef0123456789abcdef';
const logs = ['2023-11-14T22:13:20.123456789Z stdout: hi there', '2023-11-14T22:13:20.2Z stderr: oops', 'plain'];

const record = {
  publish: false,
  annotations: [
    { key: 'kind', value: 'nodejs:20' },
    { key: 'initTime', value: 30 },
  ],
  logs,
  response: { size: 9, result: { b: 1, a: [1, {}] }, success: true, statusCode: 0, status: 'success' },
  duration: 1234,
  end: 1700000001234,
  start: 1700000000000,
  activationId: first,
  subject: 'guest',
  version: '0.0.1',
  name: 'hello',
  namespace: 'guest',
};

const recordPrinted = printed({
  namespace: 'guest',
  name: 'hello',
  version: '0.0.1',
  subject: 'guest',
  activationId: first,
  start: 1700000000000,
  end: 1700000001234,
  duration: 1234,
  statusCode: 0,
  response: { status: 'success', statusCode: 0, success: true, result: { a: [1, {}], b: 1 } },
  logs,
  annotations: record.annotations,
  publish: false,
});

const summaries: Answer = [
  200,
  [
    { ...record, statusCode: 0 },
    {
      namespace: 'a-very-long-namespace-name-x',
      name: 'an-action-with-quite-a-long-name-indeed',
      version: '0.0.12',
      activationId: second,
      start: 1700000000000,
      end: 1700000065500,
      duration: 65500,
      statusCode: 2,
      annotations: [],
    },
    {
      ...record,
      activationId: second,
      start: 1700003600000,
      end: 0,
      duration: 0,
      statusCode: 1,
      annotations: [{ key: 'kind', value: 'nodejs:20' }],
    },
    {
      ...record,
      activationId: first,
      start: 1700003600000,
      end: 0,
      duration: 0,
      statusCode: 3,
      annotations: [
        { key: 'kind', value: 'nodejs:20' },
        { key: 'start', value: 'none' },
      ],
    },
  ],
];

const notThere: Answer = [404, { error: 'The requested resource does not exist.', code: 'tid1' }];
const stripped = 'hi there\noops\nplain';
const lastThen = (suffix: string): string[] => [
  'GET /activations?limit=1&skip=0',
  `GET /activations/${first}${suffix}`,
];

describeCases('activation list', [
  {
    wsk: 'activation list',
    answers: [summaries],
    requests: ['GET /activations?limit=30&skip=0'],
    stdout: [
      'Datetime            Activation ID                    Kind      Start Duration   Status            Entity',
      `2023-11-14 22:13:20 ${first} nodejs:20 cold  1.234s     success           guest/hello:0.0.1`,
      `2023-11-14 22:13:20 ${second} unknown   -     1m5.5s     developer error   a-very-lon...-name-x/an-action-with-...-name-indeed:0.0.12`,
      `2023-11-14 23:13:20 ${second} nodejs:20 warm  0s         application error guest/hello:0.0.1`,
      `2023-11-14 23:13:20 ${first} nodejs:20 -     0s         internal error    guest/hello:0.0.1`,
    ].join('\n'),
  },
  {
    wsk: 'activation list none',
    answers: [[200, []]],
    requests: ['GET /activations?limit=30&name=none&skip=0'],
    stdout: '\n',
  },
  {
    wsk: 'activation list /ns/p/a -l 3 -s 1 --since 5 --upto 10',
    answers: [[200, []]],
    requests: ['GET /activations?limit=3&name=p%2Fa&since=5&skip=1&upto=10'],
    stdout: '\n',
  },
  {
    wsk: 'activation list -f',
    answers: [[200, [record, { activationId: 'x' }]]],
    requests: ['GET /activations?docs=true&limit=30&skip=0'],
    stdout: `activations\n${recordPrinted}${printed({
      namespace: '',
      name: '',
      version: '',
      subject: '',
      activationId: 'x',
      start: 0,
      end: 0,
      duration: 0,
      statusCode: 0,
      response: { status: '', statusCode: 0, success: false },
      logs: null,
      annotations: null,
    })}`,
  },
  {
    wsk: 'activation list -l 201',
    answers: [[400, { error: 'too many', code: 'tid' }]],
    requests: ['GET /activations?limit=201&skip=0'],
    code: 144,
    stderr: "error: Unable to obtain the list of activations for namespace 'default': too many (code tid)",
  },
  {
    wsk: 'activation list a b',
    code: 1,
    stderr: errorWithHint('Invalid argument(s): b. An optional namespace is the only valid argument.'),
  },
]);

describeCases('activation get, logs, result', [
  {
    wsk: `activation get ${first}`,
    answers: [[200, record]],
    requests: [`GET /activations/${first}`],
    stdout: `ok: got activation ${first}\n${recordPrinted}`,
  },
  {
    wsk: 'activation get x response',
    answers: [[200, record]],
    requests: ['GET /activations/x'],
    stdout: `ok: got activation x, displaying field response\n${printed({ status: 'success', statusCode: 0, success: true, result: { a: [1, {}], b: 1 } })}`,
  },
  {
    wsk: 'activation get x statusCode',
    answers: [[200, { ...record, response: { status: 'action developer error' } }]],
    requests: ['GET /activations/x'],
    stdout: 'ok: got activation x, displaying field statusCode\n2',
  },
  { wsk: 'activation get x status', code: 1, stderr: "error: Invalid field filter 'status'." },
  {
    wsk: 'activation get 44794bd6aab74415b4e42a308d880e5b name --last',
    answers: [[200, [record]]],
    requests: lastThen('').slice(0, 1),
    code: 1,
    stderr: errorWithHint('Invalid argument(s): 44794bd6aab74415b4e42a308d880e5b. An activation ID is required.'),
  },
  {
    wsk: 'activation get --last name',
    answers: [summaries, [200, record]],
    requests: lastThen(''),
    stdout: `ok: got activation ${first}, displaying field name\n"hello"`,
  },
  {
    wsk: 'activation get -l',
    answers: [[200, []]],
    requests: ['GET /activations?limit=1&skip=0'],
    code: 1,
    stderr: errorWithHint('Unable to get activation: Activation list does not contain any activations.'),
  },
  { wsk: 'activation get x -g', answers: [[200, record]], requests: ['GET /activations/x'], stdout: stripped },
  {
    wsk: 'activation get x -s',
    answers: [[200, record]],
    requests: ['GET /activations/x'],
    stdout: `activation result for '/guest/hello' (success at 2023-11-14 22:13:21 +0000 UTC)\n${printed({ a: [1, {}], b: 1 })}`,
  },
  { wsk: 'activation get', code: 1, stderr: errorWithHint('Invalid argument(s). An activation ID is required.') },
  {
    wsk: 'activation get x',
    answers: [notThere],
    requests: ['GET /activations/x'],
    code: 148,
    stderr: "error: Unable to get activation 'x': The requested resource does not exist. (code tid1)",
  },
  {
    wsk: 'activation logs x',
    answers: [[200, { logs }]],
    requests: ['GET /activations/x/logs'],
    stdout: logs.join('\n'),
  },
  { wsk: 'activation logs x -r', answers: [[200, { logs }]], requests: ['GET /activations/x/logs'], stdout: stripped },
  {
    wsk: 'activation logs --last --strip',
    answers: [summaries, [200, { logs }]],
    requests: lastThen('/logs'),
    stdout: stripped,
  },
  {
    wsk: 'activation logs x',
    answers: [notThere],
    requests: ['GET /activations/x/logs'],
    code: 148,
    stderr: "error: Unable to get logs for activation 'x': The requested resource does not exist. (code tid1)",
  },
  {
    wsk: 'activation logs x y',
    code: 1,
    stderr: errorWithHint('Invalid argument(s): y. An activation ID is required.'),
  },
  {
    wsk: 'activation result x',
    answers: [[200, { status: 'success', result: { b: 1, a: 2 } }]],
    requests: ['GET /activations/x/result'],
    stdout: printed({ a: 2, b: 1 }),
  },
  {
    wsk: 'activation result -l',
    answers: [summaries, [200, { result: [] }]],
    requests: lastThen('/result'),
    stdout: '[]',
  },
  {
    wsk: 'activation result x',
    answers: [notThere],
    requests: ['GET /activations/x/result'],
    code: 148,
    stderr: "error: Unable to get result for activation 'x': The requested resource does not exist. (code tid1)",
  },
]);

const polled = (name: string, id: string, lines: string[] | null): string =>
  `\nActivation: '${name}' (${id})\n${printed(lines)}`;

const counted = (activations: number): Answer => [200, { activations }];
const intro = 'Enter Ctrl-c to exit.\nPolling for activation logs\n';

test('wsk activation poll prints each activation once, whatever the order of their records, and goes on after a failure', async () => {
  const server = await startFakeOpenWhisk();
  const now = Date.now();
  const longest = { ...record, start: now - 3000 };
  const known = { ...record, activationId: 'a'.repeat(32), start: now - 2000 };
  const later = { ...record, name: 'later', activationId: second, start: now - 1000, logs: [] };
  server.expect([
    [500, ''],
    [200, [known]],
    counted(1),
    [500, ''],
    counted(2),
    [200, [later, known]],
    // It had started before both, and ran longer.
    counted(3),
    [200, [later, known, longest]],
  ]);
  const result = await withFolder((directory) =>
    runWsk(['--apihost', server.url, '--auth', 'a:b', 'activation', 'poll', 'hello'], {
      directory,
      signalOn: { stdout: /'hello'[^]*\]/, signal: 'SIGINT' },
    }),
  );
  await server.close();
  const news = `${polled('later', second, [])}${polled('hello', first, logs)}`;
  expect(result).toEqual({ code: 1, stdout: `${intro}${news}Poll terminated\n`, stderr: '' });
  const path = 'GET /api/v1/namespaces/_/activations';
  const count = `${path}?count=true&name=hello`;
  const list = `${path}?docs=true&limit=50&name=hello&skip=0`;
  const atStart = `${path}?limit=200&name=hello&skip=0`;
  const lines = server.requests.map(({ line }) => line.replace(/&since=\d+/, ''));
  expect(lines).toEqual([atStart, atStart, count, count, count, list, count, list]);
  // Looks back an hour at each time.
  const since = server.requests.flatMap(({ line }) => /&since=(\d+)/.exec(line)?.[1] ?? []).map(Number);
  expect(since).toHaveLength(6);
  for (const from of since) expect(now - from).toBeLessThanOrEqual(3_600_000);
  expect(new Set(since).size).toBeGreaterThan(1);
});

test('wsk activation poll reads further pages until all new records are found', async () => {
  const server = await startFakeOpenWhisk();
  const many = Array.from({ length: 51 }, (_, at) => ({
    ...record,
    logs: [],
    activationId: String(at).padStart(32, '0'),
    start: Date.now() - at,
  }));
  server.expect([[200, []], counted(51), [200, many.slice(0, 50)], [200, many.slice(49)]]);
  const result = await withFolder((directory) =>
    runWsk(['--apihost', server.url, '--auth', 'a:b', 'activation', 'poll', '-e', '1'], { directory }),
  );
  await server.close();
  expect(result.stdout).toBe(intro + many.map(({ activationId }) => polled('hello', activationId, [])).join(''));
});

test('wsk activation poll looks for activations that began up to an hour before it', async () => {
  const server = await startFakeOpenWhisk();
  const [now, hour] = [Date.now(), 3_600_000];
  const many = Array.from({ length: 1400 }, (_, at) => ({
    ...record,
    activationId: String(at).padStart(32, '0'),
    start: now - (at < 1100 ? 0 : 2 * hour) - at,
  }));
  const pages = [0, 1, 2, 3, 4, 5].map((page): Answer => [200, many.slice(200 * page, 200 * (page + 1))]);
  server.expect([...pages, counted(1199)]);
  await withFolder((directory) =>
    runWsk(['--apihost', server.url, '--auth', 'a:b', 'activation', 'poll', '-e', '1'], { directory }),
  );
  await server.close();
  expect(server.requests).toHaveLength(7);
  const path = 'GET /api/v1/namespaces/_/activations';
  expect(server.requests[6]?.line).toBe(`${path}?count=true&since=${now - 2 * hour - 1198}`);
});

test('wsk activation poll --since-minutes 2 --exit 1 ends by itself', async () => {
  const server = await startFakeOpenWhisk();
  const before = Date.now();
  const result = await withFolder((directory) =>
    runWsk(['--apihost', server.url, '--auth', 'a:b', 'activation', 'poll', '--since-minutes', '2', '-e', '1'], {
      directory,
    }),
  );
  await server.close();
  expect(result).toEqual({ code: 0, stdout: intro, stderr: '' });
  expect(server.requests).toHaveLength(1);
  const since = Number(new URL(server.requests[0]?.line.split(' ')[1] ?? '', server.url).searchParams.get('since'));
  expect(Math.abs(since - (before - 120_000))).toBeLessThan(5000);
});

const event = (name: string, data: object): string => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
const stream = { 'Content-Type': 'text/event-stream' };

test('wsk activation logs --follow continues behind the last line after a broken connection', async () => {
  const server = await startFakeOpenWhisk();
  server.expect([
    [200, event('lines', { lines: logs.slice(0, 2) }), stream],
    [200, event('lines', { lines: logs.slice(0, 1) }) + event('end', { status: 503, error: 'it stops' }), stream],
    [200, event('beat', {}) + event('lines', { lines: logs }) + event('end', { status: 200 }), stream],
  ]);
  const result = await withFolder((directory) =>
    runWsk(['--apihost', server.url, '--auth', 'a:b', 'activation', 'logs', first, '--follow', '--strip'], {
      directory,
    }),
  );
  await server.close();
  expect(result).toEqual({ code: 0, stdout: `${stripped}\n`, stderr: '' });
  const line = `GET /api/v1/namespaces/_/activations/${first}/logs?follow=true`;
  expect(server.requests.map((request) => request.line)).toEqual([line, line, line]);
});

describeCases('activation logs --follow', [
  {
    wsk: `activation logs ${first} -f`,
    answers: [[200, { logs }]],
    requests: [`GET /activations/${first}/logs?follow=true`],
    stdout: logs.join('\n'),
  },
  {
    wsk: 'activation logs x --follow',
    answers: [notThere],
    requests: ['GET /activations/x/logs?follow=true'],
    code: 148,
    stderr: "error: Unable to get logs for activation 'x': The requested resource does not exist. (code tid1)",
  },
  {
    wsk: 'activation logs x --follow',
    answers: [
      [
        200,
        event('lines', { lines: ['a'] }) +
          event('dropped', { lines: 7 }) +
          event('again', {}) +
          event('lines', { lines: ['b'] }) +
          event('end', { status: 401, error: 'no more' }),
        stream,
      ],
    ],
    requests: ['GET /activations/x/logs?follow=true'],
    code: 145,
    stdout: 'a\nb',
    stderr:
      '7 lines were dropped, as they were read too slowly.\nThe action runs again; its log begins again.\n' +
      "error: Unable to get logs for activation 'x': no more",
  },
]);

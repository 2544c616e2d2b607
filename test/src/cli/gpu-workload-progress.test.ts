// `wsk gpu workload run`: rates that a command's output, its log, or the Python module report.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { join } from 'node:path';
import { describeCases, errorWithHint } from './cases.js';
import { startFakeOpenWhisk, type Answer, type FakeOpenWhisk } from './fake-openwhisk.js';
import { hasPython } from '../support/machine.js';
import { runBinary, runWsk, withFolder, type WskResult } from './wsk-process.js';

const route = '/api/v1/gpu/workloads/ab12';
const caseMs = 60_000;

describeCases('wsk gpu workload run: progress', [
  {
    wsk: ['gpu', 'workload', 'run', '--progress', 'step \\d+', '--', 'echo', 'ran'],
    code: 2,
    stderr: errorWithHint('--progress must have one group, the number of steps (it has 0)'),
  },
  {
    wsk: ['gpu', 'workload', 'run', '--progress', '(\\d+)/(\\d+)', '--', 'echo', 'ran'],
    code: 2,
    stderr: errorWithHint('--progress must have one group, the number of steps (it has 2)'),
  },
  {
    wsk: ['gpu', 'workload', 'run', '--progress', '(', '--', 'echo', 'ran'],
    code: 2,
    stderr: errorWithHint(
      '--progress must be a regular expression: Invalid regular expression: /(/: Unterminated group',
    ),
  },
  {
    wsk: ['gpu', 'workload', 'run', '--progress', '(\\d+)', '--progress-is', 'time', '--', 'echo', 'ran'],
    code: 2,
    stderr: errorWithHint('--progress-is must be count or rate'),
  },
  {
    wsk: ['gpu', 'workload', 'run', '--progress-log', 'a.log', '--', 'echo', 'ran'],
    code: 2,
    stderr: errorWithHint('--progress-log requires --progress'),
  },
]);

describe('a workload that reports', () => {
  let server: FakeOpenWhisk;
  beforeAll(async () => {
    server = await startFakeOpenWhisk();
  });
  afterAll(() => server.close());

  const run = (words: string[], directory: string, answers: Answer[] = []): Promise<WskResult> => {
    server.expect([[200, { id: 'ab12', env: {} }], ...answers]);
    const flags = ['--apihost', server.url, '--auth', 'user:secret', 'gpu', 'workload', 'run'];
    return runWsk([...flags, ...words], { directory, environment: { PYTHONDONTWRITEBYTECODE: '1' } });
  };
  /** The reported rates, in order. */
  const rates = (): number[] =>
    server.requests
      .map(({ line }) => line)
      .filter((line) => line.startsWith(`PUT ${route} {"rate":`))
      .map((line) => (JSON.parse(line.slice(`PUT ${route} `.length)) as { rate: number }).rate);
  /** Twenty steps a second for `seconds`. */
  const loop = (seconds: number, line: string): string =>
    `n=0; while [ $n -lt ${seconds * 20} ]; do n=$((n+1)); ${line}; sleep 0.05; done`;

  test(
    'is followed in its output, which passes unchanged, at most once a second',
    async () => {
      const script = `${loop(4, 'printf "step $n\\r" >&2')}; printf 'end without a line'; exit 5`;
      const beganMs = Date.now();
      const result = await withFolder((folder) => run(['--progress', 'step (\\d+)', '--', 'sh', '-c', script], folder));
      const seconds = (Date.now() - beganMs) / 1000;
      const steps = Array.from({ length: 80 }, (_, at) => `step ${at + 1}\r`);
      expect(result).toEqual({ code: 5, stdout: 'end without a line', stderr: steps.join('') });
      const told = rates();
      expect(told.length).toBeGreaterThanOrEqual(2);
      expect(told.length).toBeLessThanOrEqual(seconds);
      // A busy machine makes the loop slower, never faster.
      for (const rate of told) expect(rate).toBeGreaterThan(2);
      for (const rate of told) expect(rate).toBeLessThan(25);
      expect(server.requests.at(-1)!.line).toBe(`DELETE ${route}`);
    },
    caseMs,
  );

  test(
    'is followed in a log that is replaced, from its end on',
    async () => {
      await withFolder(async (folder) => {
        const log = join(folder, 'train.log');
        const script = `${loop(2, 'echo "n=$n" >> "$0"')}; rm "$0"; ${loop(2, 'echo "n=$n" >> "$0"')}`;
        const old = `seq -f 'n=%g' 1000 > "$0"`;
        await runBinary('sh', ['-c', old, log], { directory: folder });
        const words = ['--progress', '^n=(\\d+)$', '--progress-log', log, '--', 'sh', '-c', script, log];
        expect(await run(words, folder)).toEqual({ code: 0, stdout: '', stderr: '' });
        expect(rates().length).toBeGreaterThanOrEqual(2);
        for (const rate of rates()) expect(rate).toBeLessThan(40);
      });
    },
    caseMs,
  );

  test(
    'tells its rate itself, and only while it has told a new one',
    async () => {
      const script = 'for rate in nan -1 0 2.5; do echo "$rate it/s"; done; sleep 3.5';
      await withFolder((folder) =>
        run(['--progress', '^(.*) it/s', '--progress-is', 'rate', '--', 'sh', '-c', script], folder),
      );
      expect(rates()).toEqual([2.5]);
    },
    caseMs,
  );

  test(
    'goes on while the server fails, of which one line tells',
    async () => {
      const failures: Answer[] = Array.from({ length: 10 }, () => [503, { error: 'Not now.', code: 'tid' }]);
      const { code, stderr } = await withFolder((folder) =>
        run(['--progress', '(\\d+)', '--', 'sh', '-c', loop(4, 'echo $n')], folder, [[200, {}], ...failures]),
      );
      expect(code).toBe(0);
      expect(rates().length).toBeGreaterThanOrEqual(2);
      expect(stderr.match(/Unable to tell the server of the workload's rate: Not now\./g)).toHaveLength(1);
    },
    caseMs,
  );

  (hasPython ? describe : describe.skip)('from Python', () => {
    const training = (body: string): string[] => ['python3', '-c', `import gpuwhisk_training, time\n${body}`];

    test(
      'has the rate of its steps reported, by the module that it finds',
      async () => {
        const { code, stdout, stderr } = await withFolder((folder) =>
          run(
            ['--', ...training('for n in range(80):\n  gpuwhisk_training.step(4)\n  time.sleep(0.05)\nprint("done")')],
            folder,
          ),
        );
        expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: 'done\n', stderr: '' });
        expect(rates().length).toBeGreaterThanOrEqual(2);
        for (const rate of rates()) expect(rate).toBeGreaterThan(8);
        for (const rate of rates()) expect(rate).toBeLessThan(82);
        const report = server.requests.find(({ line }) => line.includes('"rate"'))!;
        expect(report.headers.authorization).toBe(`Basic ${Buffer.from('user:secret').toString('base64')}`);
      },
      caseMs,
    );

    test(
      'does not stall in pauses of less than a second',
      async () => {
        const body = `for n in range(6):
  for m in range(10): gpuwhisk_training.step()
  time.sleep(0.5)`;
        await withFolder((folder) => run(['--', ...training(body)], folder));
        const reports = server.requests.map(({ line }) => line).filter((line) => line.includes('"rate": '));
        expect(reports.length).toBeGreaterThan(1);
        expect(reports.join()).not.toContain('"stalled": true');
      },
      caseMs,
    );

    test(
      'is reported as ever slower while a step does not end, and not from a process that it forks',
      async () => {
        const body = `import os
for n in range(30):
  gpuwhisk_training.step()
  time.sleep(0.05)
if os.fork() == 0:
  for n in range(1000): gpuwhisk_training.step()
  os._exit(0)
time.sleep(4)`;
        await withFolder((folder) => run(['--', ...training(body)], folder));
        const told = rates();
        expect(told[0]).toBeGreaterThan(2);
        expect(told.at(-1)).toBeLessThan(0.6);
        expect(server.requests.at(-2)!.line).toContain(', "stalled": true}');
      },
      caseMs,
    );

    test(
      'goes on with bad counts, a refusal, a server that hangs, and no server',
      async () => {
        const body = `import os
began = time.monotonic()
for n in range(25):
  for count in (None, "x", -1, float("nan"), float("inf"), [], 1): gpuwhisk_training.step(count)
  time.sleep(0.05)
print(time.monotonic() - began < 10)`;
        const refused = await withFolder((folder) =>
          run(['--', ...training(body)], folder, [
            [200, {}],
            [403, { error: 'no', code: 'tid' }],
          ]),
        );
        expect(refused).toEqual({ code: 0, stdout: 'True\n', stderr: '' });
        const module = join(import.meta.dirname, '../../../runtimes/training');
        const sockets: Socket[] = [];
        const silent = createServer((socket) => sockets.push(socket));
        await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
        const hanging = `http://127.0.0.1:${(silent.address() as AddressInfo).port}/api/v1`;
        for (const api of [undefined, 'http://127.0.0.1:1/api/v1', 'nonsense', hanging]) {
          const environment = {
            ...{ PYTHONPATH: module, PYTHONDONTWRITEBYTECODE: '1', GPUWHISK_WORKLOAD_AUTH: 'a:b' },
            ...(api !== undefined && { GPUWHISK_WORKLOAD: 'ab12', GPUWHISK_WORKLOAD_API: api }),
          };
          const [python = '', ...args] = training(body);
          const alone = await withFolder((directory) => runBinary(python, args, { directory, environment }));
          expect(alone).toEqual({ code: 0, stdout: 'True\n', stderr: '' });
        }
        expect(sockets.length).toBeGreaterThan(0);
        for (const socket of sockets) socket.destroy();
        silent.close();
      },
      caseMs,
    );
  });
});

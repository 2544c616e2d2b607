import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { describeCases, errorWithHint } from './cases.js';
import { startFakeOpenWhisk, type FakeOpenWhisk } from './fake-openwhisk.js';
import { runWsk, withFolder, type WskResult } from './wsk-process.js';

const base = '/api/v1/gpu';

const verbs = 'Invalid argument(s). One of add, list, rate, remove and run is required.';

describeCases('wsk gpu: workloads', [
  {
    wsk: 'gpu workload add train --device GPU-0 --pid 77 --memory 9000 --degradation 0.1 --baseline 12.5',
    answers: [[200, { id: 'ab12', device: 'GPU-0' }]],
    requests: [
      `POST ${base}/workloads {"name":"train","device":"GPU-0","memoryMiB":9000,"maxDegradation":0.1,"baselineRate":12.5,"pid":77}`,
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
            maxDegradation: 0.1,
            baselineRate: 12.5,
            baselineFrom: 'measured',
            rate: 11.4999,
            reportedAt: 1,
            degradation: 0.08,
            state: 'within-bound',
          },
          {
            id: 'invoker0-5',
            name: 'process 5',
            origin: 'discovered',
            invoker: 'invoker0',
            device: 'GPU-0',
            memoryMiB: 100,
            maxDegradation: 0,
            estimatedDegradation: 0.5,
            estimatedFrom: 'shares',
          },
        ],
      ],
    ],
    requests: [`GET ${base}/workloads`],
    stdout: `Workload    Name       Origin      Invoker   GPU    Process  MiB  Baseline   Now  Degradation  Bound  State         Namespace
ab12        train      registered  invoker0  GPU-0       77    -     12.5*  11.5           8%    10%  within-bound  a
invoker0-5  process 5  discovered  invoker0  GPU-0        -  100         -     -         ~50%     0%  -             -`,
  },
  {
    wsk: 'gpu workloads',
    answers: [[200, [{ id: 'ab12', name: 'train', origin: 'registered', device: 'GPU-0', pid: 77, attested: false }]]],
    requests: [`GET ${base}/workloads`],
    stdout: `Workload  Name   Origin      Invoker  GPU    Process  MiB  Baseline  Now  Degradation  Bound  State       Namespace
ab12      train  registered  -        GPU-0       77    -         -    -            -      -  unattested  -`,
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
  {
    wsk: 'gpu workload add train',
    answers: [[200, { id: 'ab\u001b[2J\u009b1A12', device: 'GPU\u0007-0' }]],
    requests: [`POST ${base}/workloads {"name":"train"}`],
    stdout: 'ok: registered workload ab[2J1A12 on GPU-0',
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
    wsk: 'gpu workload add a --baseline 0',
    code: 2,
    stderr: errorWithHint('--baseline must be a number above 0'),
  },
  {
    wsk: 'gpu workload run',
    code: 1,
    stderr: errorWithHint("Invalid argument(s). A command is required, after '--'."),
  },
]);

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
      code: 7,
      stderr: '',
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

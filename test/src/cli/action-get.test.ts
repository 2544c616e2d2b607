import { describeCases, errorWithHint, printed } from './cases.js';
import type { Answer } from './fake-openwhisk.js';

const notThere: Answer = [404, { error: 'The requested resource does not exist.', code: 'tid1' }];

/** An action whose members are out of order, with some that wsk does not know. */
const hello = {
  unknown: 1,
  updated: 1700000000000,
  publish: false,
  limits: { concurrency: 1, logs: 10, memory: 256, timeout: 60000 },
  parameters: [{ init: true, value: { b: 1, a: [] }, key: 'p' }],
  annotations: [
    { key: 'web-export', value: true },
    { key: 'exec', value: 'nodejs:20' },
  ],
  exec: { binary: false, main: 'm', code: 'x<&>\u2028', kind: 'nodejs:20' },
  version: '0.0.2',
  name: 'hello',
  namespace: 'guest',
};

const helloPrinted = printed({
  namespace: 'guest',
  name: 'hello',
  version: '0.0.2',
  exec: { kind: 'nodejs:20', code: 'x<&>\u2028', main: 'm', binary: false },
  annotations: hello.annotations,
  parameters: [{ key: 'p', value: { a: [], b: 1 } }],
  limits: { timeout: 60000, memory: 256, logs: 10, concurrency: 1 },
  publish: false,
  updated: 1700000000000,
}).replace('\u2028', '\\u2028');

const get = ['GET /actions/hello?code=false'];
const save = ['GET /actions/hello?code=true'];
const withExec = (exec: object): Answer[] => [[200, { ...hello, exec }]];
const field = (name: string): string => `ok: got action hello, displaying field ${name}\n`;

describeCases('action get', [
  { wsk: 'action get hello', answers: [[200, hello]], requests: get, stdout: `ok: got action hello\n${helloPrinted}` },
  {
    wsk: 'action get hello Limits',
    answers: [[200, hello]],
    requests: get,
    stdout: field('Limits') + printed({ timeout: 60000, memory: 256, logs: 10, concurrency: 1 }),
  },
  { wsk: 'action get hello version', answers: [[200, hello]], requests: get, stdout: `${field('version')}"0.0.2"` },
  { wsk: 'action get hello error', answers: [[200, hello]], requests: get, stdout: `${field('error')}""` },
  { wsk: 'action get hello env', answers: [[200, hello]], requests: get, stdout: `${field('env')}null` },
  {
    wsk: 'action get hello parameters',
    answers: [[200, { ...hello, parameters: [] }]],
    requests: get,
    stdout: `${field('parameters')}[]`,
  },
  { wsk: 'action get hello nothing', code: 2, stderr: errorWithHint("Invalid field filter 'nothing'.") },
  {
    wsk: 'action get hello -s',
    answers: [[200, hello]],
    requests: get,
    stdout: 'action /guest/hello: Returns a result based on parameter p\n   (parameters: *p)',
  },
  {
    wsk: 'action get hello --summary',
    answers: [
      [
        200,
        {
          ...hello,
          annotations: [
            { key: 'final', value: true },
            { key: 'description', value: 'Says hello' },
            { key: 'parameters', value: [{ name: 'z' }, { name: 'p' }] },
          ],
        },
      ],
    ],
    requests: get,
    stdout: 'action /guest/hello: Says hello\n   (parameters: **p, z)',
  },
  {
    wsk: 'action get hello -s',
    answers: [[200, { namespace: 'guest', name: 'hello' }]],
    requests: get,
    stdout: 'action /guest/hello\n   (parameters: none defined)',
  },
  {
    wsk: 'action get pkg/hello code',
    code: 0,
    answers: [[200, hello]],
    requests: ['GET /actions/pkg/hello?code=false'],
    stdout: 'ok: got action pkg/hello, displaying field code\n0',
  },
  {
    wsk: 'action get hello',
    answers: [notThere],
    requests: get,
    code: 148,
    stderr: errorWithHint("Unable to get action 'hello': The requested resource does not exist. (code tid1)"),
  },
  { wsk: 'action get', code: 1, stderr: errorWithHint('Invalid argument(s). An action name is required.') },
  {
    wsk: 'action get hello --save',
    answers: withExec({ kind: 'blackbox', image: 'i', binary: false }),
    requests: save,
    code: 2,
    stderr: errorWithHint('Cannot save Docker images'),
  },
  {
    wsk: 'action get hello --save',
    answers: withExec({ kind: 'sequence', components: [], binary: false }),
    requests: save,
    code: 2,
    stderr: errorWithHint('Cannot save action sequences'),
  },
  {
    wsk: 'action get hello --save',
    answers: [[200, hello]],
    requests: save,
    files: { 'hello.js': '' },
    code: 2,
    stderr: errorWithHint("The file 'hello.js' already exists"),
  },
]);

describeCases('action list, delete', [
  {
    wsk: 'action list',
    answers: [[200, [hello, { namespace: 'guest/pkg', name: 'b', annotations: [] }]]],
    requests: ['GET /actions?limit=30&skip=0'],
    stdout: `actions\n${'/guest/hello'.padEnd(70)} private nodejs:20\n${'/guest/pkg/b'.padEnd(70)} private \n`,
  },
  {
    wsk: 'action list -n',
    answers: [
      [
        200,
        [
          { namespace: 'g/p', name: 'a' },
          { namespace: 'g', name: 'b' },
          { namespace: 'g', name: 'C' },
        ],
      ],
    ],
    requests: ['GET /actions?limit=30&skip=0'],
    stdout: `actions\n${['/g/C', '/g/b', '/g/p/a'].map((name) => `${name.padEnd(70)} private \n`).join('')}`,
  },
  { wsk: 'action list', answers: [[200, []]], requests: ['GET /actions?limit=30&skip=0'], stdout: 'actions' },
  {
    wsk: 'action list pkg -l 5 --skip 2',
    answers: [[200, []]],
    requests: ['GET /actions/pkg/?limit=5&skip=2'],
    stdout: 'actions',
  },
  {
    wsk: 'action list /ns',
    answers: [[200, []]],
    requests: ['GET /api/v1/namespaces/ns/actions?limit=30&skip=0'],
    stdout: 'actions',
  },
  {
    wsk: 'action list /ns/pkg',
    answers: [[403, { error: 'The supplied authentication is not authorized to access this resource.', code: 'tid' }]],
    requests: ['GET /api/v1/namespaces/ns/actions/pkg/?limit=30&skip=0'],
    code: 147,
    stderr: errorWithHint(
      "Unable to obtain the list of actions for namespace 'ns': The supplied authentication is not authorized to access this resource. (code tid)",
    ),
  },
  {
    wsk: 'action list a b',
    code: 1,
    stderr: errorWithHint('Invalid argument(s): b. An optional namespace is the only valid argument.'),
  },
  {
    wsk: 'action delete hello',
    answers: [[200, hello]],
    requests: ['DELETE /actions/hello'],
    stdout: 'ok: deleted action hello',
  },
  {
    wsk: 'action delete hello',
    answers: [notThere],
    requests: ['DELETE /actions/hello'],
    code: 148,
    stderr: errorWithHint("Unable to delete action 'hello': The requested resource does not exist. (code tid1)"),
  },
  { wsk: 'action delete', code: 1, stderr: errorWithHint('Invalid argument(s). An action name is required.') },
]);

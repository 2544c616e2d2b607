import { describeCases, errorWithHint, type Case } from './cases.js';
import type { Answer } from './fake-openwhisk.js';

const actions: Answer = [
  200,
  [
    { namespace: 'guest', name: 'b', annotations: [{ key: 'exec', value: 'nodejs:20' }] },
    { namespace: 'guest', name: 'a', annotations: [] },
  ],
];
const answers: Answer[] = [
  actions,
  [
    200,
    [
      { namespace: 'guest', name: 'pkg', publish: true },
      { namespace: 'guest', name: 'Own', publish: false },
    ],
  ],
  [200, [{ namespace: 'guest', name: 't' }]],
  [200, [{ namespace: 'guest', name: 'r 1' }]],
  [200, { namespace: 'guest', name: 'r 1', status: 'inactive' }],
];
const requests = [
  'GET /actions?limit=0&skip=0',
  'GET /packages?limit=0&skip=0',
  'GET /triggers?limit=0&skip=0',
  'GET /rules?limit=0&skip=0',
  'GET /rules/r%201',
];

function listing(packages: string[], actionRows: string[]): string {
  return [
    'Entities in namespace: default',
    'packages',
    ...packages,
    'actions',
    ...actionRows,
    'triggers',
    row('/guest/t', 'private'),
    'rules',
    row('/guest/r 1', 'private              inactive'),
  ].join('\n');
}
const row = (name: string, rest: string): string => `${name.padEnd(70)} ${rest}`;
const pkg = row('/guest/pkg', 'shared');
const own = row('/guest/Own', 'private');
const a = row('/guest/a', 'private ');
const b = row('/guest/b', 'private nodejs:20');

const everything = (wsk: string): Case => ({ wsk, answers, requests, stdout: listing([pkg, own], [b, a]) });

describeCases('namespace, list', [
  {
    wsk: 'namespace list',
    answers: [[200, ['guest', 'other']]],
    requests: ['GET /api/v1/namespaces'],
    stdout: 'namespaces\nguest\nother',
  },
  {
    wsk: 'namespace list',
    answers: [[401, { error: 'The supplied authentication is invalid.', code: 'tid' }]],
    requests: ['GET /api/v1/namespaces'],
    code: 145,
    stderr:
      'error: Unable to obtain the list of available namespaces: The supplied authentication is invalid. (code tid)',
  },
  { wsk: 'namespace list x', code: 1, stderr: errorWithHint('Invalid argument(s): x. No arguments are required.') },
  everything('list'),
  everything('namespace get'),
  everything('namespace get /_'),
  { wsk: 'list -n', answers, requests, stdout: listing([own, pkg], [a, b]) },
  {
    wsk: 'list',
    answers: [actions, [503, '']],
    requests: requests.slice(0, 2),
    code: 247,
    stderr:
      "error: Unable to obtain the list of entities for namespace 'default': The connection failed, or timed out. (HTTP status code 503)",
  },
  {
    wsk: 'list',
    answers: [...answers.slice(0, 4), [404, { error: 'gone', code: 'tid' }]],
    requests,
    code: 148,
    stderr: "error: Unable to get status of rule 'r 1': gone (code tid)",
  },
  { wsk: 'list x', code: 1, stderr: errorWithHint('Invalid argument(s): x. No arguments are required.') },
]);

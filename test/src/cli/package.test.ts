import { describeCases, errorWithHint, printed } from './cases.js';
import type { Answer } from './fake-openwhisk.js';

const notThere: Answer = [404, { error: 'The requested resource does not exist.', code: 'tid1' }];
const taken: Answer = [409, { error: 'resource already exists', code: 'tid2' }];

const pkg = {
  updated: 1700000000000,
  feeds: [],
  actions: [
    {
      name: 'a',
      version: '0.0.1',
      annotations: [
        { key: 'description', value: 'Does a' },
        { key: 'parameters', value: [{ name: 'x' }] },
      ],
    },
  ],
  binding: {},
  parameters: [{ key: 'p', value: 1.5 }],
  annotations: [],
  publish: false,
  version: '0.0.1',
  name: 'pkg',
  namespace: 'guest',
};

const pkgPrinted = printed({
  namespace: 'guest',
  name: 'pkg',
  version: '0.0.1',
  publish: false,
  parameters: pkg.parameters,
  binding: {},
  actions: [{ name: 'a', version: '0.0.1', annotations: pkg.actions[0]?.annotations }],
  updated: 1700000000000,
});

describeCases('package create, update', [
  {
    wsk: 'package create pkg',
    answers: [[200, pkg]],
    requests: ['PUT /packages/pkg?overwrite=false {"namespace":"_","name":"pkg"}'],
    stdout: 'ok: created package pkg',
  },
  {
    wsk: 'package create /ns/pkg --shared YES -p a 1.50 -a b text',
    answers: [[200, pkg]],
    requests: [
      'PUT /api/v1/namespaces/ns/packages/pkg?overwrite=false {"namespace":"ns","name":"pkg","publish":true,"annotations":[{"key":"b","value":"text"}],"parameters":[{"key":"a","value":1.50}]}',
    ],
    stdout: 'ok: created package pkg',
  },
  {
    wsk: 'package create pkg --shared maybe',
    code: 1,
    stderr: errorWithHint("Cannot use value 'maybe' for shared."),
  },
  {
    wsk: 'package create pkg',
    answers: [taken],
    requests: ['PUT /packages/pkg?overwrite=false {"namespace":"_","name":"pkg"}'],
    code: 153,
    stderr: "error: Unable to create package 'pkg': resource already exists (code tid2)",
  },
  { wsk: 'package create', code: 1, stderr: errorWithHint('Invalid argument(s). A package name is required.') },
  {
    wsk: 'package create a b',
    code: 1,
    stderr: errorWithHint('Invalid argument(s): b. A package name is required.'),
  },
  {
    wsk: 'package create /a//b',
    code: 1,
    stderr: errorWithHint("'/a//b' is not a valid qualified name: A valid qualified name must be specified."),
  },
  {
    wsk: 'package update pkg --shared no',
    answers: [[200, pkg]],
    requests: ['PUT /packages/pkg?overwrite=true {"namespace":"_","name":"pkg","publish":false}'],
    stdout: 'ok: updated package pkg',
  },
  {
    wsk: 'package update pkg',
    answers: [taken],
    requests: ['PUT /packages/pkg?overwrite=true {"namespace":"_","name":"pkg"}'],
    code: 153,
    stderr: 'error: Package update failed: resource already exists (code tid2)',
  },
]);

describeCases('package bind', [
  {
    wsk: 'package bind /whisk.system/utils mine -p a b -o',
    answers: [[200, pkg]],
    requests: [
      'PUT /packages/mine?overwrite=true {"parameters":[{"key":"a","value":"b"}],"binding":{"namespace":"whisk.system","name":"utils"}}',
    ],
    stdout: 'ok: created binding mine',
  },
  {
    wsk: 'package bind pkg mine',
    answers: [notThere],
    requests: ['PUT /packages/mine?overwrite=false {"binding":{"namespace":"_","name":"pkg"}}'],
    code: 148,
    stderr: 'error: Binding creation failed: The requested resource does not exist. (code tid1)',
  },
  {
    wsk: 'package bind pkg',
    code: 1,
    stderr: errorWithHint('Invalid argument(s). A package name and binding name are required.'),
  },
]);

describeCases('package get', [
  {
    wsk: 'package get pkg',
    answers: [[200, pkg]],
    requests: ['GET /packages/pkg'],
    stdout: `ok: got package pkg\n${pkgPrinted}`,
  },
  {
    wsk: 'package get pkg Publish',
    answers: [[200, pkg]],
    requests: ['GET /packages/pkg'],
    stdout: 'ok: got package pkg, displaying field Publish\nfalse',
  },
  {
    wsk: 'package get mine binding',
    answers: [[200, { ...pkg, binding: { namespace: 'whisk.system', name: 'utils' } }]],
    requests: ['GET /packages/mine'],
    stdout: `ok: got package mine, displaying field binding\n${printed({ namespace: 'whisk.system', name: 'utils' })}`,
  },
  {
    wsk: 'package get pkg actions',
    answers: [[200, { ...pkg, actions: [] }]],
    requests: ['GET /packages/pkg'],
    stdout: 'ok: got package pkg, displaying field actions\n[]',
  },
  { wsk: 'package get pkg nothing', code: 1, stderr: "error: Invalid field filter 'nothing'." },
  {
    wsk: 'package get pkg --summary',
    answers: [
      [
        200,
        { ...pkg, feeds: [{ name: 'f', annotations: [{ key: 'feed', value: true }], parameters: [{ key: 'q' }] }] },
      ],
    ],
    requests: ['GET /packages/pkg'],
    stdout: [
      'package /guest/pkg: Returns a result based on parameter p',
      '   (parameters: *p)',
      ' action /guest/pkg/a: Does a',
      '   (parameters: x)',
      ' feed   /guest/pkg/f: Returns a result based on parameter q',
      '   (parameters: *q)',
    ].join('\n'),
  },
  {
    wsk: 'package get pkg',
    answers: [notThere],
    requests: ['GET /packages/pkg'],
    code: 148,
    stderr: "error: Unable to get package 'pkg': The requested resource does not exist. (code tid1)",
  },
  { wsk: 'package get', code: 1, stderr: errorWithHint('Invalid argument(s). A package name is required.') },
]);

const row = (name: string, rest: string): string => `${name.padEnd(70)} ${rest}\n`;

describeCases('package list, delete, refresh', [
  {
    wsk: 'package list -n',
    answers: [[200, [pkg, { namespace: 'guest', name: 'A', publish: true }]]],
    requests: ['GET /packages?limit=30&skip=0'],
    stdout: `packages\n${row('/guest/A', 'shared')}${row('/guest/pkg', 'private')}`,
  },
  {
    wsk: 'package list /whisk.system -l 2 -s 1',
    answers: [[200, []]],
    requests: ['GET /api/v1/namespaces/whisk.system/packages?limit=2&skip=1'],
    stdout: 'packages',
  },
  {
    wsk: 'package list pkg',
    code: 1,
    stderr: errorWithHint(
      "An entity name, 'pkg', was provided instead of a namespace. Valid namespaces are of the following format: /NAMESPACE.",
    ),
  },
  {
    wsk: 'package list',
    answers: [[403, { error: 'no', code: 'tid' }]],
    requests: ['GET /packages?limit=30&skip=0'],
    code: 147,
    stderr: "error: Unable to obtain the list of packages for namespace 'default': no (code tid)",
  },
  {
    wsk: 'package list /a /b',
    code: 1,
    stderr: errorWithHint('Invalid argument(s): /b. An optional namespace is the only valid argument.'),
  },
  {
    wsk: 'package delete pkg',
    answers: [[200, pkg]],
    requests: ['DELETE /packages/pkg'],
    stdout: 'ok: deleted package pkg',
  },
  {
    wsk: 'package delete pkg',
    answers: [[409, { error: 'Package not empty (contains 1 entity). Set force param or delete entity.', code: 't' }]],
    requests: ['DELETE /packages/pkg'],
    code: 153,
    stderr:
      "error: Unable to delete package 'pkg': Package not empty (contains 1 entity). Set force param or delete entity. (code t)",
  },
  {
    wsk: 'package refresh',
    answers: [[200, { added: ['a', 'b'], updated: [], deleted: ['c'] }]],
    requests: ['POST /packages/refresh'],
    stdout: "'_' refreshed successfully\ncreated bindings:\na\nb\nupdated bindings:\ndeleted bindings:\nc",
  },
]);

import { expect, test } from '@jest/globals';
import { realpath } from 'node:fs/promises';
import { describeCases, type Case } from './cases.js';
import type { Answer } from './fake-openwhisk.js';
import { runWsk, withFolder } from './wsk-process.js';

const runtimes: Answer = [
  200,
  {
    runtimes: {
      nodejs: [
        { kind: 'nodejs:18', default: false, deprecated: true },
        { kind: 'nodejs:20', default: true, deprecated: false },
      ],
      python: [{ kind: 'python:3', default: true, deprecated: false }],
    },
  },
];
const info = 'GET /';
const done = 'Success: Deployment completed successfully.';
const failedLine =
  'Error: Deployment did not complete successfully. Run `wskdeploy undeploy` to remove partially deployed assets.\n';

/** A manifest that wsk refuses before it sends a request. */
function refused(manifest: string, type: string, message: string, more: Partial<Case> = {}): Case {
  return {
    wsk: 'project deploy',
    files: { 'manifest.yaml': manifest, 'a.js': 'x', 'a.zip': 'x', 'a.xyz': 'x', ...more.files },
    answers: [runtimes],
    requests: [info],
    code: 1,
    stderr: `[${type}]: File: [manifest.yaml]: ${message}\n\n`,
    ...(more.requests ? { requests: more.requests } : {}),
    ...(more.wsk ? { wsk: more.wsk } : {}),
  };
}

const unreadable = (manifest: string, message: string): Case =>
  refused(manifest, 'ERROR_YAML_PARSER_ERROR', message, { requests: [] });
const unmarshal = (message: string): string => `\n==> yaml: unmarshal errors:\n==> ${message}`;
const inPackage = (text: string): string => `packages:\n  p:\n${text.replace(/^/gm, '    ')}\n`;
const action = (text: string): string => inPackage(`actions:\n  a:\n${text.replace(/^/gm, '    ')}`);

describeCases('malformed manifests', [
  unreadable(inPackage('actoins: {}'), unmarshal("line 3: field actoins not found in 'p'")),
  unreadable('packages: [a, b]\n', unmarshal('line 1: packages of the manifest must have members')),
  unreadable(action('limits: {timeout: soon}'), unmarshal("line 5: timeout of limits of 'a' must be a whole number")),
  unreadable(action('include: here'), unmarshal("line 5: include of 'a' must be a list")),
  unreadable('just text\n', unmarshal('line 1: the manifest must have members')),
  refused(
    action('function: a.js\ncode: x'),
    'ERROR_YAML_FILE_FORMAT_ERROR',
    'Action [a] is invalid. It has both code and function specified, only one of them is expected.\n',
  ),
  refused(
    action('code: x'),
    'ERROR_YAML_FILE_FORMAT_ERROR',
    'Action [a] is invalid. It has code specified without any runtime. With action source code, runtime is mandatory.',
  ),
  refused(
    action('code: x\nruntime: cobol'),
    'ERROR_YAML_FILE_FORMAT_ERROR',
    'Invalid or missing runtime [cobol] specified in manifest for the action [a].\n',
  ),
  refused(action('main: x'), 'ERROR_YAML_PARSER_ERROR', 'Action [a] has no kind set.'),
  refused(
    action('function: a.zip'),
    'ERROR_YAML_INVALID_RUNTIME',
    'Invalid or missing runtime [NOT SPECIFIED] specified in manifest for the action [a].\n Action [a]: Runtime [NOT SPECIFIED]: Supported Runtimes [nodejs:20, nodejs:default, python:3, python:default]',
  ),
  refused(
    action('function: a.xyz'),
    'ERROR_YAML_INVALID_RUNTIME',
    '[a] has not specified any runtime and the action source file extension [xyz] is not supported.\n Action [a]: Runtime [NOT SPECIFIED]: Supported Runtimes [nodejs:20, nodejs:default, python:3, python:default]',
  ),
  refused(
    action('function: a.js\nweb: maybe'),
    'ERROR_YAML_FILE_FORMAT_ERROR',
    'Action [a]: web-export [maybe]: Supported Web Exports [true, yes, raw, no, false]',
  ),
  refused(
    action('function: a.js\ninputs: {n: {type: string, required: true}}'),
    'ERROR_YAML_FILE_FORMAT_ERROR',
    'Required inputs are missing values even after applying interpolation using env. variables. Please set missing env. variables and/or input values in manifest/deployment file or on CLI for following inputs: n',
  ),
  refused(
    action('function: a.js\ninputs: {n: {type: colour, value: red}}'),
    'ERROR_YAML_PARSER_ERROR',
    'Parameter [n] has an invalid Type. [colour]',
  ),
  refused(
    action('function: a.js\ninputs: {n: {type: json, value: "{"}}'),
    'ERROR_YAML_PARSER_ERROR',
    'Parameter [n]: Type Expected: [json], Actual: [string]',
  ),
  refused(
    inPackage('actions: {a: {function: a.js}}\nsequences: {a: {actions: a}}'),
    'ERROR_YAML_PARSER_ERROR',
    'Sequence [a] is already defined as an action under the same package. Actions and sequences can not have same name in a single package.',
  ),
  refused(
    inPackage('rules: {r: {trigger: t}}'),
    'ERROR_YAML_FILE_FORMAT_ERROR',
    'Rule [r] must name a trigger and an action.',
  ),
  refused(
    inPackage('dependencies: {d: {location: git.example.com/x/y}}'),
    'ERROR_YAML_FILE_FORMAT_ERROR',
    'Dependency [d]: the location [git.example.com/x/y] is neither a package (/NAMESPACE/PACKAGE) nor a folder (./FOLDER) nor a repository (github.com/OWNER/NAME).\n',
  ),
  refused(
    inPackage('dependencies: {d: {location: github.com/x}}'),
    'ERROR_YAML_FILE_FORMAT_ERROR',
    'Dependency [d]: [github.com] alone names no repository.\n',
  ),
  refused(
    inPackage('dependencies: {d: {location: github.com/x/y/../../z}}'),
    'ERROR_YAML_FILE_FORMAT_ERROR',
    'Dependency [d]: the folder [../../z] leads out of the repository.\n',
  ),
  refused(
    inPackage('dependencies: {d: {location: github.com/x/y, version: ../../z}}'),
    'ERROR_YAML_FILE_FORMAT_ERROR',
    'Dependency [d]: [../../z] is no branch, tag or commit.\n',
  ),
  refused(
    inPackage('actions: {a: {function: a.js, web: true}}\napis: {n: {b: {p: {a: {method: FETCH}}}}}'),
    'ERROR_YAML_FILE_FORMAT_ERROR',
    'API [/b/p]: API gateway method [FETCH]: API gateway supported methods [GET, PUT, POST, DELETE, PATCH, HEAD, OPTIONS]',
  ),
  refused(
    inPackage('apis: {n: {b: {p: {a: {method: GET}}}}}'),
    'ERROR_YAML_FILE_FORMAT_ERROR',
    'Action/Sequence [a] is missing from manifest file, API [n] can only be created based on the action/sequence from manifest file. Please update manifest file to include [a] as a web action/sequence.\n',
  ),
  refused(
    inPackage('apis: {n: {b/c: {p: {}}}}'),
    'ERROR_YAML_PARSER_ERROR',
    'API Gateway base path [b/c] is invalid. It has path parameters which is not supported, only relative path supports path parameters.',
  ),
  refused(
    'packages: {p: {triggers: {t: {feed: /a/b}}}, q: {triggers: {t: {feed: /a/c}}}}\n',
    'ERROR_YAML_PARSER_ERROR',
    'One single trigger [t] is defined with multiple feeds ["/a/c", "/a/b"]. Triggers are created directly under the namespace, its not possible to have triggers with same name but different feeds. Please update trigger names in manifest file.',
  ),
  refused('packages: {p: {}}\n', 'ERROR_YAML_FILE_FORMAT_ERROR', 'The mandatory key [project name] is missing.\n', {
    wsk: 'project sync',
  }),
  {
    wsk: 'project deploy --manifest none.yaml',
    code: 1,
    stderr: '[ERROR_MANIFEST_FILE_NOT_FOUND]: File: [none.yaml]: Manifest file not found at path [none.yaml].\n\n\n',
  },
]);

const put = (route: string, body: object): string => `PUT ${route}?overwrite=true ${JSON.stringify(body)}`;
const conflict: Answer = [409, { error: 'Concurrent modification to resource detected.', code: 'tid' }];
const packageP = put('/packages/p', { name: 'p', version: '0.0.1', publish: false });
const active = 'POST /rules/r {"status":"active","trigger":null,"action":null}';
const withFeed = { annotations: [{ key: 'feed', value: '/ns/pkg/f' }] };
const feedCall = (event: string, more = ''): string =>
  `POST /api/v1/namespaces/ns/actions/pkg/f?blocking=true&result=false {"authKey":"user:secret",${more}"lifecycleEvent":"${event}","triggerName":"/_/t"}`;
const feedManifest = inPackage('triggers: {t: {feed: /ns/pkg/f, inputs: {cron: x}}}');

describeCases('project deploy', [
  {
    wsk: 'project deploy --param who me',
    files: {
      'manifest.yaml': [
        'packages:',
        '  p:',
        '    inputs: {colour: red}',
        '    actions:',
        '      a:',
        '        function: a.js',
        '        inputs: {who: string, n: 1, deep: {b: $NOTHING}, same: $colour}',
        '        limits: {timeout: 50, memorySize: 128}',
        '    sequences: {s: {actions: "a, /whisk.system/utils/echo, q/b", web: raw}}',
        '    triggers: {t: {inputs: {k: {value: v, type: string}}}}',
        '    rules: {r: {trigger: t, action: a}}',
        '',
      ].join('\n'),
      'deployment.yml': 'packages: {p: {actions: {a: {inputs: {n: 2}, annotations: {x: why}}}}}\n',
      'a.js': 'code',
    },
    answers: [runtimes],
    requests: [
      info,
      put('/packages/p', {
        name: 'p',
        version: '0.0.1',
        publish: false,
        parameters: [{ key: 'colour', value: 'red' }],
      }),
      put('/actions/p/a', {
        name: 'p/a',
        exec: { kind: 'nodejs:20', code: 'code' },
        annotations: [{ key: 'x', value: 'why' }],
        parameters: [
          { key: 'who', value: 'me' },
          { key: 'n', value: 2 },
          { key: 'deep', value: { b: '' } },
          { key: 'same', value: 'red' },
        ],
        limits: { memory: 128 },
        publish: false,
      }),
      put('/actions/p/s', {
        name: 'p/s',
        exec: { kind: 'sequence', components: ['/_/p/a', '/whisk.system/utils/echo', '/_/q/b'] },
        annotations: [
          { key: 'web-export', value: true },
          { key: 'raw-http', value: true },
          { key: 'final', value: true },
        ],
        publish: false,
      }),
      put('/triggers/t', { name: 't', parameters: [{ key: 'k', value: 'v' }], publish: false }),
      put('/rules/r', { name: 'r', status: '', trigger: '/_/t', action: '/_/p/a', publish: false }),
      active,
    ],
    stdout: done,
  },
  {
    wsk: 'project deploy',
    files: { 'manifest.yml': 'packages: {p: {}}\n' },
    answers: [runtimes, conflict, [200, {}]],
    requests: [info, packageP, packageP],
    stdout: done,
  },
  {
    wsk: 'project deploy',
    files: { 'manifest.yaml': 'packages: {p: {}}\n' },
    answers: [runtimes, [403, { error: 'no', code: 'tid' }]],
    requests: [info, packageP],
    code: 1,
    stderr: `${failedLine}[ERROR_WHISK_CLIENT_ERROR]: Error code: 147: no (code tid)\n\n`,
  },
  {
    wsk: 'project deploy',
    files: {
      'manifest.yaml': 'packages: {default: {dependencies: {mine: {location: /whisk.system/utils, inputs: {a: 1}}}}}\n',
    },
    answers: [runtimes],
    requests: [
      info,
      put('/packages/mine', {
        publish: false,
        parameters: [{ key: 'a', value: 1 }],
        binding: { namespace: 'whisk.system', name: 'utils' },
      }),
    ],
    stdout: done,
  },
  {
    wsk: 'project deploy',
    files: { 'manifest.yaml': feedManifest },
    answers: [runtimes, [200, {}], [200, withFeed]],
    requests: [
      info,
      packageP,
      'GET /triggers/t',
      feedCall('DELETE'),
      put('/triggers/t', { name: 't', annotations: withFeed.annotations, publish: true }),
      feedCall('CREATE', '"cron":"x",'),
    ],
    stdout: done,
  },
  {
    wsk: 'project deploy',
    files: { 'manifest.yaml': feedManifest },
    answers: [
      runtimes,
      [200, {}],
      [404, { error: 'none', code: 't' }],
      [200, {}],
      [502, { activationId: 'i', response: { status: 'application error', result: { error: 'bad cron' } } }],
    ],
    requests: [
      info,
      packageP,
      'GET /triggers/t',
      put('/triggers/t', { name: 't', annotations: withFeed.annotations, publish: true }),
      feedCall('CREATE', '"cron":"x",'),
      'DELETE /triggers/t',
    ],
    code: 1,
    stderr: `${failedLine}[ERROR_WHISK_CLIENT_ERROR]: Error code: 246: The following application error was received: bad cron\n\n`,
  },
]);

describeCases('project undeploy', [
  {
    wsk: 'project undeploy',
    files: { 'manifest.yaml': inPackage('rules: {r: {trigger: t, action: a}}\ntriggers: {t: {}}') },
    answers: [runtimes, [404, { error: 'none', code: 't' }], [200, {}]],
    requests: [info, 'DELETE /rules/r', 'DELETE /triggers/t', 'DELETE /packages/p'],
    stdout: 'Success: Undeployment completed successfully.',
  },
  {
    wsk: 'project undeploy',
    files: { 'manifest.yaml': 'packages: {p: {}}\n' },
    answers: [runtimes, [409, { error: 'Package not empty', code: 't' }]],
    requests: [info, 'DELETE /packages/p'],
    code: 1,
    stderr:
      'Error: Undeployment did not complete successfully.\n[ERROR_WHISK_CLIENT_ERROR]: Error code: 153: Package not empty (code t)\n\n',
  },
]);

test.each(['deploy', 'undeploy', 'sync'])('project %s without a manifest says how it is called', (verb) =>
  withFolder(async (directory) => {
    const { code, stdout, stderr } = await runWsk(['project', verb], { directory });
    const folder = await realpath(directory);
    const usage = `Usage:\n  wsk project ${verb} [flags]\n\nFlags:\n  -h, --help   help for ${verb}\n\nGlobal Flags:\n`;
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain(`Manifest file not found at path [${folder}].\n${usage}`);
    expect(stdout).toContain('      --projectname string   project name\n');
  }),
);

test('a project without host and key is refused', () =>
  withFolder(async (directory) => {
    const result = await runWsk(['project', 'undeploy', '--projectname', 'p'], { directory });
    expect(result).toMatchObject({ code: 1, stdout: '' });
    expect(result.stderr).toContain('The authentication key is not configured.\n');
    expect(result.stderr).toContain('The API host is not configured.\n');
  }));

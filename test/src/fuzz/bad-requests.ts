// Invalid requests, made from the API's own table of routes.
import type { JsonValue } from '@gpuwhisk/common/json';
import type { Random } from '@gpuwhisk/common/system/random';
import type { Route } from '@gpuwhisk/controller/http/route';
import { badZip } from './archives.js';
import { badText, badValue, chance, pick, spoiled, spoiledText } from './bad-values.js';

/** A request as sent. */
export interface BadRequest {
  method: string;
  path: string;
  headers: Record<string, string>;
  body: Buffer | undefined;
}

const pairs: JsonValue = [
  { key: 'p', value: 1 },
  { key: 'web-export', value: true },
];
const entity = { version: '0.0.1', publish: true, annotations: pairs };
const document = { _id: 'alice/doc', entityType: 'action', namespace: 'alice', name: 'doc', ...entity, updated: 1 };
const limits = { timeout: 60_000, memory: 256, logs: 10, concurrency: 1 };
const exec = { kind: 'nodejs:20', code: 'function main() {}', binary: false };

/** Good bodies by the name of their schema; other schemas get any value. */
const bodies: Readonly<Record<string, readonly JsonValue[]>> = {
  ActionPut: [
    { ...entity, exec, parameters: pairs, limits },
    { exec: { kind: 'sequence', components: ['/_/act', '/alice/pkg/act'] } },
    { exec: { kind: 'blackbox', image: 'openwhisk/dockerskeleton', code: 'x' } },
    { exec, annotations: [{ key: 'gpu', value: { memoryMiB: 1024, sloMs: 100, batch: 8, mpsPercent: 50 } }] },
    { exec, annotations: [{ key: 'warm', value: { imports: ['a'], cuda: true, entry: 'load' } }] },
    { exec: { ...exec, kind: 'python:3.11' }, annotations: [{ key: 'requirements', value: ['numpy==1.0'] }] },
    { exec, annotations: [{ key: 'conductor', value: true }], delAnnotations: ['a'] },
  ],
  PackagePut: [
    { ...entity, parameters: pairs },
    { ...entity, binding: { namespace: 'alice', name: 'pkg' } },
  ],
  TriggerPut: [{ ...entity, parameters: pairs, limits: {} }],
  RulePut: [{ ...entity, trigger: '/_/happened', action: '/_/act' }],
  RuleStatus: [{ status: 'active' }, { status: 'inactive' }],
  ActionPayload: [{ name: 'you' }, { $scheduler: { target: 1 } }, { action: 'act', params: {}, state: {} }, []],
  TriggerPayload: [{ name: 'you' }],
  KeyPut: [{ namespace: 'carol', uuid: 'carol-uuid', key: 'c'.repeat(64), revoke: true }],
  AuthKey: [{ authkey: `alice-uuid:${'a'.repeat(64)}` }],
  UserLimits: [
    { invocationsPerMinute: 1, allowedKinds: ['nodejs:20'], maxParameterSize: '1 MB', storeActivations: true },
  ],
  Document: [
    document,
    { ...document, exec: { kind: 'nodejs:20', code: 'x', binary: false }, parameters: pairs, limits },
    { ...document, entityType: 'package', binding: {}, parameters: pairs },
    {
      ...document,
      entityType: 'rule',
      status: 'active',
      trigger: { path: 'alice', name: 't' },
      action: { path: 'alice', name: 'act' },
    },
    {
      ...document,
      entityType: 'trigger',
      parameters: pairs,
      limits: {},
      rules: { 'alice/when': { action: {}, status: 'active' } },
    },
    { _id: 'carol', subject: 'carol', namespaces: [{ name: 'carol', uuid: 'c', key: 'c'.repeat(64) }] },
    { _id: 'carol/limits', invocationsPerMinute: 1 },
    { ...document, _attachments: { codefile: { content_type: 'text/plain', data: 'eA==' } } },
    {
      ...document,
      activationId: 'a'.repeat(32),
      start: 1,
      response: { statusCode: 0, result: {} },
      logs: [],
      subject: 'alice',
    },
  ],
  NewDocuments: [{ documents: [document] }],
  GpuWish: [{ wish: 'cordon' }, { wish: 'uncordon' }],
  NewGpuWorkload: [
    { name: 'train', pid: 7, memoryMiB: 100, maxDegradation: 0.1 },
    { name: 'train', start: true, mpsPercent: 50 },
  ],
  GpuWorkloadChanges: [
    { pid: 7, processStart: 1 },
    { rate: 2, baselineRate: 3, maxDegradation: 0.1 },
  ],
};

const parameters: Readonly<Record<string, readonly string[]>> = {
  namespace: ['_', '_', '_', 'alice', 'bob', 'carol'],
  actionName: ['act', 'act', 'seq', 'doc', 'web'],
  packageName: ['pkg', 'pkg', 'bound', 'default'],
  triggerName: ['happened'],
  ruleName: ['when'],
  activationId: ['a'.repeat(32), 'b'.repeat(32)],
  database: ['whisks', 'subjects', 'activations'],
  documentId: [
    'alice%2Fdoc',
    'alice%2Fact',
    'alice%2Fpkg',
    'alice%2Fwhen',
    'carol',
    'carol%2Flimits',
    'alice%2Fhappened',
  ],
  subject: ['carol', 'alice-subject', 'dave-subject'],
  uuid: ['GPU-0'],
  extension: ['http', 'json', 'html', 'text', 'svg', 'xml'],
};
const oddSegments = [
  ...[
    '..',
    '.',
    '%2e%2e',
    '%00',
    '%zz',
    '%',
    '%c0%af',
    '%ff',
    '%F0%9F%99%82',
    '%20',
    'a%2Fb',
    '',
    '__proto__',
    '-',
    '@',
    ';a=b',
  ],
  ...['x'.repeat(257), 'x'.repeat(9000), '%25', 'a%0d%0ab', '*', '~', '+', ':', '%5B', "'", '"', 'NULL'],
];
const values = [
  'true',
  'false',
  '',
  '0',
  '1',
  '-1',
  '200',
  '201',
  '1e3',
  '9'.repeat(30),
  '%00',
  '%zz',
  'x',
  '[]',
  'NaN',
  '%F0%9F',
];
const names = [
  'count',
  'docs',
  'limit',
  'skip',
  'since',
  'upto',
  'overwrite',
  'blocking',
  'result',
  'code',
  'rev',
  'view',
  'after',
];
const types = [
  'text/plain',
  'application/x-www-form-urlencoded',
  'multipart/form-data',
  'application/json; charset=utf-16',
  '',
  'x',
];

const keys = [
  `alice-uuid:${'a'.repeat(64)}`,
  `alice-uuid:${'a'.repeat(64)}`,
  `alice-uuid:${'a'.repeat(64)}`,
  `bob-uuid:${'b'.repeat(64)}`,
  `operator-uuid:${'o'.repeat(64)}`,
];
const operatorKey = keys[4] as string;

function pathOf(random: Random, route: Route): string {
  const filled = route.path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    chance(random, 0.12) ? pick(random, oddSegments) : pick(random, parameters[name] ?? ['x']),
  );
  const path = chance(random, 0.03) ? filled + pick(random, ['/', '//', '/..', '?', '#', '/x', '.json']) : filled;
  const query = Array.from({ length: chance(random, 0.5) ? random.uint32() % 4 : 0 }, () => {
    const name = chance(random, 0.8)
      ? pick(random, [...names, ...(route.parameters ?? []).map((one) => one.name)])
      : '%zz';
    return `${name}=${pick(random, values)}`;
  });
  return query.length === 0 ? path : `${path}?${query.join('&')}`;
}

function bodyOf(random: Random, route: Route): Buffer | undefined {
  const schema = route.body?.schema;
  if (schema === undefined && chance(random, 0.9)) return undefined;
  const good = bodies[schema ?? ''];
  if (good === undefined || chance(random, 0.05)) return spoiledText(random, badValue(random));
  const value = spoiled(random, pick(random, good), pick(random, [0, 0.02, 0.1, 0.3]));
  if (schema === 'ActionPut' && chance(random, 0.1)) {
    const kind = pick(random, ['nodejs:20', 'python:3.11', 'java:8']);
    const zipped = { exec: { kind, code: badZip(random).toString('base64'), main: 'main' } };
    return spoiledText(random, zipped);
  }
  return spoiledText(random, value);
}

/** A request to one of the routes, with something wrong most of the time. */
export function badRequest(random: Random, routes: readonly Route[]): BadRequest {
  const route = pick(random, routes);
  const key = route.access === 'operator' && chance(random, 0.9) ? operatorKey : pick(random, keys);
  const headers: Record<string, string> = { authorization: `Basic ${Buffer.from(key).toString('base64')}` };
  if (chance(random, 0.02))
    headers.authorization = pick(random, ['Basic', 'Basic ', 'Basic !!!!', 'Bearer x', 'Basic Og==', '']);
  const body = bodyOf(random, route);
  if (body !== undefined) headers['content-type'] = chance(random, 0.95) ? 'application/json' : pick(random, types);
  if (chance(random, 0.03)) headers['x-request-id'] = pick(random, ['sid_x', '', 'é', 'x'.repeat(3000), '{}']);
  if (chance(random, 0.03)) headers['x-ow-extra-logging'] = pick(random, ['on', 'off', '1']);
  if (chance(random, 0.03)) headers.accept = pick(random, ['text/html', '*/*;q=0', 'x', '', 'application/json;q=2']);
  if (chance(random, 0.02)) headers['x-gpuwhisk-sandbox'] = 'true';
  const method = chance(random, 0.97)
    ? route.method
    : pick(random, ['PATCH', 'HEAD', 'OPTIONS', 'TRACE', 'POST', 'PUT', 'DELETE']);
  return { method, path: pathOf(random, route), headers, body };
}

/** Bytes that are not, or hardly, HTTP. */
export function badBytes(random: Random): Buffer {
  const lines = [
    ...[
      'GET / HTTP/1.1',
      'GET /api/v1 HTTP/9.9',
      'GET',
      '',
      'PUT /api/v1/namespaces/_/actions/a HTTP/1.1',
      'é / HTTP/1.1',
    ],
    ...[
      `GET /${'x'.repeat(20_000)} HTTP/1.1`,
      'GET http://[::1/ HTTP/1.1',
      'GET //x/.. HTTP/1.1',
      'CONNECT x:1 HTTP/1.1',
      'GET \0 HTTP/1.1',
    ],
  ];
  const headers = [
    ...[
      'Host: x',
      'Host: x',
      'Content-Length: -1',
      'Content-Length: 99999999999999',
      'Content-Length: 3\r\nContent-Length: 4',
    ],
    ...[
      'Transfer-Encoding: chunked',
      'Transfer-Encoding: x',
      ' folded: x',
      'no colon',
      `x: ${'y'.repeat(20_000)}`,
      'Connection: close',
    ],
    ...[
      'Upgrade: websocket\r\nConnection: upgrade',
      'Expect: 100-continue',
      'Expect: x',
      'x: \0',
      'Authorization: Basic \xff',
    ],
  ];
  const chosen = Array.from({ length: random.uint32() % 4 }, () => pick(random, headers));
  const tail = pick(random, ['', '{}', 'ffffffffffffffff\r\n', '5\r\nabc', '0\r\n\r\n', badText(random)]);
  return Buffer.from(`${[pick(random, lines), ...chosen].join('\r\n')}\r\n\r\n${tail}`, 'latin1');
}

import { describeCases, errorWithHint, printed } from './cases.js';
import type { Answer } from './fake-openwhisk.js';

const notThere: Answer = [404, { error: 'The requested resource does not exist.', code: 'tid1' }];
const trigger = {
  rules: { 'guest/r': { status: 'active', action: { path: 'guest', name: 'a' } } },
  limits: {},
  parameters: [{ key: 'p', value: 1 }],
  annotations: [],
  publish: false,
  version: '0.0.1',
  name: 't',
  namespace: 'guest',
  updated: 5,
};
const withFeed = { ...trigger, annotations: [{ key: 'feed', value: '/ns/pkg/feed' }] };
const record = { activationId: 'feedrun', response: { result: { done: true }, status: 'success', success: true } };
const failed = {
  activationId: 'feedrun',
  response: { result: { error: 'no' }, status: 'application error', success: false },
};
const printedRecord = printed(record);

const create = (body: string): string => `PUT /triggers/t?overwrite=false {"name":"t"${body}}`;
const feedCall = (event: string, more = ''): string =>
  `POST /api/v1/namespaces/ns/actions/pkg/feed?blocking=true&result=false {"authKey":"user:secret","lifecycleEvent":"${event}"${more},"triggerName":"/_/t"}`;
const scheduledFeedCall = feedCall('CREATE').replace('"lifecycleEvent"', '"cron":"x","lifecycleEvent"');
const createdWithFeed = {
  answers: [
    [200, withFeed],
    [200, record],
  ] as Answer[],
  stdout: `ok: invoked /ns/pkg/feed with id feedrun\n${printedRecord}ok: created trigger t`,
};
const feedAnnotation = ',"annotations":[{"key":"feed","value":"/ns/pkg/feed"}]';
const mixed =
  'error: Incorrect usage. Cannot combine --feed-param or --trigger-param flag with neither --param nor --param-file flag';

describeCases('trigger create', [
  {
    wsk: 'trigger create t',
    answers: [[200, trigger]],
    requests: [create('')],
    stdout: 'ok: created trigger t',
  },
  {
    wsk: 'trigger create t -p a 1 -a b c',
    answers: [[200, trigger]],
    requests: [create(',"annotations":[{"key":"b","value":"c"}],"parameters":[{"key":"a","value":1}]')],
    stdout: 'ok: created trigger t',
  },
  {
    wsk: 'trigger create t -T a 1',
    answers: [[200, trigger]],
    requests: [create(',"parameters":[{"key":"a","value":1}]')],
    stdout: 'ok: created trigger t',
  },
  {
    wsk: 'trigger create t --feed /ns/pkg/feed -p cron x',
    ...createdWithFeed,
    requests: [create(feedAnnotation), scheduledFeedCall],
  },
  {
    wsk: 'trigger create t --feed /ns/pkg/feed -F cron x -T own y',
    ...createdWithFeed,
    requests: [create(`${feedAnnotation},"parameters":[{"key":"own","value":"y"}]`), scheduledFeedCall],
  },
  {
    wsk: 'trigger create t --feed /ns/pkg/feed',
    answers: [
      [200, withFeed],
      [502, failed],
      [200, withFeed],
      [200, record],
      [200, withFeed],
    ],
    requests: [create(feedAnnotation), feedCall('CREATE'), 'GET /triggers/t', feedCall('DELETE'), 'DELETE /triggers/t'],
    code: 246,
    stdout: `${printedRecord}ok: deleted trigger t`,
    stderr: printed(failed),
  },
  {
    wsk: 'trigger create t --feed /ns/pkg/feed',
    answers: [[200, withFeed], notThere, [200, trigger]],
    requests: [create(feedAnnotation), feedCall('CREATE'), 'GET /triggers/t', 'DELETE /triggers/t'],
    code: 148,
    stdout: 'ok: deleted trigger t',
    stderr:
      "error: Unable to create trigger 't': Unable to configure feed '/ns/pkg/feed': The requested resource does not exist. (code tid1)",
  },
  {
    wsk: 'trigger create t',
    answers: [[409, { error: 'resource already exists', code: 'tid2' }]],
    requests: [create('')],
    code: 153,
    stderr: "error: Unable to create trigger 't': resource already exists (code tid2)",
  },
  {
    wsk: 'trigger create t -F a 1',
    code: 149,
    stderr: 'error: Incorrect usage. Trigger without a feed cannot have feed parameters',
  },
  { wsk: 'trigger create t -F a 1 -p b 2', code: 149, stderr: mixed },
  { wsk: 'trigger create', code: 1, stderr: errorWithHint('Invalid argument(s). A trigger name is required.') },
  {
    wsk: 'trigger create t -F a',
    code: 1,
    stderr: errorWithHint("Failed to parse arguments: Arguments for '-F' must be a key/value pair"),
  },
]);

describeCases('trigger update', [
  {
    wsk: 'trigger update t -p a 1',
    answers: [
      [200, trigger],
      [200, trigger],
    ],
    requests: ['GET /triggers/t', 'PUT /triggers/t?overwrite=true {"name":"t","parameters":[{"key":"a","value":1}]}'],
    stdout: 'ok: updated trigger t',
  },
  {
    wsk: 'trigger update t',
    answers: [notThere, [200, trigger]],
    requests: ['GET /triggers/t', create('')],
    stdout: 'ok: created trigger t',
  },
  {
    wsk: 'trigger update t -p a 1',
    answers: [
      [200, withFeed],
      [200, record],
    ],
    requests: ['GET /triggers/t', feedCall('UPDATE').replace('{', '{"a":1,')],
    stdout: `${printedRecord}ok: updated trigger t`,
  },
  {
    wsk: 'trigger update t -F a 1 -T b 2',
    answers: [
      [200, withFeed],
      [200, withFeed],
      [200, record],
    ],
    requests: [
      'GET /triggers/t',
      'PUT /triggers/t?overwrite=true {"name":"t","parameters":[{"key":"b","value":2}]}',
      feedCall('UPDATE').replace('{', '{"a":1,'),
    ],
    stdout: `${printedRecord}ok: updated trigger t`,
  },
  {
    wsk: 'trigger update t -F a 1',
    answers: [
      [200, trigger],
      [200, trigger],
    ],
    requests: ['GET /triggers/t', 'PUT /triggers/t?overwrite=true {"name":"t"}'],
    code: 1,
    stderr: "error: Unable to configure feed 't': this trigger does not contain a feed",
  },
  {
    wsk: 'trigger update t -T a 1 -p b 2',
    answers: [[200, trigger]],
    requests: ['GET /triggers/t'],
    code: 149,
    stderr: mixed,
  },
]);

describeCases('trigger fire, get, list, delete', [
  {
    wsk: 'trigger fire t -p b 1 -p a x',
    answers: [[202, { activationId: 'id1' }]],
    requests: ['POST /triggers/t {"a":"x","b":1}'],
    stdout: 'ok: triggered /_/t with id id1',
  },
  {
    wsk: 'trigger fire /ns/t',
    answers: [[204, '']],
    requests: ['POST /api/v1/namespaces/ns/triggers/t {}'],
    stdout: 'ok: triggered /ns/t with id ',
  },
  {
    wsk: 'trigger fire t',
    answers: [notThere],
    requests: ['POST /triggers/t {}'],
    code: 148,
    stderr: "error: Unable to fire trigger 't': The requested resource does not exist. (code tid1)",
  },
  { wsk: 'trigger fire', code: 1, stderr: errorWithHint('Invalid argument(s). A trigger name is required.') },
  {
    wsk: 'trigger fire t x',
    code: 1,
    stderr: errorWithHint('Invalid argument(s): x. A trigger name is required.'),
  },
  {
    wsk: 'trigger get t',
    answers: [[200, trigger]],
    requests: ['GET /triggers/t'],
    stdout: `ok: got trigger t\n${printed({
      namespace: 'guest',
      name: 't',
      version: '0.0.1',
      parameters: trigger.parameters,
      limits: {},
      publish: false,
      rules: { 'guest/r': { action: { name: 'a', path: 'guest' }, status: 'active' } },
      updated: 5,
    })}`,
  },
  {
    wsk: 'trigger get t',
    answers: [[200, { ...trigger, rules: {} }]],
    requests: ['GET /triggers/t'],
    stdout: `ok: got trigger t\n${printed({
      namespace: 'guest',
      name: 't',
      version: '0.0.1',
      parameters: trigger.parameters,
      limits: {},
      publish: false,
      updated: 5,
    })}`,
  },
  {
    wsk: 'trigger get t parameters',
    answers: [[200, trigger]],
    requests: ['GET /triggers/t'],
    stdout: `ok: got trigger t, displaying field parameters\n${printed(trigger.parameters)}`,
  },
  {
    wsk: 'trigger get t -s',
    answers: [[200, trigger]],
    requests: ['GET /triggers/t'],
    stdout: 'trigger /guest/t: Returns a result based on parameter p\n   (parameters: *p)',
  },
  {
    wsk: 'trigger get t',
    answers: [
      [200, withFeed],
      [200, record],
    ],
    requests: ['GET /triggers/t', feedCall('READ')],
    stdout: printedRecord,
  },
  {
    wsk: 'trigger get t',
    answers: [
      [200, withFeed],
      [502, failed],
    ],
    requests: ['GET /triggers/t', feedCall('READ')],
    stderr: printed(failed),
  },
  { wsk: 'trigger get t x', code: 1, stderr: "error: Invalid field filter 'x'." },
  {
    wsk: 'trigger get t',
    answers: [notThere],
    requests: ['GET /triggers/t'],
    code: 148,
    stderr: "error: Unable to get trigger 't': The requested resource does not exist. (code tid1)",
  },
  {
    wsk: 'trigger list -n',
    answers: [
      [
        200,
        [
          { namespace: 'g', name: 'u' },
          { namespace: 'g', name: 'T' },
        ],
      ],
    ],
    requests: ['GET /triggers?limit=30&skip=0'],
    stdout: `triggers\n${'/g/T'.padEnd(70)} private\n${'/g/u'.padEnd(70)} private`,
  },
  {
    wsk: 'trigger delete t',
    answers: [
      [200, trigger],
      [200, trigger],
    ],
    requests: ['GET /triggers/t', 'DELETE /triggers/t'],
    stdout: 'ok: deleted trigger t',
  },
  {
    wsk: 'trigger delete t',
    answers: [
      [200, withFeed],
      [502, failed],
      [200, withFeed],
    ],
    requests: ['GET /triggers/t', feedCall('DELETE'), 'DELETE /triggers/t'],
    stdout: 'ok: deleted trigger t',
    stderr: printed(failed),
  },
]);

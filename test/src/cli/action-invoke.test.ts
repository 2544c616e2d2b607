import { describeCases, errorWithHint, printed, usageHint } from './cases.js';

const invoke = (options: string, body = '{}'): string[] => [`POST /actions/hello?${options} ${body}`];
const fired = 'blocking=false&result=false';
const blocking = 'blocking=true&result=false';
const resultOnly = 'blocking=true&result=true';
const record = { response: { success: true, result: { z: 1, a: [] } }, activationId: 'aid', duration: 3 };
const recordPrinted = printed({
  activationId: 'aid',
  duration: 3,
  response: { result: { a: [], z: 1 }, success: true },
});
const failed = {
  activationId: 'aid',
  response: { result: { error: 'boom' }, status: 'application error', success: false },
};

const tooLong = 'The action produced a response that exceeded the allowed length: 2000008 > 1048576 bytes.';
const setBy = '(setting: limits.maxResultBytes; limit of the namespace: maxPayloadSize)';
const cutShort = { error: `${tooLong} ${setBy} wsk activation result shows its beginning.` };
const oversize = { error: `${tooLong} The truncated response was: {"x":"aaa` };
const unprovided = { error: 'Failed to provision resources to run the action.' };

describeCases('action invoke', [
  {
    wsk: 'action invoke hello -r',
    answers: [[502, oversize]],
    requests: invoke(resultOnly),
    code: 246,
    stderr: printed(cutShort),
  },
  {
    wsk: 'action invoke hello -b',
    answers: [[502, { ...failed, response: { ...failed.response, result: oversize } }]],
    requests: invoke(blocking),
    code: 246,
    stderr: `ok: invoked /_/hello with id aid\n${printed({ ...failed, response: { ...failed.response, result: cutShort } })}`,
  },
  {
    wsk: 'action invoke hello -r',
    answers: [[500, unprovided]],
    requests: invoke(resultOnly),
    code: 244,
    stderr: printed(unprovided),
  },
  {
    wsk: 'action invoke hello',
    answers: [[202, { activationId: 'aid' }]],
    requests: invoke(fired),
    stdout: 'ok: invoked /_/hello with id aid',
  },
  {
    wsk: 'action invoke /ns/p/hello',
    answers: [[202, { activationId: 'aid' }]],
    requests: ['POST /api/v1/namespaces/ns/actions/p/hello?blocking=false&result=false {}'],
    stdout: 'ok: invoked /ns/p/hello with id aid',
  },
  {
    wsk: 'action invoke hello -b',
    answers: [[200, record]],
    requests: invoke(blocking),
    stdout: `ok: invoked /_/hello with id aid\n${recordPrinted}`,
  },
  {
    wsk: 'action invoke hello -r',
    answers: [[200, '{"n":12345678901234567890,"f":1.50}']],
    requests: invoke(resultOnly),
    stdout: '{\n    "f": 1.50,\n    "n": 12345678901234567890\n}',
  },
  {
    wsk: 'action invoke hello -r',
    answers: [[200, [1, 'a']]],
    requests: invoke(resultOnly),
    stdout: printed([1, 'a']),
  },
  { wsk: 'action invoke hello -br', answers: [[200, {}]], requests: invoke(resultOnly), stdout: '{}' },
  {
    wsk: 'action invoke hello -r',
    answers: [[200, { response: { success: false } }]],
    requests: invoke(resultOnly),
    stdout: printed({ response: { success: false } }),
  },
  {
    wsk: [
      'action',
      'invoke',
      'hello',
      '-p',
      'z',
      '{"b": 1, "a": 2}',
      '--param',
      'a',
      '[1.0]',
      '-P',
      'f.json',
      '-p',
      'k"',
      'a\\nb',
      '-p',
      'u',
      'héllo 😀',
    ],
    files: { 'f.json': '{"a": "from file", "n": null} trailing words' },
    answers: [[202, { activationId: 'aid' }]],
    requests: invoke(fired, '{"a":"from file","k\\"":"a\\nb","n":null,"u":"héllo 😀","z":{"a":2,"b":1}}'),
    stdout: 'ok: invoked /_/hello with id aid',
  },
  {
    wsk: 'action invoke hello -b',
    answers: [[502, failed]],
    requests: invoke(blocking),
    code: 246,
    stderr: `ok: invoked /_/hello with id aid\n${printed(failed)}`,
  },
  {
    wsk: 'action invoke hello -r',
    answers: [[502, { error: 'boom' }]],
    requests: invoke(resultOnly),
    code: 246,
    stderr: printed({ error: 'boom' }),
  },
  {
    wsk: 'action invoke hello',
    answers: [[502, { error: 'boom' }]],
    requests: invoke(fired),
    code: 246,
    stderr: usageHint,
  },
  {
    wsk: 'action invoke hello -b',
    answers: [[502, '{}']],
    requests: invoke(blocking),
    code: 246,
    stderr: errorWithHint(
      "Unable to invoke action 'hello': The connection failed, or timed out. (HTTP status code 502)",
    ),
  },
  {
    wsk: 'action invoke hello -b',
    answers: [[202, { activationId: 'aid' }]],
    requests: invoke(blocking),
    code: 202,
    stderr: 'ok: invoked /_/hello, but the request has not yet finished, with id aid',
  },
  {
    wsk: 'action invoke hello -r',
    answers: [[202, { activationId: 'aid' }]],
    requests: invoke(resultOnly),
    code: 202,
    stderr: 'ok: invoked /_/hello, but the request has not yet finished, with id aid',
  },
  {
    wsk: 'action invoke hello',
    answers: [[429, { error: 'Too many requests in the last minute (count: 61, allowed: 60).', code: 'tid' }]],
    requests: invoke(fired),
    code: 173,
    stderr: errorWithHint(
      "Unable to invoke action 'hello': Too many requests in the last minute (count: 61, allowed: 60). (code tid)",
    ),
  },
  {
    wsk: 'action invoke hello -b',
    answers: [[500, '']],
    requests: invoke(blocking),
    code: 244,
    stderr: errorWithHint(
      "Unable to invoke action 'hello': The connection failed, or timed out. (HTTP status code 500)",
    ),
  },
  { wsk: 'action invoke', code: 1, stderr: errorWithHint('Invalid argument(s). An action name is required.') },
  {
    wsk: 'action invoke hello -p',
    code: 1,
    stderr: errorWithHint(
      "Failed to parse arguments: The parameter arguments are invalid: Arguments for '-p' must be a key/value pair",
    ),
  },
  {
    wsk: 'action invoke hello -P f',
    files: { f: '[1]' },
    code: 1,
    stderr: errorWithHint(
      `Invalid parameter argument '[]string{"[1]"}': json: cannot unmarshal array into Go value of type map[string]interface {}`,
    ),
  },
  {
    wsk: 'action invoke hello -P f',
    files: { f: '{"a":' },
    code: 1,
    stderr: errorWithHint(`Invalid parameter argument '[]string{"{\\"a\\":"}': unexpected EOF`),
  },
  {
    wsk: 'action invoke hello -P f',
    files: { f: '' },
    code: 1,
    stderr: errorWithHint(`Invalid parameter argument '[]string{""}': EOF`),
  },
]);

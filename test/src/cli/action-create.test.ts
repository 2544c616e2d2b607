import { describeCases, errorWithHint, type Case } from './cases.js';
import type { Answer } from './fake-openwhisk.js';

const notThere: Answer = [404, { error: 'The requested resource does not exist.', code: 'tid1' }];
const code = 'function main() {}\n';
const js = { 'a.js': code };
const exec = `"exec":{"kind":"nodejs:default","code":"function main() {}\\n"}`;
const put = (body: string, name = 'hello'): string =>
  `PUT /actions/${name}?overwrite=false {"namespace":"_","name":"${name}"${body && `,${body}`}}`;
const update = (body: string): string =>
  `PUT /actions/hello?overwrite=true {"namespace":"_","name":"hello"${body && `,${body}`}}`;
const look = 'GET /actions/hello?code=false';
const annotations = (...pairs: [string, unknown][]): string =>
  `"annotations":${JSON.stringify(pairs.map(([key, value]) => ({ key, value })))}`;

function existing(...pairs: [string, unknown][]): Answer {
  return [200, { name: 'hello', annotations: pairs.map(([key, value]) => ({ key, value })) }];
}

/** The case of a created action: the words after `action create hello`, and the body that is sent. */
function creates(words: string | string[], body: string, files: Case['files'] = js): Case {
  const list = typeof words === 'string' ? words.split(' ') : words;
  return {
    wsk: ['action', 'create', 'hello', ...list],
    files,
    requests: [put(body)],
    stdout: 'ok: created action hello',
  };
}

function refuses(words: string, message: string, exitCode = 2, files: Case['files'] = js): Case {
  return { wsk: `action create hello ${words}`, files, code: exitCode, stderr: errorWithHint(message) };
}

describeCases('action create', [
  creates('a.js', exec),
  creates(
    'a.js --kind nodejs:22 --main run',
    '"exec":{"kind":"nodejs:22","code":"function main() {}\\n","main":"run"}',
  ),
  creates('a.js -t 1000 -m 128', `${exec},"limits":{"timeout":1000,"memory":128}`),
  creates('a.js --logsize=0 -c5', `${exec},"limits":{"logs":0,"concurrency":5}`),
  creates(
    ['a.js', '-p', 'a', '1.50', '-p', 'b', 'two words'],
    `${exec},"parameters":[{"key":"a","value":1.50},{"key":"b","value":"two words"}]`,
  ),
  creates(
    'a.js -P p.json -p n 12345678901234567890',
    `${exec},"parameters":[{"key":"x","value":null},{"key":"n","value":12345678901234567890}]`,
    { ...js, 'p.json': '{"x":null}' },
  ),
  creates(
    ['a.js', '-a', 'gpu', '{"memoryMiB": 1024}', '-A', 'n.json'],
    `${exec},"annotations":[{"key":"gpu","value":{"memoryMiB":1024}},{"key":"y","value":[]}]`,
    { ...js, 'n.json': '{"y":[]}' },
  ),
  creates('a.py', '"exec":{"kind":"python:default","code":"x"}', { 'a.py': 'x' }),
  creates('a.rb', '"exec":{"kind":"ruby:default","code":"x"}', { 'a.rb': 'x' }),
  creates('a.go', '"exec":{"kind":"go:default","code":"x"}', { 'a.go': 'x' }),
  creates('a.so --kind native:1', '"exec":{"kind":"native:1","code":"f0VMRgD/"}', {
    'a.so': Buffer.from([0x7f, 0x45, 0x4c, 0x46, 0, 0xff]),
  }),
  creates('a.jar --main M', '"exec":{"kind":"java:default","code":"AP8=","main":"M"}', {
    'a.jar': Buffer.from([0, 255]),
  }),
  ...['mjs', 'cjs', 'ts', 'mts', 'cts'].map((extension) =>
    creates(`a.${extension}`, '"exec":{"kind":"nodejs:default","code":"export default 1"}', {
      [`a.${extension}`]: 'export default 1',
    }),
  ),
  creates('a.zip --kind python:3', '"exec":{"kind":"python:3","code":"UEsD"}', { 'a.zip': 'PK\u0003' }),
  creates('--docker me/image', '"exec":{"kind":"blackbox","image":"me/image"}'),
  creates('a.js --docker me/image', '"exec":{"kind":"blackbox","code":"function main() {}\\n","image":"me/image"}'),
  creates('a.zip --native', '"exec":{"kind":"blackbox","code":"UEs=","image":"openwhisk/dockerskeleton"}', {
    'a.zip': 'PK',
  }),
  creates('--sequence a,p/b,/n/c,n/p/d', '"exec":{"kind":"sequence","components":["/_/a","/_/p/b","/n/c","/n/p/d"]}'),
  creates('a.js --web true', `${exec},${annotations(['web-export', true], ['raw-http', false], ['final', true])}`),
  creates(
    'a.js --web raw -a k v',
    `${exec},${annotations(['k', 'v'], ['web-export', true], ['raw-http', true], ['final', true])}`,
  ),
  creates('a.js --web no', `${exec},${annotations(['web-export', false], ['raw-http', false], ['final', false])}`),
  creates(
    'a.js --web yes --web-secure s',
    `${exec},${annotations(['web-export', true], ['raw-http', false], ['final', true], ['require-whisk-auth', 's'])}`,
  ),
  {
    wsk: 'action create /ns/pkg/hello a.js',
    files: js,
    requests: [
      `PUT /api/v1/namespaces/ns/actions/pkg/hello?overwrite=false {"namespace":"ns","name":"pkg/hello",${exec}}`,
    ],
    stdout: 'ok: created action pkg/hello',
  },
  {
    wsk: 'action create new hello --copy -p q 1',
    answers: [
      [
        200,
        {
          exec: { kind: 'k', code: 'c', binary: true, other: 1 },
          parameters: [{ key: 'p', value: 2, init: true }],
          annotations: [{ key: 'a', value: 'b' }],
        },
      ],
    ],
    requests: [
      'GET /actions/hello?code=true',
      put(
        `"exec":{"kind":"k","code":"c","binary":true},${annotations(['a', 'b'])},"parameters":[{"key":"q","value":1},{"key":"p","value":2}]`,
        'new',
      ),
    ],
    stdout: 'ok: created action new',
  },
  {
    wsk: 'action create new hello --copy',
    answers: [notThere],
    requests: ['GET /actions/hello?code=true'],
    code: 148,
    stderr: errorWithHint(
      "Invalid argument(s). Unable to get action 'hello': The requested resource does not exist. (code tid1)",
    ),
  },
  {
    wsk: 'action create hello a.js',
    files: js,
    answers: [[409, { error: 'resource already exists', code: 'tid2' }]],
    requests: [put(exec)],
    code: 153,
    stderr: errorWithHint("Unable to create action 'hello': resource already exists (code tid2)"),
  },
  {
    wsk: 'action create hello a.js',
    files: js,
    answers: [
      [413, { error: 'exec larger than allowed: 51 > 50 bytes. (setting: limits.maxCodeBytes)', code: 'tid2' }],
    ],
    requests: [put(exec)],
    code: 157,
    stderr: errorWithHint(
      "Unable to create action 'hello': exec larger than allowed: 51 > 50 bytes. (setting: limits.maxCodeBytes) (code tid2)",
    ),
  },
  {
    wsk: 'action create hello a.js',
    files: js,
    answers: [[413, '<html>']],
    requests: [put(exec)],
    code: 157,
    stderr: errorWithHint(
      "Unable to create action 'hello': The connection failed, or timed out. (HTTP status code 413)",
    ),
  },
  {
    wsk: 'action create',
    code: 1,
    stderr: errorWithHint('Invalid argument(s). An action name and code artifact are required.'),
  },
  {
    wsk: 'action create a b c',
    code: 1,
    stderr: errorWithHint('Invalid argument(s): c. An action name and code artifact are required.'),
  },
  {
    wsk: 'action create hello',
    code: 2,
    stderr: errorWithHint('Invalid argument(s). An action name and code artifact are required.'),
  },
  {
    wsk: 'action create hello --sequence',
    code: 2,
    stderr: errorWithHint('Invalid argument(s). An action name and code artifact are required.'),
  },
  {
    wsk: 'action create /a//b a.js',
    code: 1,
    stderr: errorWithHint(
      "Invalid argument(s). '/a//b' is not a valid qualified name: A valid qualified name must be specified.",
    ),
  },
  refuses('none.js', "Invalid argument(s). File 'none.js' is not a valid file or it does not exist"),
  refuses('a.txt', "Invalid argument(s). '.txt' is not a supported action runtime", 2, { 'a.txt': '' }),
  refuses('a', "Invalid argument(s). '' is not a supported action runtime", 2, { a: '' }),
  refuses(
    'a.zip',
    'Invalid argument(s). creating an action from a .zip artifact requires specifying the action kind explicitly',
    2,
    { 'a.zip': 'PK' },
  ),
  refuses(
    'a.js --kind k --docker d',
    'Invalid argument(s). Cannot specify both --kind and --docker at the same time.',
    149,
  ),
  refuses(
    'a.jar --kind java',
    'Invalid argument(s). Java actions require --main to specify the fully-qualified name of the main class',
    2,
    { 'a.jar': '' },
  ),
  refuses(
    'a.js --web maybe',
    "Invalid argument(s). Invalid argument 'maybe' for --web flag. Valid input consist of 'yes', 'true', 'raw', 'false', or 'no'.",
  ),
  refuses(
    'a.js --web-secure true',
    'Invalid argument(s). The --web-secure option is only valid when the --web option is enabled.',
  ),
  refuses(
    'a.js --web no --web-secure x',
    'Invalid argument(s). The --web-secure option is only valid when the --web option is enabled.',
  ),
  refuses(
    'a.js -a k',
    "Failed to parse arguments: The annotation arguments are invalid: Arguments for '-a' must be a key/value pair",
    1,
  ),
  refuses(
    'a.js -A',
    "Failed to parse arguments: The annotation arguments are invalid: An argument must be provided for '-A'",
    1,
  ),
  refuses('a.js -A none', "Failed to parse arguments: File 'none' is not a valid file or it does not exist"),
  refuses(
    'a.js -a k x"y',
    `Invalid argument(s). Invalid annotation argument '[]string{"{\\"k\\": \\"x\\"y\\"}"}': invalid character 'y' after object key:value pair`,
    1,
  ),
]);

describeCases('action update', [
  {
    wsk: 'action update hello a.js -m 512',
    files: js,
    answers: [notThere],
    requests: [look, update(`${exec},"limits":{"memory":512}`)],
    stdout: 'ok: updated action hello',
  },
  {
    wsk: 'action update hello',
    answers: [existing()],
    requests: [look, update('')],
    stdout: 'ok: updated action hello',
  },
  {
    wsk: 'action update hello --del-annotation a --del-annotation b',
    answers: [existing(['a', 1])],
    requests: [look, update('"delAnnotations":["a","b"]')],
    stdout: 'ok: updated action hello',
  },
  {
    wsk: 'action update hello --web true',
    answers: [existing(['k', { z: 1, a: 2 }], ['final', false], ['require-whisk-auth', 's'])],
    requests: [
      look,
      update(
        '"annotations":[{"key":"k","value":{"a":2,"z":1}},{"key":"require-whisk-auth","value":"s"},{"key":"web-export","value":true},{"key":"raw-http","value":false},{"key":"final","value":true}]',
      ),
    ],
    stdout: 'ok: updated action hello',
  },
  {
    wsk: 'action update hello --web false -a own 1',
    answers: [existing(['k', 1], ['require-whisk-auth', 's'])],
    requests: [
      look,
      update(
        annotations(
          ['own', 1],
          ['web-export', false],
          ['raw-http', false],
          ['final', false],
          ['require-whisk-auth', 's'],
        ),
      ),
    ],
    stdout: 'ok: updated action hello',
  },
  {
    wsk: 'action update hello --web-secure true',
    answers: [existing(['web-export', true], ['require-whisk-auth', 7])],
    requests: [look, update(annotations(['web-export', true], ['require-whisk-auth', 7]))],
    stdout: 'ok: updated action hello',
  },
  {
    wsk: 'action update hello --web-secure false',
    answers: [existing(['web-export', true], ['require-whisk-auth', 7], ['k', 1])],
    requests: [look, update(`${annotations(['web-export', true], ['k', 1])},"delAnnotations":["require-whisk-auth"]`)],
    stdout: 'ok: updated action hello',
  },
  {
    wsk: 'action update hello --web-secure new -a own 1',
    answers: [existing(['web-export', true], ['final', true], ['require-whisk-auth', 'old'], ['k', 1])],
    requests: [
      look,
      update(annotations(['own', 1], ['web-export', true], ['final', true], ['require-whisk-auth', 'new'])),
    ],
    stdout: 'ok: updated action hello',
  },
  {
    wsk: 'action update hello a.js',
    files: js,
    answers: [[401, { error: 'The supplied authentication is invalid.', code: 'tid' }]],
    requests: [look],
    code: 145,
    stderr: errorWithHint(
      "Invalid argument(s). Unable to get action 'hello': The supplied authentication is invalid. (code tid)",
    ),
  },
  {
    wsk: 'action update',
    code: 1,
    stderr: errorWithHint('Invalid argument(s). An action name is required. A code artifact is optional.'),
  },
]);

import { describeCases, errorWithHint, printed, type Case } from './cases.js';
import type { Answer } from './fake-openwhisk.js';

const files = { '.wskprops': 'AUTH=user:secret\n' };
const gateway = '/api/v1/web/whisk.system/apimgmt';
const credentials = 'accesstoken=DUMMY+TOKEN';
const backend = { action: 'a', namespace: 'guest', package: 'pkg', url: 'https://h/api/v1/web/guest/pkg/a.http' };
const operation = { operationId: 'getPath', responses: { default: { description: 'Default response' } } };
const apidoc = {
  paths: { '/path': { get: { ...operation, 'x-openwhisk': backend }, post: operation } },
  info: { version: '1.0.0', title: 'A long API name' },
  'x-ibm-configuration': { cors: { enabled: true }, assembly: {} },
  basePath: '/bp',
  swagger: '2.0',
};
const api = {
  namespace: 'guest',
  gwApiUrl: 'http://gw/user/bp',
  gwApiActivated: true,
  tenantId: 'Not Used',
  apidoc,
};
const listed: Answer = [200, { apis: [{ id: 'i', key: 'k', value: api }] }];
const none: Answer = [200, { apis: [] }];
const webAction: Answer = [200, { namespace: 'guest', name: 'a', annotations: [{ key: 'web-export', value: true }] }];

const swaggerPrinted = {
  swagger: '2.0',
  basePath: '/bp',
  info: { title: 'A long API name', version: '1.0.0' },
  paths: { '/path': { get: { ...operation, 'x-openwhisk': backend }, post: operation } },
  'x-ibm-configuration': { assembly: {}, cors: { enabled: true } },
};

function createRequest(basePath: string, action: string, path: string, query = 'json'): string {
  return `POST ${gateway}/createApi.http?${credentials}&responsetype=${query}&spaceguid=user {"apidoc":{"namespace":"_",${path},"id":"API:_:${basePath}","action":{${action}}`;
}
const action = (verb: string): string =>
  `"name":"pkg/a","namespace":"_","backendMethod":"${verb}","backendUrl":"/api/v1/web/_/pkg/a.http","authkey":"user:secret"`;

const refused = (wsk: string | string[], message: string, more: Partial<Case> = {}): Case => ({
  wsk,
  files,
  code: 1,
  stderr: errorWithHint(message),
  ...more,
});
const argumentHelp =
  'Specify a swagger file or specify an API base path with an API path, an API verb, and an action name.';
const badArguments = 'Unable to parse api command arguments';

describeCases('api create', [
  {
    wsk: 'api create /bp /path get pkg/a',
    files,
    answers: [webAction, [200, api]],
    requests: [
      'GET /actions/pkg/a?code=false',
      `${createRequest('/bp', action('GET'), '"gatewayBasePath":"/bp","gatewayPath":"/path","gatewayMethod":"GET"')}}}`,
    ],
    stdout: 'ok: created API /bp/path GET for action /_/pkg/a\nhttp://gw/user/bp/path',
  },
  {
    wsk: ['api', 'create', '/path', 'post', 'pkg/a', '-n', 'My API'],
    files,
    answers: [
      [
        200,
        {
          annotations: [
            { key: 'web-export', value: true },
            { key: 'require-whisk-auth', value: 'S' },
          ],
        },
      ],
      [200, api],
    ],
    requests: [
      'GET /actions/pkg/a?code=false',
      `${createRequest('/', `${action('POST')},"secureKey":"S"`, '"apiName":"My API","gatewayBasePath":"/","gatewayPath":"/path","gatewayMethod":"POST"')}}}`,
    ],
    stdout: 'ok: created API /path POST for action /_/pkg/a\nhttp://gw/user/bp/path',
  },
  {
    wsk: 'api create /bp /a/{b} get pkg/a --response-type http',
    files,
    answers: [webAction, [200, api]],
    requests: [
      'GET /actions/pkg/a?code=false',
      `${createRequest('/bp', action('GET'), '"gatewayBasePath":"/bp","gatewayPath":"/a/{b}","gatewayMethod":"GET"', 'http')},"pathParameters":[{"name":"b","in":"path","description":"Default description for 'b'","required":true,"type":"string"}]}}`,
    ],
    stdout: 'ok: created API /bp/a/{b} GET for action /_/pkg/a\nhttp://gw/user/bp/a/{b}',
  },
  refused('api create', `Invalid argument(s). ${argumentHelp}`),
  refused('api create /bp /path', `Invalid argument(s). ${argumentHelp}`),
  refused('api create a /b get c d', `Invalid argument(s): d. ${argumentHelp}`),
  refused('api create /bp path get a', `${badArguments}: 'path' must begin with '/'.`),
  refused(
    'api create /bp/{x} /path get a',
    `${badArguments}: The base path '/bp/{x}' cannot have parameters. Only the relative path supports path parameters.`,
  ),
  refused(
    'api create /bp /a/{b} get a',
    `${badArguments}: A response type of 'http' is required when using path parameters.`,
  ),
  refused(
    'api create /bp /a get /x//y',
    `${badArguments}: '/x//y' is not a valid action name: A valid qualified name must be specified.`,
    { code: 149 },
  ),
  refused('api create name /a get b -n other', `${badArguments}: An API name can only be specified once.`),
  refused(
    'api create /bp /path get a',
    "Action '/_/a' is not a web action. Issue 'wsk action update \"/_/a\" --web true' to convert the action to a web action.",
    { answers: [[200, { annotations: [] }]], requests: ['GET /actions/a?code=false'] },
  ),
  refused('api create /bp /path get a', "Unable to get action '/_/a': gone (code tid)", {
    answers: [[404, { error: 'gone', code: 'tid' }]],
    requests: ['GET /actions/a?code=false'],
  }),
  {
    wsk: 'api create /bp /path get pkg/a',
    files,
    answers: [webAction, [502, { error: 'API creation failure: no' }]],
    requests: [
      'GET /actions/pkg/a?code=false',
      `${createRequest('/bp', action('GET'), '"gatewayBasePath":"/bp","gatewayPath":"/path","gatewayMethod":"GET"')}}}`,
    ],
    code: 1,
    stderr: 'error: Unable to create API: API creation failure: no',
  },
  {
    wsk: 'api create /bp /path get pkg/a',
    files,
    answers: [webAction, [200, {}]],
    requests: [
      'GET /actions/pkg/a?code=false',
      `${createRequest('/bp', action('GET'), '"gatewayBasePath":"/bp","gatewayPath":"/path","gatewayMethod":"GET"')}}}`,
    ],
    code: 1,
    stderr: 'error: Unable to create API: Internal error. Missing apidoc stanza in API configuration',
  },
]);

const fromSwagger = (text: string): string[] => [
  `POST ${gateway}/createApi.http?${credentials}&responsetype=json&spaceguid=user ${JSON.stringify({
    apidoc: { namespace: '_', swagger: text },
  })}`,
];
const swaggerCreated = [
  'ok: created API /bp/path get for action /guest/pkg/a',
  'http://gw/user/bp/path',
  'ok: created API /bp/path post',
  'http://gw/user/bp/path',
].join('\n');
const invalid =
  'Unable to parse swagger file: Swagger file is invalid (missing basePath, info, paths, or swagger fields)';
const broken = (file: string, text: string, message: string): Case =>
  refused(`api create -c ${file}`, message, { files: { ...files, [file]: text } });

describeCases('api create from a swagger file', [
  {
    wsk: 'api create -c api.json',
    files: { ...files, 'api.json': JSON.stringify(apidoc) },
    answers: [[200, api]],
    requests: fromSwagger(JSON.stringify(apidoc)),
    stdout: swaggerCreated,
  },
  {
    wsk: 'api create --config-file api.yaml',
    files: { ...files, 'api.yaml': 'basePath: /bp\ninfo: {title: t}\npaths: {/p: {}}\nswagger: "2.0"\n' },
    answers: [[200, api]],
    requests: fromSwagger('{"basePath":"/bp","info":{"title":"t"},"paths":{"/p":{}},"swagger":"2.0"}'),
    stdout: swaggerCreated,
  },
  broken('api.json', '{"swagger":"2.0","basePath":"/b","info":{}}', invalid),
  broken('api.yml', 'swagger: "2.0"\ninfo: {}\npaths: {}\n', invalid),
  broken(
    'api.json',
    '{"swagger":"2.0","basePath":"b","info":{},"paths":{}}',
    'Unable to parse swagger file: Swagger file basePath must start with a leading slash (/)',
  ),
  refused(
    'api create -c none.json',
    "Unable to parse swagger file: Error reading swagger file 'none.json': File 'none.json' is not a valid file or it does not exist",
    { code: 2 },
  ),
]);

const yaml = `basePath: /bp
info:
  title: A long API name
  version: 1.0.0
paths:
  /path:
    get:
      operationId: getPath
      responses:
        default:
          description: Default response
      x-openwhisk:
        action: a
        namespace: guest
        package: pkg
        url: https://h/api/v1/web/guest/pkg/a.http
    post:
      operationId: getPath
      responses:
        default:
          description: Default response
swagger: "2.0"
x-ibm-configuration:
  assembly: {}
  cors:
    enabled: true

`;
const getRequest = (which: string): string[] => [`GET ${gateway}/getApi.http?${credentials}&${which}spaceguid=user`];
const getBp = getRequest('basepath=%2Fbp&');

describeCases('api get', [
  { wsk: 'api get /bp', files, answers: [listed], requests: getBp, stdout: printed(swaggerPrinted) },
  { wsk: 'api get /bp --format yaml', files, answers: [listed], requests: getBp, stdout: yaml },
  {
    wsk: 'api get /bp -f',
    files,
    answers: [listed],
    requests: getBp,
    stdout: printed({ ...api, apidoc: swaggerPrinted }),
  },
  {
    wsk: 'api get /bp',
    files,
    answers: [none],
    requests: getBp,
    code: 1,
    stderr: 'error: API does not exist for basepath /bp',
  },
  {
    wsk: 'api get /bp',
    files,
    answers: [[500, { error: 'broken', code: 'tid' }]],
    requests: getBp,
    code: 1,
    stderr: "error: Unable to get API '/bp': broken (code tid)",
  },
  { wsk: 'api get /bp --format xml', files, code: 1, stderr: 'error: Invalid format type: xml' },
  refused('api get', 'Invalid argument(s). An API base path or API name is required.'),
]);

const row = (name: string, verb: string, title: string, url: string): string =>
  `${name.padEnd(12)} ${verb.padStart(7)} ${title.padStart(16)}  ${url}`;
const header = row('Action', 'Verb', 'API Name', 'URL');
const getRow = row('/guest/pkg/a', 'get', 'A long API name', 'http://gw/user/bp/path');
const postRow = row('', 'post', 'A long API name', 'http://gw/user/bp/path');
const emptyHeader = `${'Action'.padEnd(30)} ${'Verb'.padStart(7)} ${'API Name'.padStart(20)}  URL`;

describeCases('api list, delete', [
  {
    wsk: 'api list -n',
    files,
    answers: [listed],
    requests: getRequest('limit=30&skip=0&'),
    stdout: ['ok: APIs', header, getRow, postRow].join('\n'),
  },
  {
    wsk: 'api list',
    files,
    answers: [none],
    requests: getRequest('limit=30&skip=0&'),
    stdout: `ok: APIs\n${emptyHeader}`,
  },
  {
    wsk: 'api list /bp /path GET -f',
    files,
    answers: [listed],
    requests: getRequest('basepath=%2Fbp&operation=GET&relpath=%2Fpath&'),
    stdout: [
      'ok: APIs',
      'Action: /guest/pkg/a',
      '   API Name: A long API name',
      '   Base path: /bp',
      '   Path: /path',
      '   Verb: get',
      '   URL: http://gw/user/bp/path',
    ].join('\n'),
  },
  refused('api list /bp path', "'path' must begin with '/'."),
  refused(
    'api list /a /b get d',
    'Invalid argument(s): d. Optional parameters are: API base path (or API name), API relative path and operation.',
  ),
  {
    wsk: 'api delete /bp',
    files,
    requests: [`DELETE ${gateway}/deleteApi.http?${credentials}&basepath=%2Fbp&spaceguid=user`],
    stdout: 'ok: deleted API /bp',
  },
  {
    wsk: 'api delete /bp /path',
    files,
    requests: [`DELETE ${gateway}/deleteApi.http?${credentials}&basepath=%2Fbp&relpath=%2Fpath&spaceguid=user`],
    stdout: 'ok: deleted /path from /bp',
  },
  {
    wsk: 'api delete /bp /path get',
    files,
    requests: [
      `DELETE ${gateway}/deleteApi.http?${credentials}&basepath=%2Fbp&operation=GET&relpath=%2Fpath&spaceguid=user`,
    ],
    stdout: 'ok: deleted /path GET from /bp',
  },
  {
    wsk: 'api delete /bp',
    files,
    answers: [[502, { error: "API deletion failure: API '/bp' does not exist." }]],
    requests: [`DELETE ${gateway}/deleteApi.http?${credentials}&basepath=%2Fbp&spaceguid=user`],
    code: 1,
    stderr: "error: Unable to delete API: API deletion failure: API '/bp' does not exist.",
  },
  refused(
    'api delete',
    'Invalid argument(s). An API base path or API name is required.  An optional API relative path and operation may also be provided.',
  ),
]);

/** The order of the listed methods is not fixed in OpenWhisk's wsk. */
describeCases('api with an unknown method', [
  refused(
    'api delete /bp /path fetch',
    "'fetch' is not a valid API verb.  Valid values are: [GET PUT POST DELETE PATCH HEAD OPTIONS]",
  ),
]);

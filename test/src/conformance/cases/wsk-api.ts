import { expect } from '@jest/globals';
import { swaggerOf } from '../api-routes.js';
import { table } from '../conformance-case.js';
import type { Row } from '../conformance-case.js';
import type { Trial } from '../trial.js';
import { WskShell } from '../wsk-shell.js';

const basic = 'ApiGwCliBasicTests: ';
const paths = 'ApiGwCliTests: ';
const more = 'WskApiGwTests: ';

/** A shell with a web action, and the base path of an API that is removed after the case. */
class ApiShell {
  private constructor(
    readonly shell: WskShell,
    readonly action: string,
    readonly base: string,
    /** The API's name. */
    readonly name: string,
  ) {}

  static async open(t: Trial, action = t.name('action')): Promise<ApiShell> {
    const shell = await WskShell.open(t);
    await shell.write('echo.js', 'function main(args) { return { body: args }; }');
    await shell.create('action', action, ['echo.js', '--web', 'true']);
    // A list truncates names after 25 characters.
    const name = t.name('N');
    const base = `/${name}`;
    t.atEnd(() => shell.run(['api', 'delete', base]));
    return new ApiShell(shell, action, base, `${name} API`);
  }

  /** Adds an operation and returns its URL. */
  async add(path = '/path', verb = 'get', flags: readonly string[] = ['--apiname', this.name]): Promise<string> {
    const printed = await this.shell.prints(['api', 'create', this.base, path, verb, this.action, ...flags]);
    expect(printed).toContain('ok: created API');
    return printed.split('\n')[1] ?? '';
  }

  /** Expects that a list names the operation. */
  async lists(path = '/path', verb = 'get', filter: readonly string[] = []): Promise<void> {
    const printed = await this.shell.prints(['api', 'list', this.base, ...filter]);
    expect(printed).toContain('ok: APIs');
    expect(printed).toMatch(new RegExp(`/${this.shell.trial.namespace}/${this.action}\\s+${verb}\\s+${this.name}\\s+`));
    expect(printed).toContain(this.base + path);
  }

  async deletes(rest: readonly string[] = [], what = 'API', named = this.base): Promise<void> {
    expect(await this.shell.prints(['api', 'delete', named, ...rest])).toContain(`ok: deleted ${what}`);
  }

  /** Expects an API document that leads to the action and allows CORS. Returns the document. */
  async tells(of: string, extension = 'json', flags: readonly string[] = []): Promise<string> {
    const printed = await this.shell.prints(['api', 'get', of, ...flags]);
    expect(printed).toContain(this.base);
    expect(printed).toMatch(/"cors":\s*\{\s*\n\s*"enabled":\s*true/);
    expect(printed).toMatch(new RegExp(`"target-url":\\s+.*${this.action.split('/').at(-1)}.${extension}`));
    return printed;
  }
}

/** Makes an API with parameters in its path, and calls it with these values. */
async function callsWithParameters(t: Trial, path: string, values: Readonly<Record<string, string>>): Promise<void> {
  const api = await ApiShell.open(t);
  const url = await api.add(path, 'get', ['--apiname', api.name, '--response-type', 'http']);
  const printed = await api.tells(api.name, 'http');
  expect(printed).toMatch(/target-url.*\.http\$\(request\.path\)/);
  expectParameters(printed, path, Object.keys(values));
  await answersAt(url, path, values);
}

function expectParameters(printed: string, path: string, names: readonly string[]): void {
  const document = JSON.parse(printed) as { paths: Record<string, { get: { parameters: unknown[] } }> };
  expect(document.paths[path]?.get.parameters).toEqual(
    names.map((name) => ({
      ...{ name, in: 'path', required: true, type: 'string' },
      description: `Default description for '${name}'`,
    })),
  );
}

async function answersAt(url: string, path: string, values: Readonly<Record<string, string>>): Promise<void> {
  const filled = (text: string): string => text.replace(/\{(\w+)\}/g, (_, name: string) => values[name] ?? '');
  const answer = await fetch(filled(url));
  expect(answer.status).toBe(200);
  const { __ow_path: seen } = (await answer.json()) as { __ow_path: string };
  expect(seen).toContain(filled(path));
}

/** HTTP methods as an API document names them. */
const verbs = ['put', 'delete', 'get', 'head', 'options', 'patch', 'post'];

const rows: Row[] = [
  {
    fact: 'a document that was exported makes the same API again',
    stands: `${basic}create the API when swagger file contains path parameters`,
    run: async (t) => {
      const api = await ApiShell.open(t);
      const path = '/api2/greeting2/{name}';
      await api.add(path, 'get', ['--response-type', 'http']);
      await api.shell.write('api.json', await api.shell.prints(['api', 'get', api.base]));
      await api.deletes();
      const created = await api.shell.prints('api create --config-file api.json');
      expect(created).toContain('ok: created API');
      const printed = await api.shell.prints(['api', 'get', api.base]);
      expect(printed).toMatch(/target-url.*\.http\$\(request\.path\)/);
      expectParameters(printed, path, ['name']);
      await answersAt(created.split('\n')[1] ?? '', path, { name: 'scooby' });
    },
  },
  {
    fact: 'paths begin with a slash, and verbs are known ones',
    stands: [
      `${basic}reject an api commands with an invalid path parameter`,
      `${basic}reject an api commands with an invalid verb parameter`,
    ],
    run: async (t) => {
      const shell = await WskShell.open(t);
      for (const command of ['create', 'delete', 'list']) {
        const action = command === 'create' ? ' action' : '';
        const path = await shell.run(`api ${command} /basepath badpath GET${action}`);
        expect(path).toMatchObject({ stderr: expect.stringContaining("'badpath' must begin with '/'") });
        const verb = await shell.run(`api ${command} /basepath /path badverb${action}`);
        const text = "'badverb' is not a valid API verb.  Valid values are:";
        expect(verb).toMatchObject({ stderr: expect.stringContaining(text) });
        expect([path.code, verb.code]).not.toContain(0);
      }
    },
  },
  {
    fact: 'documents are files, JSON or YAML, and have what an API has',
    stands: [
      `${basic}reject an api create command that specifies a nonexistent configuration file`,
      `${basic}reject an api create command specifying a non-JSON configuration file`,
      `${basic}reject an api create command specifying a non-swagger JSON configuration file`,
      `${basic}verify failed creation with invalid swagger doc as input`,
      `${more}reject creation of an API from invalid YAML formatted API configuration file`,
    ],
    run: async (t) => {
      const shell = await WskShell.open(t);
      const wrong = { swagger: '2.0', info: { title: 'My API', version: '1.0.0' }, BADbasePath: '/bp', paths: {} };
      await shell.write('text.txt', 'a=A');
      await shell.write('wrong.txt', JSON.stringify({ ...wrong, paths: { '/rp': { get: {} } } }));
      await shell.write('bare.json', JSON.stringify({ swagger: '2.0', info: {}, basePath: '/bare' }));
      await shell.write('bad.yaml', 'swagger: "2.0\n  info: [\n');
      for (const [file, text] of [
        ['/nonexistent/file', "Error reading swagger file '/nonexistent/file'"],
        ['text.txt', "Error parsing swagger file 'text.txt':"],
        ['wrong.txt', 'Swagger file is invalid (missing basePath, info, paths, or swagger fields'],
        ['bare.json', 'Swagger file is invalid'],
        ['bad.yaml', 'Unable to parse YAML configuration file'],
      ] as const) {
        const { code, stderr } = await shell.run(['api', 'create', '--config-file', file]);
        expect(code).not.toBe(0);
        expect({ file, stderr }).toMatchObject({ stderr: expect.stringContaining(text) });
      }
    },
  },
  {
    fact: 'a full list has lines for all that an operation has',
    stands: `${basic}verify full list output`,
    run: async (t) => {
      const api = await ApiShell.open(t);
      await api.add();
      const printed = await api.shell.prints(['api', 'list', api.base, '/path', 'get', '--full']);
      expect(printed).toContain('ok: APIs');
      for (const line of [
        `Action:\\s+/${t.namespace}/${api.action}`,
        'Verb:\\s+get',
        `Base path:\\s+${api.base}`,
        'Path:\\s+/path',
        `API Name:\\s+${api.name}`,
        'URL:\\s+.*',
      ]) {
        expect(printed).toMatch(new RegExp(`${line}\n`));
      }
      expect(printed).toContain(`${api.base}/path`);
    },
  },
  {
    fact: 'an API is made, listed, read and deleted, also where the host has a scheme',
    stands: [
      `${basic}verify successful creation and deletion of a new API`,
      `${basic}verify successful creation and deletion of a new API when apihost specifies the protocol`,
    ],
    run: async (t) => {
      expect(t.user.url).toMatch(/^https?:/);
      const api = await ApiShell.open(t);
      const path = '/path/with/sub_paths/in/it';
      await api.add(path);
      await api.lists(path, 'get', [path, 'get']);
      const printed = await api.shell.prints(['api', 'get', api.base]);
      expect(printed).toMatch(/"operationId":\s+"getPathWithSub_pathsInIt"/);
      expect(printed).toMatch(new RegExp(`"target-url":\\s+"${t.user.url}`));
      await api.deletes();
    },
  },
  {
    fact: 'an API is read and deleted by its name, and deleted by its base path',
    stands: [`${basic}verify get API name`, `${basic}verify delete API name`, `${basic}verify delete API basepath`],
    run: async (t) => {
      const api = await ApiShell.open(t);
      await api.add();
      await api.tells(api.name);
      await api.deletes([], 'API', api.name);
      await api.add();
      await api.deletes();
    },
  },
  {
    fact: 'operations are added to APIs that are there',
    stands: [`${basic}verify adding endpoints to existing api`, `${basic}verify adding endpoints to two existing apis`],
    run: async (t) => {
      const [one, other] = [await ApiShell.open(t), await ApiShell.open(t)];
      for (const api of [one, other]) await api.add('/path2');
      for (const api of [one, other]) await api.add('/newEndpoint', 'get', []);
      for (const api of [one, other]) {
        await api.lists('/path2');
        await api.lists('/newEndpoint');
      }
    },
  },
  {
    fact: 'documents in JSON and YAML make APIs, also of several actions',
    stands: [
      `${basic}verify successful creation with swagger doc as input`,
      `${basic}verify successful creation with complex swagger doc as input`,
      `${more}successfully create an API from a YAML formatted API configuration file`,
    ],
    run: async (t) => {
      const api = await ApiShell.open(t);
      const info = { title: api.name, version: '1.0.0' };
      const document = { ...swaggerOf(t, api.base, api.action, ['/path', '/utils/{split}']), info };
      await api.shell.write('api.json', JSON.stringify(document));
      expect(await api.shell.prints('api create --config-file api.json')).toContain('ok: created API');
      for (const path of ['/path', '/utils/{split}']) await api.lists(path);
      await api.deletes();
      // Valid JSON is also valid YAML, so this case imports real YAML: the API's own export.
      await api.shell.prints('api create --config-file api.json');
      await api.shell.write('api.yaml', await api.shell.prints(['api', 'get', api.base, '--format', 'yaml']));
      await api.deletes();
      expect(await api.shell.prints('api create --config-file api.yaml')).toContain('ok: created API');
      await api.lists();
    },
  },
  {
    fact: 'an action of all allowed characters is in an API',
    stands: `${basic}verify successful creation of a new API using an action name using all allowed characters`,
    run: async (t) => {
      const api = await ApiShell.open(t, `${t.name('a')}-c@t ion`);
      await api.add();
      await api.lists('/path', 'get', ['/path', 'get']);
      await api.deletes();
    },
  },
  {
    fact: 'paths and operations are deleted one by one',
    stands: [
      `${basic}verify delete basepath/path`,
      `${basic}verify delete single operation from existing API basepath/path/operation(s)`,
    ],
    run: async (t) => {
      const api = await ApiShell.open(t);
      await api.add('/path');
      await api.add('/path_new');
      await api.deletes(['/path'], `/path from ${api.base}`);
      await api.lists('/path_new', 'get', ['/path_new']);
      await api.add('/path_new', 'post');
      for (const verb of ['get', 'post']) await api.lists('/path_new', verb);
      await api.deletes(['/path_new', 'post'], `/path_new POST from ${api.base}`);
      await api.lists('/path_new');
    },
  },
  {
    fact: 'an API is deleted, and another one stays',
    stands: `${basic}verify successful creation and deletion with multiple base paths`,
    run: async (t) => {
      const [one, other] = [await ApiShell.open(t), await ApiShell.open(t)];
      for (const api of [one, other]) {
        await api.add();
        await api.lists('/path', 'get', ['/path', 'get']);
      }
      await other.deletes();
      await one.lists('/path', 'get', ['/path', 'get']);
      await one.deletes();
    },
  },
  {
    fact: 'the type of an answer is in the URL of the action, also of one in a package',
    stands: [
      `${basic}verify API with http response type`,
      `${basic}verify get API name that uses custom package`,
      `${more}successfully export an API when JSON format is explcitly specified`,
      `${more}successfully export an API in YAML format`,
    ],
    run: async (t) => {
      const api = await ApiShell.open(t);
      await api.add('/path', 'get', ['--apiname', api.name, '--response-type', 'http']);
      await api.tells(api.name, 'http');
      await api.tells(api.name, 'http', ['--format', 'json']);
      const yaml = await api.shell.prints(['api', 'get', api.name, '--format', 'yaml']);
      expect(yaml).toContain(`basePath: ${api.base}`);
      const inside = await api.shell.create('package', t.name('package'));
      const packaged = await ApiShell.open(t, `${inside}/${t.name('action')}`);
      await packaged.add();
      await packaged.tells(packaged.name);
    },
  },
  {
    fact: 'what is not there cannot be deleted, exported or led to',
    stands: [
      `${basic}reject deletion of a non-existent api`,
      `${more}reject an API created with a non-existent action`,
      `${more}reject an API created with an action that is not a web action`,
      `${more}reject API export when export type is invalid`,
    ],
    run: async (t) => {
      const shell = await WskShell.open(t);
      const plain = await shell.create('action', t.name('action'));
      for (const [command, text] of [
        ['api delete /not-there', "API '/not-there' does not exist"],
        [`api create /${t.name('bp')} /path get ${t.name('none')}`, 'does not exist'],
        [`api create /${t.name('bp')} /path get ${plain}`, 'is not a web action'],
        [`api get /${t.name('bp')} --format BadType`, 'Invalid format type'],
      ] as const) {
        const { code, stderr } = await shell.run(command);
        expect(code).not.toBe(0);
        expect({ command, stderr }).toMatchObject({ stderr: expect.stringContaining(text) });
      }
    },
  },
  {
    fact: 'an API without actions is listed',
    stands: `${basic}successfully list an API whose endpoints are not mapped to actions`,
    run: async (t) => {
      const shell = await WskShell.open(t);
      const base = `/${t.name('bp')}`;
      t.atEnd(() => shell.run(['api', 'delete', base]));
      const title = 'A descriptive name';
      const responses = { default: { description: 'Any' } };
      const operations = Object.fromEntries(verbs.map((verb) => [verb, { operationId: verb, responses }]));
      const document = {
        swagger: '2.0',
        info: { title, version: '1.0.0' },
        basePath: base,
        paths: { '/': operations },
      };
      await shell.write('api.json', JSON.stringify(document));
      expect(await shell.prints('api create --config-file api.json')).toContain('ok: created API');
      const listed = await shell.prints(['api', 'list', base]);
      const full = await shell.prints(['api', 'list', base, '--full']);
      for (const verb of verbs) {
        expect(listed).toMatch(new RegExp(`\\s+${verb}\\s+${title}\\s+`));
        expect(full).toMatch(new RegExp(`Verb:\\s+${verb}`));
      }
      for (const printed of [listed, full]) expect(printed).toContain(`${base}/`);
    },
  },
  {
    fact: 'an API is not made with a key that is none',
    stands: `${basic}reject creation of an API with invalid auth key`,
    run: async (t) => {
      const api = await ApiShell.open(t);
      const create = ['api', 'create', api.base, '/path', 'get', api.action, '--auth', 'bad-auth-key'];
      const { code, stderr } = await api.shell.run(create);
      expect(code).not.toBe(0);
      expect(stderr).toContain('The supplied authentication is invalid');
    },
  },
  {
    fact: 'parameters are those of the relative path, of an answer of type http',
    source: 'core/cli/test/ApiGwCliTests.scala',
    stands: [
      `${paths}fail to create an API if the base path contains path parameters`,
      `${paths}fail to create an Api if path parameters are specified but http response type is not given`,
    ],
    run: async (t) => {
      const { shell, action } = await ApiShell.open(t);
      for (const [base, text] of [
        [
          '/mybase/{path}',
          "The base path '/mybase/{path}' cannot have parameters. Only the relative path supports path parameters.",
        ],
        ['/mybase', "A response type of 'http' is required when using path parameters."],
      ] as const) {
        const { code, stderr } = await shell.run(`api create ${base} /bad/{path}/value GET ${action}`);
        expect(code).not.toBe(0);
        expect(stderr).toContain(text);
      }
    },
  },
  {
    fact: 'parameters of the path come to the action, each described once',
    source: 'core/cli/test/ApiGwCliTests.scala',
    stands: [
      `${paths}create api with path parameters for the verb`,
      `${paths}create api with path parameters and pass them into the action bound to the api`,
    ],
    run: async (t) => {
      await callsWithParameters(t, '/path/{with}/some/{path}/params', { with: 'scooby', path: 'doo' });
      const values = { with: 'scooby', double: 'shaggy', extra: 'velma', path: 'doo' };
      await callsWithParameters(t, '/path/{with}/some/{double}/{extra}/{extra}/{path}', values);
    },
  },
  {
    fact: 'APIs are listed by base path',
    source: 'core/cli/test/WskApiGwTests.scala',
    needs: 'operator',
    stands: `${more}list api alphabetically by Base/Rel/Verb`,
    run: async (t) => {
      const { url, auth } = await t.identity();
      const shell = await WskShell.open(t, { APIHOST: url, AUTH: auth });
      await shell.prints('action create act hello.js --web true');
      for (const at of [2, 1, 3]) await shell.prints(`api create /base${at} /relPath GET act`);
      for (const flags of ['', ' --full']) {
        const printed = await shell.prints(`api list --name-sort${flags}`);
        expect([...new Set(printed.match(/\/base[1-3]\//g))]).toEqual(['/base1/', '/base2/', '/base3/']);
      }
      for (const at of [1, 2, 3]) await shell.prints(`api delete /base${at}`);
      await shell.prints('action delete act');
    },
  },
  {
    fact: 'the actions of API management name what they lack',
    source: 'core/cli/test/WskApiGwTests.scala',
    stands: `${more}reject apimgmt actions that are invoked with not enough parameters`,
    // The actions send requests to the platform's API.
    needs: 'network',
    run: async (t) => {
      // As whisk.system, which owns the package.
      const shell = await WskShell.open(t, { APIHOST: t.other.url, AUTH: t.other.auth });
      const user = ['-p', '__ow_user', '_', '-p', 'accesstoken', 'TOKEN'];
      const base = { namespace: '_', gatewayBasePath: '/bp' };
      const path = { ...base, gatewayPath: 'rp' };
      const method = { ...path, gatewayMethod: 'get' };
      const of = (action: object): object => ({ ...method, action });
      const backend = { backendMethod: 'post', backendUrl: 'URL' };
      const whole = { ...backend, namespace: '_', name: 'N', authkey: 'XXXX' };
      const documents: readonly [object | string, string][] = [
        [{}, 'apidoc is missing the namespace field'],
        [{ namespace: '_' }, 'apidoc is missing the gatewayBasePath field'],
        [base, 'apidoc is missing the gatewayPath field'],
        [path, 'apidoc is missing the gatewayMethod field'],
        [method, 'apidoc is missing the action field'],
        [of({}), 'action is missing the backendMethod field'],
        [of({ backendMethod: 'post' }), 'action is missing the backendUrl field'],
        [of(backend), 'action is missing the namespace field'],
        [of({ ...backend, namespace: '_' }), 'action is missing the name field'],
        [of({ ...backend, namespace: '_', name: 'N' }), 'action is missing the authkey field'],
        [
          { ...of(whole), swagger: {} },
          'swagger and gatewayBasePath are mutually exclusive and cannot be specified together',
        ],
        ['{1:[}}}', 'apidoc field cannot be parsed. Ensure it is valid JSON'],
      ];
      const calls: readonly [string, readonly string[], string][] = [
        ['getApi', [], 'Invalid authentication.'],
        ['deleteApi', ['-p', 'basepath', '/bp'], 'Invalid authentication.'],
        ['deleteApi', user, 'basepath is required'],
        [
          'deleteApi',
          [...user, '-p', 'basepath', '/bp', '-p', 'operation', 'get'],
          'When specifying an operation, the path is required',
        ],
        ['createApi', user, 'apidoc is required'],
        ...documents.map(([document, text]): [string, string[], string] => {
          const apidoc = typeof document === 'string' ? document : JSON.stringify(document);
          return ['createApi', [...user, '-p', 'apidoc', apidoc], text];
        }),
      ];
      for (const [name, parameters, text] of calls) {
        const command = ['action', 'invoke', `/whisk.system/apimgmt/${name}`, '-b', '-r', ...parameters];
        const { code, stderr } = await shell.run(command);
        expect({ text, code, stderr }).toMatchObject({ stderr: expect.stringContaining(text) });
        expect(code).not.toBe(0);
      }
    },
  },
];

/** APIs created, read and deleted with `wsk`. */
export const wskApiCases = table('wsk: api', 'core/cli/test/ApiGwCliBasicTests.scala', rows);

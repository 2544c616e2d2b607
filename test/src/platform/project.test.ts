// `wsk project` on the real platform: a project from its manifest to its deletion, and what remains.
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { runWsk, type WskResult } from '../cli/wsk-process.js';
import { startPlatform, until, type RunningPlatform } from '../support/running-platform.js';

let platform: RunningPlatform;
let folder: string;

beforeAll(async () => {
  platform = await startPlatform();
  folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-project-'));
  for (const [name, content] of Object.entries(files)) write(name, content);
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await platform.stop();
});

function write(name: string, content: string): void {
  mkdirSync(dirname(join(folder, name)), { recursive: true });
  writeFileSync(join(folder, name), content);
}

const wsk = (line: string): Promise<WskResult> =>
  runWsk(['--apihost', platform.url, '--auth', platform.auth, ...line.split(' ')], {
    directory: folder,
    environment: { PLACE: 'Graz' },
  });

const deployed = { code: 0, stdout: 'Success: Deployment completed successfully.\n', stderr: '' };
const undeployed = { code: 0, stdout: 'Success: Undeployment completed successfully.\n', stderr: '' };

const extra = `      extra:
        code: "function main() { return { extra: true } }"
        runtime: nodejs
`;
const manifest = `project:
  name: shop
packages:
  shop:
    version: 1.0
    license: Apache-2.0
    inputs:
      currency: EUR
      rate: {type: float, default: 1.5}
    annotations: {team: sales}
    dependencies:
      tools: {location: ./tools}
      rebound: {location: /_/toolbox, inputs: {unit: km}}
    actions:
      hello:
        function: src/hello.js
        inputs:
          name: string
          place: {type: string, value: "\${PLACE}"}
        limits: {timeout: 20000, memorySize: 128}
      folder: {function: src/lib, runtime: "nodejs:default", include: [["shared/*.js", "shared/"]]}
      page: {function: src/page.js, web: true}
${extra}    sequences:
      both: {actions: "hello, mark", web: true}
    triggers:
      order: {inputs: {name: Bea}}
      clock: {feed: /_/toolbox/feed, inputs: {cron: "* * * * *"}}
    rules:
      orderRule: {trigger: order, action: both}
    apis:
      storefront:
        front:
          page: {page: {method: GET, response: http}}
          orders/{id}: {both: {method: POST, response: http}}
  default:
    actions:
      plain: {function: src/hello.js}
`.replace('hello, mark', 'hello, tools/mark');

const files = {
  'manifest.yaml': manifest,
  'deployment.yaml': 'project: {name: shop, packages: {shop: {actions: {hello: {inputs: {name: Ada}}}}}}\n',
  'src/hello.js': 'function main(a) { return { text: `${a.name} in ${a.place}`, rate: a.rate }; }\n',
  'src/page.js': 'const main = () => ({ body: "<p>shop</p>" });\n',
  'src/lib/package.json': '{"main": "index.js"}',
  'src/lib/index.js': 'exports.main = () => ({ shared: require("./shared/value.js") });',
  'shared/value.js': 'module.exports = 42;',
  'tools/manifest.yaml': `project: {name: tools}
packages:
  toolbox:
    actions:
      mark: {function: mark.js}
      feed: {function: feed.js, annotations: {feed: true}}
`,
  'tools/mark.js': 'function main(a) { return { ...a, marked: true }; }\n',
  'tools/feed.js': 'const main = ({ authKey, ...a }) => ({ ...a, config: { cron: "* * * * *", startDate: 1 } });\n',
};

const result = async (line: string): Promise<unknown> => {
  const { code, stdout, stderr } = await wsk(line);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return JSON.parse(stdout);
};

/** The output of `wsk list` without titles and columns. */
async function entities(): Promise<string[]> {
  const { stdout } = await wsk('list');
  return [...stdout.matchAll(/^\/guest\/(\S+)/gm)].map(([, name = '']) => name).sort();
}

interface ApiRoute {
  action: string;
  verb: string;
  name: string;
  url: string;
}

/** The routes that `wsk api list` prints. */
async function apis(): Promise<ApiRoute[]> {
  const { stdout } = await wsk('api list -n');
  return [...stdout.matchAll(/^(\/\S+) +(\S+) +(\S+) +(http\S+)$/gm)].map(
    ([, action = '', verb = '', name = '', url = '']) => ({ action, verb, name, url }),
  );
}

const all = [
  'clock',
  'order',
  'orderRule',
  'plain',
  'rebound',
  'shop',
  'shop/both',
  'shop/extra',
  'shop/folder',
  'shop/hello',
  'shop/page',
  'toolbox',
  'toolbox/feed',
  'toolbox/mark',
  'tools',
];
const ofTools = ['toolbox', 'toolbox/feed', 'toolbox/mark', 'tools'];

test('a project is deployed, works, and is undeployed again', async () => {
  expect(await wsk('project deploy')).toEqual(deployed);
  expect(await entities()).toEqual(all);
  expect(await result('action invoke shop/hello -r')).toEqual({ text: 'Ada in Graz', rate: 1.5 });
  expect(await result('action invoke shop/both -r')).toEqual({ text: 'Ada in Graz', rate: 1.5, marked: true });
  expect(await result('action invoke shop/folder -r')).toEqual({ shared: 42 });
  const page = await fetch(`${platform.url}/api/v1/web/guest/shop/page`);
  expect([page.status, await page.text()]).toEqual([200, '<p>shop</p>']);
  const routes = await apis();
  expect(routes.map(({ action, verb, name }) => `${action} ${verb} ${name}`)).toEqual([
    '/guest/shop/both post storefront',
    '/guest/shop/page get storefront',
  ]);
  const routed = await fetch(routes[1]?.url ?? '');
  expect([routed.status, await routed.text()]).toEqual([200, '<p>shop</p>']);
  expect(await wsk('rule status orderRule')).toEqual({ code: 0, stdout: 'ok: rule orderRule is active\n', stderr: '' });
  expect((await wsk('trigger fire order -p place Wien')).stdout).toMatch(/^ok: triggered \/_\/order with id \w{32}\n$/);
  await until('the rule ran its sequence', async () =>
    (await wsk('activation list shop/both')).stdout.includes('guest/both'),
  );
  expect(await wsk('project deploy')).toEqual(deployed);
  expect(await entities()).toEqual(all);
  expect(await wsk('project undeploy')).toEqual(undeployed);
  expect(await entities()).toEqual([]);
  expect(await apis()).toEqual([]);
  expect(await wsk('project undeploy')).toEqual(undeployed);
});

test('a synchronised project loses what its manifest loses, is exported, and is deployed from the export', async () => {
  expect(await wsk('project sync')).toEqual(deployed);
  expect(await entities()).toEqual(all);
  const gone = ['clock', 'plain', 'shop/extra', 'rebound'];
  write(
    'manifest.yaml',
    manifest
      .replace(extra, '')
      .replace(/ {6}clock:.*\n/, '')
      .replace(/ {6}rebound:.*\n/, '')
      .replace(/ {2}default:[^]*/, ''),
  );
  expect(await wsk('project sync')).toEqual(deployed);
  const left = all.filter((name) => !gone.includes(name));
  expect(await entities()).toEqual(left);

  const exported = await wsk('project export --projectname shop --manifest out/manifest.yaml');
  expect(exported).toEqual({ code: 0, stdout: 'Manifest exported to: out/manifest.yaml\n', stderr: '' });
  expect(readFileSync(join(folder, 'out/shop/hello.js'), 'utf8')).toBe(files['src/hello.js']);
  expect(await wsk('project undeploy --projectname shop')).toEqual({ code: 0, stdout: '', stderr: '' });
  expect(await entities()).toEqual([]);

  expect(await wsk('project deploy --manifest tools/manifest.yaml')).toEqual(deployed);
  expect(await wsk('project deploy --manifest out/manifest.yaml --project out')).toEqual(deployed);
  expect(await entities()).toEqual(left);
  expect(await apis()).toHaveLength(2);
  expect(await result('action invoke shop/both -r')).toEqual({ text: 'Ada in Graz', rate: 1.5, marked: true });
  expect(await result('action invoke shop/folder -r')).toEqual({ shared: 42 });
  expect((await wsk('action get shop/hello limits')).stdout).toContain('"timeout": 20000,\n    "memory": 128,');
  expect(await wsk('project undeploy --manifest out/manifest.yaml --project out')).toEqual(undeployed);
  expect(await entities()).toEqual(ofTools.filter((name) => name !== 'tools'));
  expect(await wsk('project undeploy --manifest tools/manifest.yaml')).toEqual(undeployed);
});

import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { ConfigError, loadConfig } from '@gpuwhisk/common/config';
import { checkPolicy } from '@gpuwhisk/controller/gpu/scheduler/check-policy';
import { compositionOf } from '@gpuwhisk/gpu/policies/make-policy';
import { policyModules } from '@gpuwhisk/gpu/policies/policy-modules';
import { policies } from '@gpuwhisk/gpu/policies/registry';
import { stages, stagesCan } from '@gpuwhisk/gpu/policies/stages';
import { loadPolicyModules } from './policy-modules.js';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-modules-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

function write(name: string, text: string, mode = 0o644): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  chmodSync(path, mode);
  return path;
}

const load = (paths: string[], tokens: boolean | string = false): Promise<void> =>
  loadPolicyModules({ policyModules: paths, tokens });

const record = "{ summary: 's', admit: 'always', order: 'fifo', share: 'whole', place: 'first-fit' }";
const order = '() => (tasks) => tasks.map((task) => ({ task, isOverdue: false }))';

/** Why a module cannot be loaded: what the module exports, and the end of the line that is told. */
const refused: [string, string, string][] = [
  ['no JavaScript', 'export default {', 'Unexpected end of input'],
  ['without a default export', 'export const version = 1;', 'the default export must be an object'],
  [
    'another version',
    'export default { version: 2, policies: {} };',
    'its interface has version 2, and this release has 1',
  ],
  ['no version', 'export default { policies: {} };', 'its interface has version undefined, and this release has 1'],
  ['throws', "throw new Error('no licence\\nfound');", 'no licence'],
  [
    'registers nothing',
    'export default { version: 1, policies: {} };',
    'it registers no policy, stage or token policy',
  ],
  ['an unknown field', 'export default { version: 1, policy: {} };', "the default export has no field 'policy'"],
  ['an unknown stage', 'export default { version: 1, stages: { sort: {} } };', "'stages' has no field 'sort'"],
  [
    'a stage without make',
    "export default { version: 1, stages: { order: { mine: { make: 'fifo' } } } };",
    "'make' of order stage 'mine' must be a function",
  ],
  [
    'a setting that is none',
    `export default { version: 1, stages: { order: { mine: { settings: { a: NaN }, make: ${order} } } } };`,
    "setting 'a' of order stage 'mine' is no number from 0",
  ],
  [
    'a policy of the platform',
    `export default { version: 1, policies: { smore: ${record} } };`,
    "it names policy 'smore', which is there already",
  ],
  [
    'a stage of the platform',
    `export default { version: 1, stages: { order: { fifo: { make: ${order} } } } };`,
    "it names order stage 'fifo', which is there already",
  ],
  [
    'a token policy of the platform',
    'export default { version: 1, tokens: { dilu: { make: () => ({ step() {} }) } } };',
    "it names token policy 'dilu', which is there already",
  ],
  [
    'a policy with a stage that is not there',
    "export default { version: 1, policies: { mine: { summary: 's', admit: 'always', plan: 'best' } } };",
    "policy 'mine': there is no plan stage 'best'",
  ],
  [
    'a policy with half of its stages',
    "export default { version: 1, policies: { mine: { summary: 's', admit: 'always', order: 'fifo' } } };",
    "policy 'mine' must name a plan, or order, share and place",
  ],
  [
    'a name with a space',
    `export default { version: 1, policies: { 'my own': ${record} } };`,
    "the name of policy 'my own' must be 1 to 64 small letters, digits and hyphens",
  ],
  [
    'an import of a file',
    "import './other.mjs'; export default { version: 1 };",
    'it must be one file without imports, but those of Node.js',
  ],
];

describe('a module that is not sound', () => {
  test.each(refused)('%s: is refused in one line, and nothing of it is registered', async (name, text, reason) => {
    const path = write(`${name.replaceAll(' ', '-')}.mjs`, text);
    const before = [Object.keys(policies), Object.keys(stages.order), policyModules()];
    const failure = await load([path]).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(ConfigError);
    const { message } = failure as ConfigError;
    expect(message).toMatch(`gpu.policyModules: ${path}: `);
    expect(message).toMatch(reason);
    expect(message).not.toMatch(/\n|base64/);
    expect([Object.keys(policies), Object.keys(stages.order), policyModules()]).toEqual(before);
  });

  test('two modules name a stage, or are one', async () => {
    const text = (policy: string): string =>
      `export default { version: 1, stages: { order: { twice: { make: ${order} } } }, policies: { ${policy}: ${record} } };`;
    const [first, second] = [write('first.mjs', text('one')), write('second.mjs', text('two'))];
    await expect(load([first, second])).rejects.toThrow(
      `${second}: it names order stage 'twice', which is there already`,
    );
    await expect(load([first, write('copy.mjs', text('one'))])).rejects.toThrow(`it is the same module as ${first}`);
    expect(Object.keys(stages.order)).not.toContain('twice');
  });

  test('others may change it, or its folder, or it is not there', async () => {
    const sound = `export default { version: 1, policies: { sound: ${record} } };`;
    await expect(load([write('open.mjs', sound, 0o666)])).rejects.toThrow('can be written by others');
    mkdirSync(join(folder, 'shared'));
    const inside = write('shared/own.mjs', sound);
    chmodSync(join(folder, 'shared'), 0o777);
    await expect(load([inside])).rejects.toThrow(`${join(folder, 'shared')} can be written by others`);
    symlinkSync(inside, join(folder, 'link.mjs'));
    await expect(load([join(folder, 'link.mjs')])).rejects.toThrow(
      `${join(folder, 'shared')} can be written by others`,
    );
    await expect(load([join(folder, 'none.mjs')])).rejects.toThrow('it cannot be read: ENOENT');
    await expect(load([folder])).rejects.toThrow('it is no file');
    const long = write('long.mjs', `${sound}//${'x'.repeat(1024 * 1024)}`);
    await expect(load([long])).rejects.toThrow('at most 1048576 are read');
  });

  test('a token policy is named that there is not', async () => {
    await expect(load([], 'mine')).rejects.toThrow("gpu.tokens: there is no token policy 'mine'; there are dilu");
    await expect(load([], 'dilu')).resolves.toBeUndefined();
  });
});

test('a sound module is registered once, with the settings and needs of its stages', async () => {
  const path = write(
    'sound.mjs',
    `export default {
       version: 1,
       stages: {
         order: { mine: { settings: { depth: 3 }, learnsSlices: true, make: (_, { depth }) => Object.assign(${order}, { depth })() } },
         share: { broken: { make() { throw new Error('no share today'); } } },
       },
       policies: { own: { ...${record}, order: 'mine' }, 'never-made': { ...${record}, share: 'broken' } },
     };`,
  );
  await load([path]);
  await load([path]);
  expect(policyModules().map((one) => one.path)).toEqual([path]);
  expect(compositionOf({ base: 'own', settings: { depth: 4 } })).toMatchObject({ stages: { order: 'mine' } });
  expect(stagesCan('learnsSlices', compositionOf('own').stages)).toBe(true);
  expect(() => checkPolicy({ policy: 'own', admission: 'refuse' })).not.toThrow();
  const broken = "gpu.policy: 'never-made' cannot be made: Error: no share today";
  expect(() => checkPolicy({ policy: 'never-made', admission: 'refuse' })).toThrow(broken);
});

test('paths are absolute, or relative to the configuration file', () => {
  const file = write('config.json', JSON.stringify({ gpu: { policyModules: ['./own.mjs', '/opt/other.mjs'] } }));
  expect(loadConfig({ file }).gpu.policyModules).toEqual([join(folder, 'own.mjs'), '/opt/other.mjs']);
  const flags = { gpu: { policyModules: ['own.mjs'] } };
  expect(() => loadConfig({ flags })).toThrow('gpu.policyModules.0: takes absolute paths');
});

import { describe, expect, test } from '@jest/globals';
import AdmZip from 'adm-zip';
import { npmFilesIn, npmKey } from './npm-packages.js';

function zip(files: Readonly<Record<string, string | object>>): Buffer {
  const archive = new AdmZip();
  for (const [name, content] of Object.entries(files)) {
    archive.addFile(name, Buffer.from(typeof content === 'string' ? content : JSON.stringify(content)));
  }
  return archive.toBuffer();
}

const manifest = { name: 'a', version: '1.0.0', description: 'x', dependencies: { b: '^1.0.0' } };
const filesOf = (described: object, more: Record<string, string | object> = {}) =>
  npmFilesIn(zip({ 'index.js': '', 'package.json': described, ...more }));

describe('the npm packages of an archive', () => {
  test('are decided by some fields of package.json', () => {
    const files = filesOf({ ...manifest, scripts: { install: 'x' }, devDependencies: { c: '1' } });
    expect(files).toEqual({
      manifest: JSON.stringify({ name: 'a', version: '1.0.0', private: true, dependencies: { b: '^1.0.0' } }),
    });
    const same = filesOf({ ...manifest, description: 'y' }, { 'other.js': 'z' });
    expect(same && npmKey(same)).toBe(files && npmKey(files));
    const other = filesOf({ ...manifest, dependencies: { b: '^1.0.1' } });
    expect(other && npmKey(other)).not.toBe(files && npmKey(files));
  });

  test('are those of a lock file, whose addresses are left out', () => {
    const lock = (resolved: object): object => ({
      lockfileVersion: 3,
      packages: { 'node_modules/b': { version: '1.2.3', ...resolved, integrity: 'sha512-x' } },
    });
    const files = filesOf(manifest, { 'package-lock.json': lock({ resolved: 'https://elsewhere.test/b.tgz' }) });
    expect(files).toMatchObject({ lock: JSON.stringify(lock({})) });
  });

  test.each([
    ['has none', { 'package.json': { name: 'a' } }],
    ['has an empty list', { 'package.json': { dependencies: {} } }],
    ['brings them', { 'package.json': manifest, 'node_modules/b/index.js': '' }],
    ['describes no package', { 'index.js': '' }],
    ['describes it below a folder', { 'b/package.json': manifest }],
    ['has a package.json that is no JSON', { 'package.json': '{' }],
    ['has a package.json that is none', { 'package.json': '[1]' }],
    ['has a package.json of more than 256 KiB', { 'package.json': { ...manifest, description: 'x'.repeat(300_000) } }],
  ])('are not installed if the archive %s', (_, files) => {
    expect(npmFilesIn(zip(files as Record<string, string | object>))).toBeUndefined();
  });

  test.each(['^1.0.0', '1.x || >=2.5.0 <3', '*', '', 'latest', 'npm:c@^1.2.3', 'npm:@s/c@2', '~1.2.3-beta.1+b'])(
    'may have version %j',
    (version) => {
      expect(filesOf({ dependencies: { '@scope/b': version } })).toHaveProperty('manifest');
    },
  );

  test.each([
    ['b', 'file:../b'],
    ['b', '../b'],
    ['b', 'git+ssh://git@example.org/b.git'],
    ['b', 'someone/b'],
    ['b', 'http://10.0.0.1/b.tgz'],
    ['b', 'workspace:*'],
    ['b', 1],
    ['../b', '1.0.0'],
    ['b c', '1.0.0'],
  ])('may not be %j: %j', (name, version) => {
    for (const field of ['dependencies', 'optionalDependencies']) {
      expect(filesOf({ [field]: { [name]: version } })).toEqual({
        problem: `dependency ${JSON.stringify(name)} is ${JSON.stringify(version)}, but must be a version of a package in npm's registry`,
      });
    }
  });

  test('may be overridden by versions of the registry only', () => {
    const overridden = (overrides: object) => filesOf({ ...manifest, overrides });
    expect(overridden({ b: '$b', 'c@^2': { '.': '2.0.1', '@s/d': '1' } })).toHaveProperty('manifest');
    expect(overridden({ 'c@^2': { d: 'http://10.0.0.1/d.tgz' } })).toEqual({
      problem: `dependency "d" is "http://10.0.0.1/d.tgz", but must be a version of a package in npm's registry`,
    });
  });

  test('are at most 500', () => {
    const dependencies = Object.fromEntries(Array.from({ length: 501 }, (_, at) => [`b${at}`, '1']));
    expect(filesOf({ dependencies })).toEqual({ problem: 'package.json has 501 dependencies; at most 500' });
  });

  test('bytes that are no whole zip have none, wherever they are cut or changed', () => {
    const whole = zip({ 'package.json': manifest, 'index.js': 'x'.repeat(100) });
    expect(npmFilesIn(Buffer.from('no zip'))).toBeUndefined();
    for (let length = 0; length < whole.length; length++) {
      expect(npmFilesIn(whole.subarray(0, length))).toBeUndefined();
    }
    for (let at = 0; at < whole.length; at++) {
      const changed = Buffer.from(whole);
      changed[at] = (changed[at] ?? 0) ^ 0xff;
      expect(() => npmFilesIn(changed)).not.toThrow();
    }
  });

  test('a file that is larger than the directory says is none', () => {
    const whole = zip({ 'package.json': manifest });
    const entry = whole.lastIndexOf(Buffer.from('PK\x01\x02', 'latin1'));
    whole.writeUInt32LE(10, entry + 24);
    expect(npmFilesIn(whole)).toBeUndefined();
  });
});

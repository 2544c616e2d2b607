import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { credentialsIn, registryCredentials } from './npm-credentials.js';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-npmrc-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

test('an npmrc has tokens and passwords by registry: quoted, with comments, or as variables', () => {
  const text = [
    'registry=https://a.example/',
    '; //a.example/:_authToken=comment',
    '//a.example/:_authToken = "t=1"',
    '//b.example/npm/:username=me # the robot',
    '//b.example/npm/:_password=${SECRET}',
    '//c.example/:_auth=${ABSENT?}',
    '//d.example/:_auth=${ABSENT}',
    '//e.example/:always-auth=true',
    'email',
  ].join('\r\n');
  expect(credentialsIn(text, { SECRET: 'cGFzcw==' })).toEqual([
    ['//a.example/:_authToken', 't=1'],
    ['//b.example/npm/:username', 'me'],
    ['//b.example/npm/:_password', 'cGFzcw=='],
    ['//d.example/:_auth', '${ABSENT}'],
  ]);
});

test('only those of the registries are taken: variables first, then the later file', async () => {
  const [common, own] = ['common', 'own'].map((name) => join(folder, name)) as [string, string];
  writeFileSync(
    common,
    '//a.example:81/npm/:_authToken=common\n//a.example:81/:_auth=host\n//x.example/:_auth=other\n',
  );
  writeFileSync(own, '//a.example:81/npm/:_authToken=own\n//b.example/:_authToken=file\n');
  const env = { 'npm_config_//b.example/:_authToken': 'variable', 'npm_config_//x.example/:_authToken': 'other' };
  const found = await registryCredentials(
    ['http://a.example:81/npm', 'https://b.example/', 'no address'],
    [common, own, join(folder, 'absent')],
    env,
  );
  expect([...found]).toEqual([
    ['//a.example:81/npm/:_authToken', 'own'],
    ['//a.example:81/:_auth', 'host'],
    ['//b.example/:_authToken', 'variable'],
  ]);
});

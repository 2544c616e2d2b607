import { expect, test } from '@jest/globals';
import { settingsOf } from './requirements-cache.js';

test('settings of pip are read as pip prints them', () => {
  const listed = `:env:.find-links='/opt/wheels'
global.index-url='https://user:p=s@packages.example/simple'
global.trusted-host="it's.example"
global.find-links='/a\\n/b'
install.no-binary='x'`;
  expect(settingsOf(listed, 'global')).toEqual([
    ['index-url', 'https://user:p=s@packages.example/simple'],
    ['trusted-host', "it's.example"],
    ['find-links', '/a\n/b'],
  ]);
  expect(settingsOf(listed, ':env:')).toEqual([['find-links', '/opt/wheels']]);
  expect(settingsOf(listed, 'install')).toEqual([['no-binary', 'x']]);
  expect(settingsOf('', 'global')).toEqual([]);
});

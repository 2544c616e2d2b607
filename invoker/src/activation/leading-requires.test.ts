import { describe, expect, test } from '@jest/globals';
import { leadingRequires } from './leading-requires.js';

const main = '\nfunction main(args) {\n  return args;\n}\nexports.main = main;\n';

describe('modules before all else', () => {
  test.each([
    ['none', '', []],
    [
      'several',
      "const a = require('a');\nlet b = require(\"@s/b/c\");\nvar d = require('node:fs')\n",
      ['a', '@s/b/c', 'fs'],
    ],
    ['several of one statement', "const a = require('a'),\n  { b, c: d } = require('b');\n", ['a', 'b']],
    ['a property', "const { Router } = require('express').Router;\n", ['express']],
    ['a module for its effect', "require('a');\nimport 'b';\n", ['a', 'b']],
    ['after comments and a directive', "'use strict';\n// const\n/* a\n */ const b = require('b') // c\n", ['b']],
    ['imports', 'import a from "a";\nimport b, * as c from \'c\'\nimport {\n  d as e,\n} from "d";\n', ['a', 'c', 'd']],
    ['with line ends of Windows', "const a = require('a')\r\nconst b = require('b')\r\n", ['a', 'b']],
  ])('%s', (_, source, names) => {
    expect(leadingRequires(source + main)).toEqual(names);
  });

  test.each([
    ['a variable first', "process.env.A = '1';\nconst a = require('a');\n"],
    ['a call of the module', "const a = require('a')('x');\n"],
    ['a call on the next line', "const a = require('a')\n('x');\n"],
    ['an operator on the next line', "const a = require('a')\nin {};\n"],
    ['a default value', "const { a = b() } = require('a');\n"],
    ['a name that is made', "const a = require('a' + b);\n"],
    ['a name with a place in it', 'const a = require(`a${b}`);\n'],
    ['a module in a function', "function f() {\n  return require('a');\n}\n"],
    ['a module in a condition', "let a;\ntry { a = require('a'); } catch {}\n"],
    ['an import by name', "const a = () => import('a');\n"],
    ['code that is made', 'eval(text);\n'],
    ['a loader that is made', "const { createRequire: make } = require('module');\nmake(x)('a');\n"],
    ['the table of modules', 'process.mainModule.children;\n'],
  ])('not where there is %s', (_, source) => {
    expect(leadingRequires(source + main)).toBeUndefined();
  });

  test('takes no long time for hostile source', () => {
    const beganMs = performance.now();
    const parts = [
      '\n',
      ' ',
      ';',
      '/*',
      '//',
      '/**/',
      'import ',
      'import{',
      'const a=',
      "require('a')",
      "require('a'),",
      '{',
    ];
    for (const source of parts) {
      leadingRequires(source.repeat(65_536 / source.length));
      leadingRequires(`const ${source.repeat(65_000 / source.length)}`);
      leadingRequires(`import ${source.repeat(65_000 / source.length)}`);
    }
    leadingRequires(`import a${' '.repeat(65_000)}x`);
    expect(performance.now() - beganMs).toBeLessThan(2000);
  });
});

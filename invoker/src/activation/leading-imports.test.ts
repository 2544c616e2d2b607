import { describe, expect, test } from '@jest/globals';
import { leadingImports } from './leading-imports.js';

const main = '\ndef main(args):\n  return args\n';

describe('imports before all else', () => {
  test.each([
    ['none', '', []],
    ['several', 'import time\nimport numpy, scipy.optimize as o  # both\n', ['time', 'numpy', 'scipy.optimize']],
    ['names of a package', 'from scipy import stats, optimize as o\n', ['scipy', 'scipy.stats', 'scipy.optimize']],
    ['on several lines', 'from a import (\n  b,  # one\n  c as d,\n)\n', ['a', 'a.b', 'a.c']],
    ['in parentheses', 'from a import (b, c as d,)  # both\nfrom e import ( f )\n', ['a', 'a.b', 'a.c', 'e', 'e.f']],
    ['after comments and a docstring', '#!/x\n\n"""import\nnothing"""\nimport a\n', ['a']],
    ['beside those of the language', 'from __future__ import annotations\nimport a\n', ['a']],
    ['with line ends of Windows', 'import a\r\nimport b\r\n', ['a', 'b']],
  ])('%s', (_, source, names) => {
    expect(leadingImports(source + main)).toEqual(names);
  });

  test.each([
    ['a variable first', 'import os\nos.environ["A"] = "1"\nimport torch\n'],
    ['a statement on the same line', 'import os; os.environ["A"] = "1"\n'],
    ['an import in a function', 'def f():\n  import torch\n'],
    ['an import in a condition', 'try:\n  import a\nexcept ImportError: pass\n'],
    ['all names of a module', 'from a import *\n'],
    ['a module of the own package', 'from .a import b\n'],
    ['an import by name', 'import importlib\nx = importlib.import_module("a")\n'],
    ['an import by the built-in function', 'x = __import__("a")\n'],
    ['code that is made', 'exec(text)\n'],
    ['the table of modules', 'import sys\nsys.modules["a"] = 1\n'],
    ['a list that is not closed', 'from a import (b,\n'],
  ])('not where there is %s', (_, source) => {
    expect(leadingImports(source + main)).toBeUndefined();
  });

  test('takes no long time for hostile source', () => {
    const beganMs = performance.now();
    for (const source of ['\n', ' ', '"', '#', 'import a, ', 'from a import (\n', '\\\n', '"""\n']) {
      leadingImports(source.repeat(65_536 / source.length));
    }
    leadingImports(`from a import b${' '.repeat(65_000)}x`);
    leadingImports(`from ${'('.repeat(65_000)})`);
    leadingImports(`from a import (${'#'.repeat(65_000)}\u2028\n)`);
    leadingImports('from a import (\nb)\n'.repeat(3600));
    leadingImports(`from a import b${' '.repeat(960)}, c\n`.repeat(66));
    leadingImports(`from a import (b${' '.repeat(960)}, c\u2028)\n`.repeat(66));
    leadingImports(`import a${' '.repeat(960)}, c\n`.repeat(66));
    expect(performance.now() - beganMs).toBeLessThan(1000);
  });
});

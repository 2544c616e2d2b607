import { expect } from '@jest/globals';
import AdmZip from 'adm-zip';
import type { RuntimeCase } from './runtime-cases.js';

/** The error text for code that cannot be read. */
export const notBuilt = 'The action failed to generate or locate a binary. See logs for details.';
const notStarted = 'Cannot start action. Check logs for details. ';
const noDictionary = 'The action did not return a dictionary or array.';

/** Python sources, and the required answers of a runtime. */
export const pythonSources: readonly RuntimeCase[] = [
  { name: 'main', code: 'def main(args):\n  return args', value: { a: [1, 'ü☃'] }, result: { a: [1, 'ü☃'] } },
  { name: 'an array as argument', code: 'def main(args):\n  return args', value: [1, 'x'], result: [1, 'x'] },
  { name: 'another name', code: 'def niam(args):\n  return {"a": 1}', main: 'niam', result: { a: 1 } },
  { name: 'a class as main', code: 'class main(dict):\n  pass', value: { a: 1 }, result: { a: 1 } },
  { name: 'async function', code: 'async def main(args):\n  return {"a": 1}', result: { a: 1 } },
  {
    name: 'awaiting',
    code: 'import asyncio\nasync def main(args):\n  await asyncio.sleep(0.01)\n  return {"a": 1}',
    result: { a: 1 },
  },
  {
    name: 'async error',
    code: 'async def main(args):\n  raise ValueError("no")',
    result: { error: 'no' },
    stderr: /^Traceback \(most recent call last\):\n {2}File "[^"]*main__\.py", line 2, in main\n[^]*ValueError: no/,
  },
  {
    name: 'an error whose text alone says too little: its type, too',
    code: 'def main(args):\n  if "a" in args:\n    assert args["a"] > 0\n  return args["b"]',
    batch: true,
    value: [{}, { a: 0 }, { b: {} }],
    result: [{ error: "KeyError: 'b'" }, { error: 'AssertionError' }, {}],
    stderr: /KeyError: 'b'/,
  },
  {
    name: 'a missing module',
    code: 'def main(args):\n  import none_such',
    result: { error: "No module named 'none_such'" },
    stderr: /named 'none_such'\nIf .*, add -a requirements '\["none_such"\]' to wsk action create or update\.\n$/,
  },
  {
    name: 'a missing module of a package that is there',
    code: 'import json.none_such\ndef main(args):\n  return {}',
    initError: `${notStarted}ModuleNotFoundError: No module named 'json.none_such'`,
    stderr: /No module named 'json.none_such'\n$/,
  },
  {
    name: 'a function that readies it',
    code: 'model = None\nasync def load():\n  global model\n  model = 1\ndef main(args):\n  return {"model": model}',
    entry: 'load',
    result: { model: 1 },
  },
  {
    name: 'a function that readies it and fails',
    code: 'def load():\n  raise ValueError("no model")\ndef main(args):\n  return {}',
    entry: 'load',
    initError: `${notStarted}ValueError: no model`,
    stderr: /ValueError: no model/,
  },
  {
    name: 'one that is not there',
    code: 'def main(args):\n  return {}',
    entry: 'load',
    initError: `${notStarted}AttributeError: module 'main__' has no attribute 'load'`,
    stderr: /has no attribute 'load'/,
  },
  {
    name: 'a batch',
    code: 'def main(args):\n  return {}\ndef main_batch(all):\n  return [{"of": len(all), **args} for args in all]',
    batch: true,
    value: [{ a: 1 }, { a: 2 }],
    result: [
      { of: 2, a: 1 },
      { of: 2, a: 2 },
    ],
  },
  {
    name: 'a batch without a function for it: each request its own result or error',
    code: 'def main(args):\n  return 5 if args["a"] == 0 else {"b": 6 / (args["a"] - 2)}',
    batch: true,
    value: [{ a: 1 }, { a: 2 }, { a: 0 }],
    result: [{ b: -6 }, { error: expect.stringContaining('division by zero') }, noDictionary],
    stderr: /ZeroDivisionError/,
  },
  {
    name: 'a batch that fails as a whole',
    code: 'def niam(args):\n  return {}\nasync def niam_batch(all):\n  raise ValueError("no")',
    main: 'niam',
    batch: true,
    value: [{}, {}],
    result: [{ error: 'no' }, { error: 'no' }],
    stderr: /ValueError: no/,
  },
  {
    name: 'a batch with a result too few',
    code: 'def main(args):\n  return {}\ndef main_batch(all):\n  return all[1:]',
    batch: true,
    value: [{}, {}],
    runError: 'The action was given 2 requests and returned no list of as many results.',
  },
  { name: 'own error', code: 'def main(args):\n  return {"error": "sorry"}', result: { error: 'sorry' } },
  {
    name: 'exception',
    code: 'def main(args):\n  return {"a": 5 / 0}',
    result: { error: 'division by zero' },
    stderr: /^Traceback[^]*return \{"a": 5 \/ 0\}[^]*ZeroDivisionError/,
  },
  {
    name: 'no parameter',
    code: 'def main():\n  return {}',
    result: { error: expect.stringContaining('0 positional arguments') },
  },
  { name: 'a string', code: 'def main(args):\n  return "no"', runError: noDictionary },
  { name: 'a number', code: 'def main(args):\n  return 1', runError: noDictionary },
  {
    name: 'nothing',
    code: 'def main(args):\n  pass',
    runError: 'The action did not produce a valid JSON or JSON Array response: null',
  },
  { name: 'a list', code: 'def main(args):\n  return [1, {"a": 2}]', result: [1, { a: 2 }] },
  {
    name: 'a cycle',
    code: 'def main(args):\n  a = {}\n  a["a"] = a\n  return a',
    runError: /cannot be written as JSON: Circular/,
  },
  {
    name: 'a set',
    code: 'def main(args):\n  return {"a": {1}}',
    runError: /cannot be written as JSON: Object of type set/,
  },
  {
    name: 'not a number',
    code: 'def main(args):\n  return {"a": float("nan")}',
    runError: /cannot be written as JSON: Out of range/,
  },
  { name: 'half a surrogate pair', code: 'def main(args):\n  return {"a": "\\ud83d"}', result: { a: '\ud83d' } },
  { name: 'sys.exit', code: 'import sys\ndef main(args):\n  print("bye")\n  sys.exit(3)', exit: 3, stdout: 'bye\n' },
  { name: 'exit with a text', code: 'def main(args):\n  exit("why")', exit: 1, stderr: 'why\n' },
  { name: 'os._exit', code: 'import os\ndef main(args):\n  os._exit(5)', exit: 5 },
  { name: 'exit while loading', code: 'import sys\nsys.exit(4)', exit: 4 },
  { name: 'bad syntax', code: ' 10 PRINT "x"', initError: notBuilt, stderr: /Error/ },
  { name: 'a null byte', code: 'x = "\0"', initError: notBuilt, stderr: /null bytes/ },
  {
    name: 'error while loading',
    code: 'missing()',
    initError: /^Cannot start .*\. NameError: /,
    stderr: /Traceback[^]*NameError/,
  },
  {
    name: 'a missing package',
    code: 'import iamnotthere',
    initError: /named 'iamnotthere'$/,
    stderr: /ModuleNotFoundError/,
  },
  { name: 'no main', code: 'x = 1', initError: /has no attribute 'main'$/, stderr: /has no attribute 'main'/ },
  {
    name: 'main is no function',
    code: 'main = 1',
    initError: /'main' is not a function$/,
    stderr: /'main' is not a function/,
  },
  { name: 'no code', code: '', initError: 'Missing main/no code to execute.' },
  {
    name: 'environment of init',
    code: 'import os\ne = os.environ["E"]\ndef main(args):\n  return {"e": e}',
    env: { E: 'ü' },
    result: { e: 'ü' },
  },
  {
    name: 'printing',
    code: 'import sys, os\ndef main(args):\n  print("out ☃", end="")\n  print("err", file=sys.stderr)\n  os.write(1, b"!")\n  return {}',
    result: {},
    stdout: /out ☃/,
    stderr: 'err\n',
  },
  {
    name: 'a closed stdout',
    code: 'import sys\ndef main(args):\n  sys.stdout.close()\n  return {"a": 1}',
    result: { a: 1 },
  },
  {
    name: 'sys.executable',
    code: 'import sys\ndef main(args):\n  return {"a": "python" in sys.executable}',
    result: { a: true },
  },
  {
    name: 'the name of the module',
    code: 'def main(args):\n  return {"a": __name__, "b": __file__[-8:]}',
    result: { a: 'main__', b: 'ain__.py' },
  },
];

/** A zip of these files, in base64. */
export function zipOf(files: Record<string, string | Buffer>): string {
  const archive = new AdmZip();
  for (const [name, content] of Object.entries(files)) {
    archive.addFile(name, typeof content === 'string' ? Buffer.from(content) : content);
  }
  return archive.toBuffer().toString('base64');
}

/** Archives of several files (`zipOf` packs them), and the required answers of a runtime. */
export const pythonArchives: readonly (RuntimeCase & { files: Record<string, string> })[] = [
  {
    name: 'modules, packages and files',
    code: '',
    main: 'niam',
    files: {
      '__main__.py':
        'from echo import echo\nfrom pkg.sub import x\ndef niam(args):\n  return {"a": echo(args), "x": x, "f": open("data.txt").read()}',
      'echo.py': 'def echo(a):\n  return a',
      'pkg/__init__.py': '',
      'pkg/sub.py': 'x = 42',
      'data.txt': 'text',
    },
    value: { b: 1 },
    result: { a: { b: 1 }, x: 42, f: 'text' },
  },
  {
    name: 'a virtualenv',
    code: '',
    files: {
      '__main__.py': 'import dep\ndef main(args):\n  return {"a": dep.x}',
      'virtualenv/bin/activate_this.py':
        'import os, sys\nsys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "here"))',
      'virtualenv/here/dep.py': 'x = 7',
    },
    result: { a: 7 },
  },
  {
    name: 'a virtualenv of venv',
    code: '',
    files: {
      '__main__.py': 'import dep\ndef main(args):\n  return {"a": dep.x}',
      'virtualenv/lib/python3.9/site-packages/dep.py': 'x = 7',
    },
    result: { a: 7 },
  },
  {
    name: 'a broken virtualenv',
    code: '',
    files: { '__main__.py': 'main = dict', 'virtualenv/readme': '' },
    initError: notBuilt,
    stderr: /Invalid virtualenv. Zip file does not include 'activate_this.py'/,
  },
  {
    name: 'no __main__.py',
    code: '',
    files: { 'echo.py': '' },
    initError: notBuilt,
    stderr: /Zip file does not include __main__.py/,
  },
];

import { expect, test } from '@jest/globals';
import { fixedPython, PythonPrewarmer } from './python-functions.js';

const fixed = await fixedPython();

(fixed ? test : test.skip)(
  'what a function writes into zeroed data of a program at a fixed address goes with it',
  async () => {
    const prewarmer = await PythonPrewarmer.launch([], [], [], fixed);
    try {
      const flag = 'ctypes.c_int.in_dll(ctypes.pythonapi, "_Py_UnhandledKeyboardInterrupt")';
      const read = `import ctypes\ndef main(args):\n  return {"flag": ${flag}.value}`;
      const write = `import ctypes\ndef main(args):\n  ${flag}.value = 7\n  return {"flag": ${flag}.value}`;
      const before = await prewarmer.result(read);
      expect(before).not.toEqual({ flag: 7 });
      expect(await prewarmer.result(write)).toEqual({ flag: 7 });
      expect(await prewarmer.result(read)).toEqual(before);
    } finally {
      await prewarmer.end();
    }
  },
);

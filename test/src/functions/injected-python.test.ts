import { hasPythonPairs } from '@gpuwhisk/invoker/runtimes/python-runtime';
import { marker, padding, testBadFunctions } from './injected-cases.js';
import type { BadCase } from './injected-cases.js';
import { hasPython } from '../support/machine.js';
import { pidSources } from './pid-functions.js';

const main = (imports: string, ...lines: string[]) => ({
  code: `import ${imports}\ndef main(args):\n${lines.map((line) => `  ${line}\n`).join('')}  return {"done": 1}\n`,
});
const done = { status: 'success', says: /done/ } as const;

const cases: BadCase[] = [
  { name: 'a syntax error', upload: () => ({ code: 'def main(args)\n  return {}' }), says: /SyntaxError/ },
  { name: 'os._exit', upload: () => main('os', 'os._exit(3)'), says: /exited unexpectedly/ },
  { name: 'os._exit while loading', upload: () => ({ code: 'import os\nos._exit(3)' }), says: /exited unexpectedly/ },
  { name: 'a NULL pointer', upload: () => main('ctypes', 'ctypes.string_at(0)'), says: /SIGSEGV/ },
  {
    name: 'a loop',
    upload: () => main('sys', 'while True: pass'),
    limits: { timeout: 300 },
    says: /exceeded its time limits of 300 milliseconds/,
  },
  {
    name: 'all the memory',
    upload: () => main('sys', 'kept = [b"x" * (1 << 20) for _ in range(10**4)]'),
    says: /exhausted its memory/,
    isReplaced: true,
  },
  {
    name: 'processes, and an exit',
    upload: () =>
      main(
        'os, subprocess, time',
        'subprocess.Popen(["sleep", "600"])',
        'if os.fork() == 0: time.sleep(600)',
        'os._exit(3)',
      ),
    says: /exited unexpectedly/,
    isReplaced: true,
  },
  {
    name: 'threads that outlive it',
    upload: () =>
      main('threading, time', 'for _ in range(4): threading.Thread(target=time.sleep, args=(600,)).start()'),
    ...done,
  },
  {
    name: 'signal handlers and a timer',
    upload: () =>
      main(
        'signal',
        'for number in (signal.SIGALRM, signal.SIGTERM, signal.SIGSEGV): signal.signal(number, lambda *_: None)',
        'signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)',
      ),
    ...done,
  },
  {
    name: 'shared modules, changed or gone',
    upload: () =>
      main(
        'builtins, json, os, sys',
        'json.dumps = json.loads = None',
        'os.getpid = lambda: 0',
        'sys.path.clear(); sys.modules.clear()',
        'builtins.open = builtins.compile = None',
      ),
    ...done,
  },
  {
    name: 'not what was registered',
    upload: () => ({ code: `# ${padding}\ndef main(args):\n  return {}` }),
    damaged: marker,
    says: /SHA-256/,
  },
];

testBadFunctions({
  name: 'python',
  ...(hasPython && hasPythonPairs() ? {} : { lack: 'Python is not injected here' }),
  good: () => ({ code: pidSources.python }),
  cases,
});

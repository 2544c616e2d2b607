import { marker, padding, testBadFunctions } from './injected-cases.js';
import type { BadCase } from './injected-cases.js';
import { hasLauncher } from '../support/machine.js';
import { pidSources } from './pid-functions.js';

const main =
  (...statements: string[]) =>
  () => ({
    code: `function main() { ${statements.join(' ')} return { done: 1 }; }`,
  });
const done = { status: 'success', says: /done/ } as const;

const cases: BadCase[] = [
  { name: 'a syntax error', upload: () => ({ code: 'function main( { return {}; }' }), says: /SyntaxError/ },
  { name: 'process.exit', upload: main('process.exit(3);'), says: /exited unexpectedly/, isReplaced: true },
  { name: 'abort', upload: main('process.abort();'), says: /exited unexpectedly/, isReplaced: true },
  {
    name: 'an endless loop',
    upload: main('for (;;);'),
    limits: { timeout: 300 },
    says: /exceeded its time limits of 300 milliseconds/,
    isReplaced: true,
  },
  {
    name: 'all the memory',
    upload: main('const kept = []; for (let i = 0; i < 10_000; i++) kept.push(Buffer.alloc(1 << 20, 1));'),
    says: /exhausted its memory/,
    isReplaced: true,
  },
  {
    name: 'a process that outlives it',
    upload: main("require('child_process').spawn('sleep', ['600'], { detached: true, stdio: 'ignore' });"),
    ...done,
  },
  {
    name: 'timers and handlers',
    upload: main(
      "setInterval(() => console.log('late'), 5); process.removeAllListeners(); process.on('SIGTERM', () => {});",
    ),
    ...done,
  },
  {
    name: 'shared modules, changed',
    upload: main(
      "Object.defineProperty(process, 'pid', { value: 0, configurable: true }); Array.prototype.map = null;",
      "require('fs').readdirSync = () => ['patched']; Object.prototype.polluted = 1;",
    ),
    ...done,
  },
  {
    name: 'not what was registered',
    upload: () => ({ code: `// ${padding}\nfunction main() { return {}; }` }),
    damaged: marker,
    says: /digest/i,
  },
];

testBadFunctions({
  name: 'nodejs',
  ...(hasLauncher ? {} : { lack: 'the sandbox launcher is not built' }),
  good: () => ({ code: pidSources.nodejs }),
  cases,
});

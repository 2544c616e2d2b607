// Data, timers and changes that Node.js functions leave behind.

/** Reports the remains of an earlier action that it finds. */
export const probe = `
const fs = require('fs');
async function main() {
  console.count('left');
  return {
    map: [1, 2].map((n) => n * 2),
    json: JSON.stringify({ a: [1] }),
    polluted: ({}).polluted ?? null,
    globals: Object.getOwnPropertyNames(globalThis).filter((name) => name.startsWith('left')),
    env: process.env.LEFT ?? null,
    files: fs.readdirSync('.'),
    cwd: process.cwd(),
    mask: process.umask(),
    argv: process.argv.length,
    listeners: ['uncaughtException', 'unhandledRejection', 'SIGTERM', 'beforeExit'].map((name) => process.listenerCount(name)),
    cached: Object.keys(require.cache).filter((file) => file.endsWith('/left.js')),
    written: process.stdout.write.name,
    most: require('events').defaultMaxListeners,
    hung: [globalThis, process, console, process.stdout, Array.prototype, fs].flatMap((object) =>
      [...Object.getOwnPropertySymbols(object).map(String), ...Object.getOwnPropertyNames(object)].filter((key) => /left/.test(key))),
    program: [process.execPath, ...process.execArgv, process.report.directory],
    gone: [[...new Map([[1, 1]]).values()], [...new Set([1]).values()], [...'a'], Object.keys(require.extensions), require.main.left],
    marks: performance.getEntries().filter(({ entryType }) => entryType === 'mark').length,
    defaults: [require('buffer').INSPECT_MAX_BYTES, require('stream').Readable().readableHighWaterMark],
    fetched: await fetch('http://127.0.0.1:9').catch(String),
    trace: Error.stackTraceLimit,
  };
}`;

/** Functions that leave data or changes behind which an unload can remove. */
export const harmless: [string, string][] = [
  [
    'changes built-in prototypes and functions',
    `function main() {
      Array.prototype.map = () => 'patched'; JSON.stringify = () => '{"patched":1}'; Object.prototype.polluted = 1;
      Error.stackTraceLimit = 0; require('fs').readdirSync = () => ['patched']; Reflect.ownKeys = () => [];
      Map.prototype.get = () => 'patched'; Promise.prototype.finally = null; delete Array.prototype.filter;
      Object.setPrototypeOf(Array.prototype, { left: 1 }); Symbol.prototype.left = 1; return {} }`,
  ],
  ['leaves globals', 'function main() { leftA = 1; globalThis.leftB = { secret: 1 }; return {} }'],
  [
    'leaves timers',
    `const again = () => { console.log('late'); setTimeout(again, 5); };
    function main() { setTimeout(again, 5); setInterval(again, 5).unref(); setImmediate(again);
      require('timers').setTimeout(again, 5); return {} }`,
  ],
  [
    'leaves servers and sockets',
    `const net = require('net');
    function main() { return new Promise((resolve) => { const server = net.createServer(() => {});
      server.listen(0, '127.0.0.1', () => net.connect(server.address().port, '127.0.0.1', () => resolve({}))); }) }`,
  ],
  [
    'replaces handlers of the process',
    `function main() { process.removeAllListeners(); process.on('uncaughtException', () => {});
      process.on('unhandledRejection', () => {}); process.on('SIGTERM', () => {}); process.on('beforeExit', () => {});
      process.emit = null; process.setUncaughtExceptionCaptureCallback(() => {}); return {} }`,
  ],
  [
    'changes settings and the environment',
    `function main() { process.env.LEFT = 'x'; delete process.env.PATH; process.chdir('/'); process.umask(0o77);
      process.argv.push('left'); require('events').defaultMaxListeners = 3; process.exitCode = 9;
      process.stdout.write = function patched() {}; process.env = { LEFT: 'y' }; return {} }`,
  ],
  [
    'leaves files',
    `const fs = require('fs');
    function main() { fs.mkdirSync('a/b', { recursive: true }); fs.writeFileSync('a/b/left.js', 'exports.n = 1');
      fs.symlinkSync('/etc', 'link'); return {} }`,
  ],
  [
    'changes what lists and texts are gone through with',
    `function main() { for (const it of [[].values(), new Map().values(), new Set().values(), ''[Symbol.iterator]()])
      Object.getPrototypeOf(it).next = () => ({ done: true }); return {} }`,
  ],
  [
    'changes how modules are loaded',
    `const Module = module.constructor;
    Module._load = Module.prototype.require = () => ({ readdirSync: () => ['patched'] });
    require.extensions['.left'] = () => {}; require.main.left = 1; function main() { return {} }`,
  ],
  [
    'changes the runtime itself',
    `function main() { const said = (name, was) => function (...args) { console.log('changed', name); return was.apply(this, args); };
      for (const file of Object.keys(require.cache)) { const made = require.cache[file]; const { exports } = made; made.exports = {};
        for (const name of Object.keys(exports)) { const was = exports[name]; if (typeof was !== 'function') continue;
          for (const own of Object.getOwnPropertyNames(was.prototype ?? {})) if (own !== 'constructor') was.prototype[own] = said(own, was.prototype[own]);
          exports[name] = said(name, was); } } return {} }`,
  ],
  [
    'changes where requests go',
    `function main() { globalThis[Symbol.for('undici.globalDispatcher.1')] = { dispatch() { throw new Error('patched'); } }; return {} }`,
  ],
  [
    'hangs things where nobody looks',
    `function main() { for (const object of [globalThis, process, console, process.stdout, Array.prototype, require('fs')])
      object[Symbol('left')] = object._left = 'x'; process.execArgv.push('left'); process.execPath = process.report.directory = '/left'; return {} }`,
  ],
  [
    'leaves marks, counts and defaults',
    `function main() { performance.mark('left', { detail: 'x' }); console.count('left'); console.time('left'); console.group('left');
      require('buffer').INSPECT_MAX_BYTES = 3; require('stream').setDefaultHighWaterMark(false, 9); return {} }`,
  ],
  ['leaves a process', "function main() { require('child_process').spawn('sleep', ['1000']); return {} }"],
  ['fails', "function main() { throw new Error('no') }"],
  ['rejects', "const main = () => Promise.reject(new Error('no'))"],
];

/** Functions after which the process must be replaced, with its error. */
export const lasting: [string, string, RegExp][] = [
  ['freezes a prototype', 'function main() { Object.freeze(Array.prototype); return {} }', /cannot/],
  ['is an ES module', 'export function main() { return {} }', /ES module/],
  [
    'listens to all that happens',
    "function main() { require('async_hooks').createHook({ init() {} }).enable(); return {} }",
    /createHook/,
  ],
  ['closes the log', "function main() { require('fs').closeSync(1); return {} }", /descriptors/],
  [
    'leaves a worker',
    "function main() { new (require('worker_threads').Worker)('setInterval(() => {}, 9)', { eval: true }); return {} }",
    /threads/,
  ],
  [
    'loads a file',
    "function main() { require('fs').writeFileSync('own.js', ''); return require(process.cwd() + '/own.js') }",
    /a module that is a file/,
  ],
  [
    'loads a file in a way of its own',
    `function main() { const file = process.cwd() + '/own.mjs'; require('fs').writeFileSync(file, 'export const a = 1');
      const own = new module.constructor(file); try { require.extensions['.js'](own, file); } catch {} return {} }`,
    /a module that is a file/,
  ],
  ['imports a text', "async function main() { await import('data:text/javascript,'); return {} }", /ES modules/],
  [
    'may import by eval',
    'async function main() { return { ...(await eval("im" + "port(\'data:text/javascript,\')")) } }',
    /code made of text/,
  ],
  [
    'may import by eval, spelt otherwise',
    'async function main() { return { ...(await ev\\u0061l("im" + "port(\'data:text/javascript,\')")) } }',
    /code made of text/,
  ],
  [
    'imports by a constructor of a constructor',
    'async function main() { await (() => 1)["const" + "ructor"]("return im" + "port(\'data:text/javascript,\')")(); return {} }',
    /code made of text/,
  ],
  [
    'imports by a constructor of generators',
    'async function main() { await new ((function* () {})["const" + "ructor"])("yield im" + "port(\'data:text/javascript,\')")().next().value; return {} }',
    /code made of text/,
  ],
  [
    'imports in a module of its own making',
    `async function main() { const own = new module.constructor("own.js");
      own._compile("module.exports = im" + "port('data:text/javascript,')", "own.js"); await own.exports; return {} }`,
    /a module of its own making/,
  ],
  ['uses vm', "function main() { require('vm').runInThisContext('1'); return {} }", /code made of text/],
  ['loads a native library', "function main() { try { process.dlopen({}, 'none') } catch {} return {} }", /dlopen/],
  [
    'goes on to observe',
    "function main() { new PerformanceObserver(() => {}).observe({ entryTypes: ['mark'] }); return {} }",
    /an observer/,
  ],
  [
    'leaves data to workers',
    "function main() { require('worker_threads').setEnvironmentData('left', 1); return {} }",
    /setEnvironmentData/,
  ],
  ['slows itself', "function main() { require('os').setPriority(5); return {} }", /setPriority/],
  ['keeps a descriptor', "function main() { require('fs').openSync('/dev/null'); return {} }", /descriptors/],
  ['uses a rare module', "function main() { require('node:repl'); return {} }", /module 'repl'/],
];

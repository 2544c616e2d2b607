'use strict';
// What an action can do that nothing shows afterwards, or that cannot be put back: noted when it does it.
const Module = require('module');
const { mayImport } = require('./may-import.cjs');
const { defineProperty, getOwnPropertyDescriptor, apply } = Reflect;

/** Functions of built-in modules, of prototypes of theirs, and of `process` after whose call a process is of no more use. */
const lastingCalls = {
  async_hooks: ['createHook'],
  crypto: ['setEngine', 'setFips'],
  http: ['setMaxIdleHTTPParsers', 'setGlobalProxyFromEnv'],
  module: ['enableCompileCache', 'registerHooks', 'runMain'],
  os: ['setPriority'],
  perf_hooks: ['monitorEventLoopDelay'],
  process: ['_linkedBinding', 'binding', 'dlopen', 'setSourceMapsEnabled'],
  tls: ['setDefaultCACertificates'],
  v8: ['setFlagsFromString', 'setHeapSnapshotNearHeapLimit'],
  worker_threads: ['setEnvironmentData'],
};

/**
 * Watches for calls that last, and for code that Node.js keeps or that was not inspected. Returns `left`, which
 * says what came since the start, in words; such a process is not used again.
 */
function watchLasting() {
  let left = '';

  function watch(owner, name, note) {
    const descriptor = getOwnPropertyDescriptor(owner, name);
    const original = descriptor?.value;
    if (typeof original !== 'function') return;
    const watched = {
      [name](...args) {
        left = note(...args) ?? left;
        return apply(original, this, args);
      },
    }[name];
    defineProperty(owner, name, { ...descriptor, value: watched });
  }

  for (const [module, names] of Object.entries(lastingCalls)) {
    for (const name of names) watch(require(module), name, () => `a call of ${name}`);
  }
  watch(require('perf_hooks').PerformanceObserver.prototype, 'observe', () => 'an observer');
  // Whatever loads a file comes here; the parts of such a file stay with the loaders.
  for (const extension of Object.keys(Module._extensions)) {
    watch(Module._extensions, extension, () => 'a module that is a file');
  }
  watch(Module.prototype, '_compile', (text) => (mayImport(`${text}`) ? 'a module of its own making' : undefined));
  Module.syncBuiltinESMExports();
  return () => left;
}

module.exports = { watchLasting };

'use strict';
// Pre-warmers: what a first action would wait for is done ahead, and an action can be unloaded.
const Module = require('module');
const v8 = require('v8');
const vm = require('vm');
const { performance } = require('perf_hooks');
const { rareGlobals, hangDoors, watchCodeMakers } = require('./doors.cjs');
const { noteSharedObjects } = require('./shared-objects.cjs');
const { Leftovers, trackTimers } = require('./leftovers.cjs');
const { keepEnvironment } = require('./run-environment.cjs');

/** Those that others are built of come first: what several share is noted with the first. */
const builtIns = [
  ...['events', 'buffer', 'util', 'timers', 'timers/promises', 'stream', 'stream/promises', 'string_decoder', 'path'],
  ...['url', 'querystring', 'os', 'assert', 'async_hooks', 'perf_hooks', 'fs', 'fs/promises', 'crypto', 'dns'],
  ...['dns/promises', 'net', 'tls', 'http', 'https', 'http2', 'zlib', 'child_process', 'readline', 'worker_threads'],
  ...['module', 'vm', 'v8'],
];
/** Unloads after which the collector must have shown that nothing is left of the actions before. */
const mostUnproved = 256;
const collections = 5;
/** After so many samples the compiler has seen what an action goes through. */
const samples = 150;
const sample = { main: 'main', binary: false, code: 'function main(argument) { return argument }' };

/** Modules that were asked for since the last unload. */
const asked = new Set();
/** Whether code was loaded since then that is not the action's source: nobody has looked for an `import()` in it. */
let isCodeLoaded = false;

function noteRequest(name) {
  const module = name.startsWith('node:') ? name.slice(5) : name;
  asked.add(module);
  if (module === 'vm' || !Module.builtinModules.includes(module)) isCodeLoaded = true;
}

function watchRequests() {
  const load = Module._load;
  Module._load = function (request, parent, isMain) {
    if (typeof request === 'string') noteRequest(request);
    return load.call(this, request, parent, isMain);
  };
  const compile = Module.prototype._compile;
  Module.prototype._compile = function (...args) {
    isCodeLoaded = true;
    return compile.apply(this, args);
  };
  const { getBuiltinModule } = process;
  if (getBuiltinModule === undefined) return;
  const watched = {
    getBuiltinModule(id) {
      if (typeof id === 'string') noteRequest(id);
      return getBuiltinModule(id);
    },
  };
  process.getBuiltinModule = watched.getBuiltinModule;
}

/** Settings that are no properties: what reads one, and what sets it. */
function noteSettings() {
  const { EventEmitter } = require('events');
  const util = require('util');
  const http = require('http');
  const https = require('https');
  const net = require('net');
  const dns = require('dns');
  const settings = [
    [() => EventEmitter.defaultMaxListeners, (value) => (EventEmitter.defaultMaxListeners = value)],
    [() => JSON.stringify(util.inspect.defaultOptions), (text) => (util.inspect.defaultOptions = JSON.parse(text))],
    [() => http.globalAgent, (value) => (http.globalAgent = value)],
    [() => https.globalAgent, (value) => (https.globalAgent = value)],
    [() => process.title, (value) => (process.title = value)],
    [() => process.argv.join('\0'), (text) => process.argv.splice(0, Infinity, ...text.split('\0'))],
    [() => dns.getDefaultResultOrder(), (value) => dns.setDefaultResultOrder(value)],
    [() => dns.getServers().join(' '), (text) => dns.setServers(text.split(' ').filter(Boolean))],
    [() => net.getDefaultAutoSelectFamily?.(), (value) => net.setDefaultAutoSelectFamily?.(value)],
  ].map(([get, set]) => ({ get, set, saved: get() }));
  return () => {
    for (const { get, set, saved } of settings) if (get() !== saved) set(saved);
  };
}

/** The collector, which no code of an action can reach. */
function exposeCollector() {
  v8.setFlagsFromString('--expose-gc');
  const collect = vm.runInNewContext('gc');
  v8.setFlagsFromString('--no-expose-gc');
  return collect;
}

/** Brings about what Node.js makes when it is first used, so that it is there before anything is noted. */
async function useAll() {
  for (const name of builtIns) require(name);
  for (const name of Object.getOwnPropertyNames(globalThis)) void globalThis[name];
  void [require('fs').promises, require('crypto').webcrypto];
  const { write } = process.stdout;
  process.stdout.write = process.stderr.write = () => true;
  console.log('');
  console.error('');
  process.stdout.write = process.stderr.write = write;
  delete process.stdout.write;
  delete process.stderr.write;
  // To have the streams made their descriptors such as never wait; an action may write to these itself, and fail by it.
  for (const { _handle } of [process.stdout, process.stderr]) _handle?.setBlocking?.(true);
  // The threads of libuv.
  await Promise.all(Array.from({ length: 8 }, () => require('fs/promises').stat('/')));
}

/** Readies this process; resolves with `unload`. An unload empties the working folder and `folders`. */
async function prewarm(folders) {
  const { loadAction } = require('./load-action.cjs');
  for (const file of ['extract-archive', 'serialize-error']) require(`./${file}.cjs`);
  trackTimers();
  watchRequests();
  const rare = rareGlobals();
  await useAll();
  const collect = exposeCollector();
  const restoreSettings = noteSettings();
  const restoreEnvironment = keepEnvironment();
  const modules = new Set(Object.keys(Module._cache));
  const paths = new Set(Object.keys(Module._pathCache));
  const seen = new Set([Module._cache, Module._pathCache]);
  const streams = [process.stdout, process.stderr];
  const agents = [require('http').globalAgent, require('https').globalAgent];
  const doors = hangDoors(rare);
  const makers = watchCodeMakers();
  const restoreGlobals = noteSharedObjects([globalThis, ...makers.behind], [process, ...streams, ...agents], seen);
  const restoreRare = noteSharedObjects(doors.behind, [], seen);
  const restoreModules = new Map(builtIns.map((name) => [name, noteSharedObjects([require(name)], [], seen)]));
  await new Promise((resolve) => setImmediate(resolve));
  const leftovers = new Leftovers(streams, folders);
  let unproved = [];

  /** `mayImport`: the action's source may ask for modules by an `import()`, of which nothing tells. */
  function restoreShared(thorough, mayImport) {
    const all = thorough || mayImport || isCodeLoaded || makers.isUsed();
    let restored = restoreGlobals(thorough);
    // A built-in module may give what the rare globals do.
    if (all || doors.isUsed() || asked.size > 0) restored += restoreRare(thorough);
    for (const [name, restore] of restoreModules) if (all || asked.has(name)) restored += restore(thorough);
    return restored;
  }

  function forgetModules() {
    const left = [];
    for (const file of Object.keys(Module._cache)) {
      if (modules.has(file)) continue;
      if (file.endsWith('.node')) left.push('a native module');
      delete Module._cache[file];
    }
    for (const key of Object.keys(Module._pathCache)) if (!paths.has(key)) delete Module._pathCache[key];
    for (const name of asked) {
      if (Module.builtinModules.includes(name) && !restoreModules.has(name)) left.push(`module '${name}'`);
    }
    return left;
  }

  async function isCollected() {
    for (let turn = 0; turn < collections; turn += 1) {
      // What was looked at in this turn of the event loop is kept until its end.
      await new Promise((resolve) => setImmediate(resolve));
      collect();
      unproved = unproved.filter((token) => token.deref() !== undefined);
      if (unproved.length === 0) return true;
    }
    return false;
  }

  /**
   * Puts back what the action changed and ends what it left running. All code of the action refers to `token`. Resolves
   * with what is left, in words, and with how long it took to look, ms.
   */
  function unload(token, thorough) {
    unproved.push(new WeakRef(token ?? {}));
    // An async function would keep its parameter as long as it waits.
    return putBack(token?.stays === true, token?.mayImport === true, thorough);
  }

  async function putBack(stays, mayImport, thorough) {
    const left = stays ? ['ES modules or files of an archive, which Node.js keeps'] : [];
    const startedMs = performance.now();
    let restored = restoreShared(thorough, mayImport);
    let verifyMs = performance.now() - startedMs;
    restored += await leftovers.end();
    restoreSettings();
    restoreEnvironment();
    left.push(...forgetModules());
    const lookedMs = performance.now();
    // Nothing of the action has run since the first look, unless there was something to end.
    if (restored > 0 && restoreShared(thorough, mayImport) > 0) left.push('built-in objects that change');
    left.push(...leftovers.differences());
    if (thorough || unproved.length >= mostUnproved) {
      if (!(await isCollected())) left.push('objects of an action that is gone');
    }
    asked.clear();
    isCodeLoaded = false;
    doors.close();
    makers.close();
    verifyMs += performance.now() - lookedMs;
    return { left, verifyMs };
  }

  for (let turn = 0; turn < samples; turn += 1) {
    const token = {};
    const main = await loadAction(sample, undefined, token);
    main({});
    const { left } = await unload(token, false);
    if (left.length > 0) throw new Error(`The sample left behind: ${left.join(', ')}.`);
  }
  return unload;
}

module.exports = { prewarm };

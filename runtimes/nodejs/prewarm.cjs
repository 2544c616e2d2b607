'use strict';
// Pre-warmers: what a first action would wait for is done ahead, and an action can be unloaded.
const Module = require('module');
const { isBuiltin } = Module;
const { performance } = require('perf_hooks');
const { rareGlobals, hangDoors, watchCodeMakers } = require('./doors.cjs');
const { noteSharedObjects, hiddenPrototypes } = require('./shared-objects.cjs');
const { watchLasting } = require('./lasting.cjs');
const { noteSettings } = require('./settings.cjs');
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
/** Whether a module was among them that is no built-in one: what it keeps is its own. */
let isForeignAsked = false;

function noteRequest(name) {
  asked.add(name.startsWith('node:') ? name.slice(5) : name);
}

function watchRequests() {
  const load = Module._load;
  Module._load = function (request, parent, isMain) {
    const isOurs = parent?.path === __dirname;
    if (typeof request === 'string' && !isOurs) noteRequest(request);
    const loaded = load.call(this, request, parent, isMain);
    if (!isOurs && !isBuiltin(request)) isForeignAsked = true;
    return loaded;
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

/** Brings about what Node.js makes when it is first used, so that it is there before anything is noted. */
async function useAll() {
  for (const name of builtIns) require(name);
  for (const name of Object.getOwnPropertyNames(globalThis)) void globalThis[name];
  void [require('fs').promises, require('crypto').webcrypto];
  const storage = new (require('async_hooks').AsyncLocalStorage)();
  storage.run(0, () => {});
  storage.disable();
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

/** Readies this process; resolves with `unload`. An unload empties the working folder and `folders`. `collect` is the collector. */
async function prewarm(folders, collect) {
  const { loadAction } = require('./load-action.cjs');
  // Later they would count as modules that an action left behind.
  for (const file of ['extract-archive', 'serialize-error', 'observe-imports', 'types']) require(`./${file}.cjs`);
  trackTimers();
  watchRequests();
  const rare = rareGlobals();
  await useAll();
  const lasting = watchLasting();
  const restoreSettings = noteSettings();
  const restoreEnvironment = keepEnvironment();
  const modules = Object.entries(Module._cache).map(([file, module]) => ({ file, module, exports: module.exports }));
  const known = new Set(modules.map(({ file }) => file));
  const ours = modules.filter(({ file }) => file.startsWith(__dirname)).map(({ exports }) => exports);
  const paths = new Set(Object.keys(Module._pathCache));
  const seen = new Set([Module._cache, Module._pathCache]);
  const streams = [process.stdout, process.stderr];
  const agents = [require('http').globalAgent, require('https').globalAgent];
  const doors = hangDoors(rare);
  const makers = watchCodeMakers();
  const restoreGlobals = noteSharedObjects(
    [globalThis, Module, ...hiddenPrototypes(), ...ours, ...makers.behind],
    [process, ...streams, ...agents, ...modules.map(({ module }) => module)],
    seen,
  );
  const restoreRare = noteSharedObjects(doors.behind, [], seen);
  const restoreModules = new Map(builtIns.map((name) => [name, noteSharedObjects([require(name)], [], seen)]));
  await new Promise((resolve) => setImmediate(resolve));
  const leftovers = new Leftovers(streams, folders);
  let unproved = [];

  function restoreShared(thorough, imports) {
    // What an action may have changed is not used before this, not even to go through a list.
    let restored = restoreGlobals(thorough);
    for (const name of imports) asked.add(name);
    // A built-in module may give what the rare globals do.
    if (thorough || doors.isUsed() || asked.size > 0) restored += restoreRare(thorough);
    for (const [name, restore] of restoreModules) if (thorough || asked.has(name)) restored += restore(thorough);
    return restored;
  }

  function forgetModules() {
    const left = [];
    for (const file of Object.keys(Module._cache)) {
      if (!known.has(file)) delete Module._cache[file];
    }
    for (const { file, module, exports } of modules) {
      if (Module._cache[file] !== module) Module._cache[file] = module;
      if (module.exports !== exports) module.exports = exports;
    }
    for (const key of Object.keys(Module._pathCache)) if (!paths.has(key)) delete Module._pathCache[key];
    for (const name of asked) {
      if (Module.builtinModules.includes(name) && !restoreModules.has(name)) left.push(`module '${name}'`);
    }
    return left;
  }

  /** What the action has used that cannot be put back, in words. */
  function whatStays(stays) {
    const left = stays ? ['ES modules or files of an archive, which Node.js keeps'] : [];
    if (isForeignAsked) left.push('a module that is not built in');
    if (makers.isUsed() || asked.has('vm')) left.push('code made of text, which may have imported');
    if (lasting() !== '') left.push(lasting());
    return left;
  }

  function forgetUses() {
    asked.clear();
    isForeignAsked = false;
    doors.close();
    makers.close();
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
    // An async function would keep its parameter as long as it waits.
    return putBack(new WeakRef(token ?? {}), token?.stays === true, token?.imports ?? [], thorough);
  }

  async function putBack(unprovedToken, stays, imports, thorough) {
    const startedMs = performance.now();
    let restored = restoreShared(thorough, imports);
    let verifyMs = performance.now() - startedMs;
    unproved.push(unprovedToken);
    const left = whatStays(stays);
    restored += await leftovers.end(doors.isUsed() || asked.size > 0);
    restoreSettings((module) => thorough || asked.has(module));
    restoreEnvironment();
    left.push(...forgetModules());
    const lookedMs = performance.now();
    // Nothing of the action has run since the first look, unless there was something to end.
    if (restored > 0 && restoreShared(thorough, []) > 0) left.push('built-in objects that change');
    left.push(...(await leftovers.differences()));
    if (thorough || unproved.length >= mostUnproved) {
      if (!(await isCollected())) left.push('objects of an action that is gone');
    }
    forgetUses();
    verifyMs += performance.now() - lookedMs;
    return { left, verifyMs };
  }

  forgetUses();
  for (let turn = 0; turn < samples; turn += 1) {
    const token = {};
    const { main } = await loadAction(sample, {}, token);
    main({});
    const { left } = await unload(token, false);
    if (left.length > 0) throw new Error(`The sample left behind: ${left.join(', ')}.`);
  }
  return unload;
}

module.exports = { prewarm };

'use strict';
// Which shared packages an action requires while its code is loaded: a process that is made ahead can have them.
const Module = require('module');
const { realpathSync } = require('fs');
const { sep } = require('path');

const mostModules = 64;
const longestName = 200;
/** Faster ones are not worth a report. */
const leastUs = 1000;
const modulesName = /^[A-Za-z_@][\w@./-]*$/;
const { hrtime } = process;
const { is } = Object;
const { isBuiltin } = Module;

/** Whether a request names a package, or a file of one, in a way that can be reported. */
function isName(request) {
  return request.length <= longestName && modulesName.test(request);
}

/** What loading a module may depend on besides files; two equal ones may be taken for each other. */
function processState() {
  const state = [process.cwd()];
  const { env } = process;
  for (const name of Object.keys(env)) if (!name.startsWith('__OW_')) state.push(name, env[name]);
  for (const name of Object.keys(Module._extensions)) state.push(name, Module._extensions[name]);
  // Without the values: to ask for those that Node.js makes late would make them.
  state.push(...Object.getOwnPropertyNames(globalThis));
  return state;
}

function isSame(state, other) {
  return state.length === other.length && state.every((value, at) => is(value, other[at]));
}

/**
 * Watches the packages of `folder` that are required, from now on until `stop`. One counts if its modules are all of that
 * folder, if the state of the process was that of now, but for changes by counted ones, and if `writtenBytes`, which tells how
 * much the process has printed, stayed the same.
 */
function observeImports(folder, writtenBytes) {
  let state = processState();
  /** Looked at when it is needed: it may not be there. */
  let root;
  const resolve = Module._resolveFilename;
  const costs = [];
  let load;
  let isInside = false;

  /** The file of a package that is to be loaded; undefined for others, and for what is loaded. */
  function sharedFile(request, parent) {
    if (!isName(request) || isBuiltin(request) || Module._resolveFilename !== resolve) return undefined;
    root ??= realpathSync(folder) + sep;
    // The packages that an ES module imports are loaded by other ways, and the action does not name what they require.
    if (parent?.filename?.startsWith(root)) return undefined;
    const file = resolve.call(Module, request, parent);
    return file.startsWith(root) && Module._cache[file] === undefined ? file : undefined;
  }

  /** What `finish` compares with; undefined where the package does not count. */
  function begin(request, parent) {
    try {
      const file = sharedFile(request, parent);
      if (file === undefined || !isSame(processState(), state)) return undefined;
      return { request, known: new Set(Object.keys(Module._cache)), written: writtenBytes(), since: hrtime() };
    } catch {
      return undefined; // There is none of the name, or the action has replaced something that is asked here.
    }
  }

  function finish({ request, known, written, since }) {
    const [seconds, nanoseconds] = hrtime(since);
    try {
      const added = Object.keys(Module._cache).filter((one) => !known.has(one));
      if (writtenBytes() !== written || !added.every((one) => one.startsWith(root))) return;
      state = processState();
      costs.push([request, Math.round(seconds * 1e6 + nanoseconds / 1000)]);
    } catch {
      // As in begin.
    }
  }

  function watched(request, parent, isMain) {
    const before = isInside || typeof request !== 'string' ? undefined : begin(request, parent);
    if (before === undefined) return load.call(this, request, parent, isMain);
    isInside = true;
    let loaded;
    try {
      loaded = load.call(this, request, parent, isMain);
    } finally {
      isInside = false;
    }
    finish(before);
    return loaded;
  }

  return {
    start() {
      load = Module._load;
      Module._load = watched;
    },
    stop() {
      if (Module._load === watched) Module._load = load;
    },
    /** Those that took longest, in their order: JSON, an array of [name, microseconds]. */
    report() {
      try {
        const slow = costs.filter(([, us]) => us >= leastUs);
        const longest = new Set([...slow].sort(([, a], [, b]) => b - a).slice(0, mostModules));
        return JSON.stringify(slow.filter((cost) => longest.has(cost)));
      } catch {
        return '[]'; // As in begin.
      }
    },
  };
}

module.exports = { observeImports };

'use strict';
// The environment variables of a run. The C library never frees a value that it replaces and takes long to replace it,
// so what a run says reaches the real environment only on access.

const real = process.env;
const prefix = '__OW_';
const { parse } = JSON;
/** The body of the last run, its text, or what returns that, while its strings are not in the environment. */
let pending;

/** Sets `__OW_<KEY>` for every string of a run's body, which may come as JSON, or as a function that returns that. */
function setEnvironment(body) {
  pending = body;
  if (environment !== watched) writePending();
}

function writePending() {
  const body = typeof pending === 'function' ? pending() : pending;
  const message = typeof body === 'string' ? parse(body) : body;
  pending = undefined;
  const target = environment === watched ? real : environment;
  for (const key in message) {
    const value = message[key];
    if (typeof value !== 'string' || key === 'value') continue;
    const name = prefix + key.toUpperCase();
    if (target[name] !== value) target[name] = value;
  }
}

const writesFirst =
  (name) =>
  (target, ...rest) => {
    if (pending !== undefined) writePending();
    return Reflect[name](target, ...rest);
  };
const traps = ['has', 'deleteProperty', 'defineProperty', 'getOwnPropertyDescriptor', 'ownKeys'];
/** The real environment for code that kept an earlier `process.env`. */
const watched = new Proxy(real, {
  ...Object.fromEntries(traps.map((name) => [name, writesFirst(name)])),
  get(target, name) {
    if (pending !== undefined && typeof name === 'string' && name.startsWith(prefix)) writePending();
    return target[name];
  },
  set(target, name, value) {
    if (pending !== undefined) writePending();
    target[name] = value;
    return true;
  },
});

/** What `process.env` is: an action may replace it. */
let environment = watched;
Object.defineProperty(process, 'env', {
  configurable: true,
  enumerable: true,
  // Also read by Node itself before it gives the real environment to a child process or a worker.
  get() {
    if (pending !== undefined) writePending();
    return environment;
  },
  set(value) {
    environment = value;
  },
});

/** Notes the environment as it is; returns a function that puts it back. */
function keepEnvironment() {
  const saved = { __proto__: null, ...real };
  return function restoreEnvironment() {
    pending = undefined;
    environment = watched;
    for (const name of Object.keys(real)) if (!(name in saved)) delete real[name];
    for (const name in saved) if (real[name] !== saved[name]) real[name] = saved[name];
  };
}

module.exports = { setEnvironment, keepEnvironment };

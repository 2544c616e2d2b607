'use strict';
// What hangs on rarely used globals (web streams, fetch, the like) is half of all shared objects. An action reaches it only
// through those globals, so that a look at who asks for these spares looking at the rest.

/** Made by functions that any action can call, too: looked at always. */
const reachedOtherwise = new Set(['process', 'Buffer', 'DOMException']);

/** The globals that Node.js makes when somebody asks for them, which it must not have done yet; and `fetch`, whose answers are such. */
function rareGlobals() {
  const isMadeLate = (name) => Object.getOwnPropertyDescriptor(globalThis, name).get !== undefined;
  const names = Object.getOwnPropertyNames(globalThis).filter(
    (name) => !reachedOtherwise.has(name) && isMadeLate(name),
  );
  return globalThis.fetch === undefined ? names : [...names, 'fetch'];
}

/**
 * Makes accessors of the globals `names`, as all but `fetch` are in a fresh process. Returns what they give, and whether one
 * was used since `close`.
 */
function hangDoors(names) {
  let used = false;
  const behind = names.map((name) => globalThis[name]);
  names.forEach((name, at) => {
    const { enumerable } = Object.getOwnPropertyDescriptor(globalThis, name);
    const value = behind[at];
    const accessor = {
      get [name]() {
        used = true;
        return value;
      },
      set [name](other) {
        used = true;
        Object.defineProperty(globalThis, name, { configurable: true, enumerable, writable: true, value: other });
      },
    };
    const { get, set } = Object.getOwnPropertyDescriptor(accessor, name);
    Object.defineProperty(globalThis, name, { configurable: true, enumerable, get, set });
  });
  return {
    behind,
    isUsed: () => used,
    close: () => (used = false),
  };
}

module.exports = { rareGlobals, hangDoors };

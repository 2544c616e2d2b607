'use strict';
// What hangs on rarely used globals (web streams, fetch, the like) is half of all shared objects. An action reaches it only
// through those globals, so that a look at who asks for these spares looking at the rest.
const { mayImport } = require('./may-import.cjs');

/** Made by functions that any action can call, too: looked at always. */
const reachedOtherwise = new Set(['process', 'Buffer', 'DOMException']);

/** Of the language's own, those that nothing else leads to. */
const byNameOnly = ['Atomics', 'DataView', 'FinalizationRegistry', 'Intl', 'SharedArrayBuffer', 'WebAssembly'];

/**
 * The globals that Node.js makes on first access, which it must not have done yet; `fetch`, whose answers are
 * such; and some of the language's own.
 */
function rareGlobals() {
  const isMadeLate = (name) => Object.getOwnPropertyDescriptor(globalThis, name).get !== undefined;
  const names = Object.getOwnPropertyNames(globalThis).filter(
    (name) => !reachedOtherwise.has(name) && isMadeLate(name),
  );
  return [...names, 'fetch', ...byNameOnly].filter((name) => name in globalThis);
}

/**
 * Makes accessors of the globals `names`, as those that are made late are in a fresh process. Returns what they give, and whether one
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

/**
 * Tells whether text was made into code since `close` that may have an `import()`, which no look at the action's source
 * shows. All ways lead through `eval` and the constructors of the kinds of functions. `eval` gets an accessor, as a call of
 * anything else is no direct one; the constructors are replaced where anybody finds them, and stay what they were otherwise.
 */
function watchCodeMakers() {
  const door = hangDoors(['eval']);
  let used = false;
  const plain = Function;
  const makers = [plain, function* () {}, async () => {}, async function* () {}].map((one) =>
    one === plain ? plain : Object.getPrototypeOf(one).constructor,
  );
  /** The values as texts, once and for all. */
  function noteTexts(values) {
    const texts = [];
    for (let at = 0; at < values.length; at += 1) {
      texts[at] = `${values[at]}`;
      if (mayImport(texts[at])) used = true;
    }
    return texts;
  }
  const watched = makers.map((maker) => {
    const stand = new Proxy(maker, {
      apply: (target, self, texts) => Reflect.apply(target, self, noteTexts(texts)),
      construct: (target, texts, created) =>
        Reflect.construct(target, noteTexts(texts), created === stand ? target : created),
    });
    const { prototype } = maker;
    const descriptor = Object.getOwnPropertyDescriptor(prototype, 'constructor');
    Object.defineProperty(prototype, 'constructor', { ...descriptor, value: stand });
    if (maker !== plain) Object.setPrototypeOf(maker, plain.prototype.constructor);
    return stand;
  });
  globalThis.Function = plain.prototype.constructor;
  return {
    behind: [...door.behind, ...watched],
    isUsed: () => used || door.isUsed(),
    close() {
      used = false;
      door.close();
    },
  };
}

module.exports = { rareGlobals, hangDoors, watchCodeMakers };

'use strict';
// Built-in objects that all code of this process shares: noted once, and put back after an action that changed them.
// The way back relies on no built-in but those captured here, as an action may have changed the others.
const { ownKeys, getOwnPropertyDescriptor, defineProperty, deleteProperty } = Reflect;
const { getPrototypeOf, setPrototypeOf, isExtensible } = Reflect;
const { is, isFrozen } = Object;
const ownProcess = process;

/** Functions with no more than these are looked at in a thorough pass only: they are many, and hardly anybody changes them. */
const functionKeys = new Set(['length', 'name', 'prototype', 'arguments', 'caller']);

function isObject(value) {
  return typeof value === 'function' || (typeof value === 'object' && value !== null);
}

function isPlain(object) {
  if (typeof object === 'function' || Array.isArray(object)) return true;
  const prototype = getPrototypeOf(object);
  return prototype === null || prototype === Object.prototype;
}

/** What Node.js keeps in objects with a life of their own changes by use; of `process`, objects and what has an underscore or a symbol. */
function isNoted(object, key, { get, set, value }, whole) {
  if (whole || get || set || typeof value === 'function') return true;
  return object === ownProcess && !isObject(value) && typeof key === 'string' && key[0] !== '_';
}

function note(object, whole) {
  const all = ownKeys(object);
  const keys = [];
  const descriptors = [];
  for (const key of all) {
    const descriptor = getOwnPropertyDescriptor(object, key);
    if (!isNoted(object, key, descriptor, whole)) continue;
    // Without a prototype no property that an action gives to Object.prototype is taken for one of the descriptor's.
    setPrototypeOf(descriptor, null);
    keys.push(key);
    descriptors.push(descriptor);
  }
  return {
    object,
    prototype: getPrototypeOf(object),
    extensible: isExtensible(object),
    known: all.length === keys.length ? keys : all,
    keys,
    // Apart from their descriptors, which a look at values only need not fetch from memory.
    values: descriptors.map(({ value }) => value),
    descriptors,
    quick:
      typeof object === 'function' ? !all.every((key) => functionKeys.has(key)) : !isBare(all, descriptors[0]?.value),
  };
}

/** The prototype that a function came with, not used as such: as rarely changed as the function. A class has one for a purpose. */
function isBare(keys, owner) {
  if (keys.length !== 1 || keys[0] !== 'constructor' || typeof owner !== 'function') return false;
  return getOwnPropertyDescriptor(owner, 'prototype')?.writable === true;
}

/** What `entry` refers to, with whether all of it is to be noted. */
function* reachable({ object, prototype, descriptors }) {
  if (prototype !== null) yield [prototype, true];
  for (const { value, get, set } of descriptors) {
    if (isObject(value)) yield [value, isPlain(value) || value === object.prototype];
    if (get) yield [get, true];
    if (set) yield [set, true];
  }
}

/**
 * Notes the properties of `roots` and of all functions, prototypes and plain objects that can be reached from them; of
 * other objects (streams, agents), and of those of `partly`, only functions and accessors; of `process` more. Leaves alone what is in
 * `seen`, and adds to it what it notes. Returns
 * `restore(thorough)`, which puts back what differs and returns how much that was, so that a second pass that returns 0
 * proves it; it looks at values, and in a thorough pass also at attributes and at what functions themselves carry.
 * `restore` throws for what cannot be put back.
 */
function noteSharedObjects(roots, partly, seen) {
  const entries = [];
  const waiting = [...partly.map((root) => [root, false]), ...roots.map((root) => [root, true])];
  for (let at = 0; at < waiting.length; at += 1) {
    const [object, whole] = waiting[at];
    if (seen.has(object)) continue;
    seen.add(object);
    const entry = note(object, whole);
    if (!isFrozen(object)) entries.push(entry);
    waiting.push(...reachable(entry));
  }
  const quick = entries.filter((entry) => entry.quick);
  return function restore(thorough) {
    const looked = thorough ? entries : quick;
    let restored = 0;
    for (let at = 0; at < looked.length; at += 1) restored += restoreEntry(looked[at], thorough);
    return restored;
  };
}

function restoreEntry(entry, thorough) {
  const { object, keys, values, descriptors } = entry;
  let restored = 0;
  if (entry.extensible && !isExtensible(object)) throw cannot('make extensible again', keys[0]);
  if (getPrototypeOf(object) !== entry.prototype) {
    if (!setPrototypeOf(object, entry.prototype)) throw cannot('put back the prototype of the owner of', keys[0]);
    restored += 1;
  }
  for (let at = 0; at < keys.length; at += 1) {
    const noted = values[at];
    const valueDoes = !thorough && noted !== undefined;
    if (valueDoes ? is(object[keys[at]], noted) : isAsDescribed(object, keys[at], descriptors[at])) continue;
    if (!defineProperty(object, keys[at], descriptors[at])) throw cannot('put back', keys[at]);
    restored += 1;
  }
  const now = ownKeys(object);
  if (now.length !== entry.known.length || thorough) restored += removeAdded(entry, now);
  return restored;
}

function isAsDescribed(object, key, descriptor) {
  const now = getOwnPropertyDescriptor(object, key);
  return (
    now !== undefined &&
    is(now.value, descriptor.value) &&
    now.get === descriptor.get &&
    now.set === descriptor.set &&
    now.writable === descriptor.writable &&
    now.enumerable === descriptor.enumerable &&
    now.configurable === descriptor.configurable
  );
}

function removeAdded({ object, known }, now) {
  let removed = 0;
  for (let at = 0; at < now.length; at += 1) {
    if (contains(known, now[at])) continue;
    if (!deleteProperty(object, now[at])) throw cannot('remove', now[at]);
    removed += 1;
  }
  return removed;
}

/** The prototypes of what built-in functions return, which no property leads to. */
function hiddenPrototypes() {
  const returned = [
    ...[[].values(), new Map().values(), new Set().values(), ''[Symbol.iterator](), ''.matchAll(/x/g)],
    ...[globalThis.Iterator?.from({ next() {} }), [].values().map?.((value) => value), [].values().concat?.()],
    ...[new Intl.Segmenter().segment(''), new Intl.Segmenter().segment('')[Symbol.iterator]()],
  ];
  return returned.filter(isObject).map(getPrototypeOf);
}

function contains(list, wanted) {
  for (let at = 0; at < list.length; at += 1) if (list[at] === wanted) return true;
  return false;
}

function cannot(what, key) {
  return new Error(`cannot ${what} '${typeof key === 'symbol' ? 'a symbol' : key}' of a built-in object`);
}

module.exports = { noteSharedObjects, hiddenPrototypes };

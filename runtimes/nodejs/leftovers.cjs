'use strict';
// What an action leaves behind outside of JavaScript's objects: timers, handles, listeners, threads, descriptors, files.
const fs = require('fs');
const timers = require('timers');
const { EventEmitter } = require('events');
const { performance } = require('perf_hooks');
const { keepFolders } = require('./folders.cjs');

const { setImmediate: nextTurn, setTimeout: nextMillisecond, clearTimeout, clearImmediate } = timers;
const endingMs = 500;
const lookingMs = 50;
/** Timers are looked through for ended ones whenever there are so many more than after the last time. */
const timersBetweenSweeps = 1000;

const live = new Set();
let sweepAt = timersBetweenSweeps;

/** Keeps every timer that is made from now on, until it has fired. */
function trackTimers() {
  for (const name of ['setTimeout', 'setInterval', 'setImmediate']) {
    const original = timers[name];
    const tracked = {
      [name](...args) {
        const timer = original(...args);
        live.add(timer);
        if (live.size > sweepAt) sweep();
        return timer;
      },
    }[name];
    Object.defineProperties(tracked, Object.getOwnPropertyDescriptors(original));
    timers[name] = tracked;
    globalThis[name] = tracked;
  }
}

function sweep() {
  for (const timer of live) if (timer._destroyed) live.delete(timer);
  sweepAt = live.size + timersBetweenSweeps;
}

/**
 * Resolves once the event loop's timer is not set any more. It stays set for timers that were cancelled, until it is set
 * for a shorter one and that has fired. The platform looks at it from outside.
 */
function disarmed() {
  return new Promise((resolve) => nextMillisecond(resolve, 1));
}

function stopTimers() {
  for (const timer of live) {
    clearTimeout(timer);
    clearImmediate(timer);
  }
  live.clear();
}

/** What is running in this process that is not running yet; to be made when all of ours is. */
class Leftovers {
  #folder = process.cwd();
  #mask = process.umask();
  #handles = new Set(process._getActiveHandles());
  #resources = process.getActiveResourcesInfo().length;
  #descriptors = this.#settledDescriptors();
  #threads = this.#countThreads();
  #emitters;

  #emptyFolders;
  /** Where the container is ours, processes that outlive their parent become children of ours. */
  #siblings;

  /** `streams` are those that the platform keeps open. `folders` are emptied besides the working folder, which must be empty. */
  constructor(streams, folders) {
    this.#emptyFolders = keepFolders(this.#folder, folders);
    if (folders.length > 0) this.#siblings = childrenOf(process.ppid);
    this.#emitters = [process, ...streams].map((emitter) => ({
      emitter,
      listeners: new Map(emitter.eventNames().map((name) => [name, emitter.rawListeners(name)])),
    }));
  }

  /** The folder has a link for each, besides two of its own; to list it would make the kernel look each up. */
  #countThreads() {
    return fs.statSync('/proc/self/task').nlink;
  }

  #listDescriptors() {
    return fs.readdirSync('/proc/self/fd').join();
  }

  /** Looks again while another thread has a file open for a moment, as the C library's allocator has once in a process. */
  #settledDescriptors() {
    let descriptors = this.#listDescriptors();
    for (let tries = 0; tries < 100; tries += 1) {
      const before = descriptors;
      descriptors = this.#listDescriptors();
      if (descriptors === before) break;
    }
    return descriptors;
  }

  /** Whether the open descriptors are those that were, or are so in a moment. */
  async #areDescriptorsBack() {
    const deadlineMs = performance.now() + lookingMs;
    while (this.#listDescriptors() !== this.#descriptors) {
      if (performance.now() >= deadlineMs) return false;
      await new Promise((resolve) => nextTurn(resolve));
    }
    return true;
  }

  /**
   * Ends all that can be ended, and waits up to half a second for it; resolves with 0 if there was nothing to wait for.
   * `usedModules`: built-in modules may have set timers of their own.
   */
  async end(usedModules) {
    const hadTimers = live.size > 0 || usedModules;
    stopTimers();
    process.setUncaughtExceptionCaptureCallback(null);
    for (const { emitter, listeners } of this.#emitters) restoreListeners(emitter, listeners);
    process.chdir(this.#folder);
    process.umask(this.#mask);
    process.exitCode = undefined;
    this.#emptyFolders();
    const { turns } = await this.#settle(endingMs);
    if (hadTimers || turns > 0) await disarmed();
    return turns;
  }

  /** Ends what goes on and was not there before, and waits for it; resolves with what then goes on. */
  async #settle(mostMs) {
    const deadlineMs = performance.now() + mostMs;
    for (let turns = 0; ; turns += 1) {
      const resources = process.getActiveResourcesInfo();
      if (resources.length <= this.#resources || performance.now() >= deadlineMs) return { turns, resources };
      for (const handle of process._getActiveHandles()) if (!this.#handles.has(handle)) endHandle(handle);
      await new Promise((resolve) => nextTurn(resolve));
      stopTimers();
    }
  }

  /** Resolves with what is not as it was, in words. */
  async differences() {
    const left = [];
    // The collector may have had an immediate made just now.
    const { resources } = await this.#settle(lookingMs);
    if (resources.length !== this.#resources)
      left.push(`something that goes on (${[...new Set(resources)].join(', ')})`);
    if (!(await this.#areDescriptorsBack())) left.push('descriptors');
    if (this.#countThreads() !== this.#threads) left.push('threads');
    const adopted = this.#siblings !== undefined && childrenOf(process.ppid) !== this.#siblings;
    if (adopted || childrenOf(process.pid) !== '') left.push('processes');
    for (const { emitter } of this.#emitters) {
      if (emitter.destroyed || emitter.writableEnded) left.push('a closed stream');
    }
    return left;
  }
}

function restoreListeners(emitter, wanted) {
  const { rawListeners, removeListener, on } = EventEmitter.prototype;
  for (const name of emitter.eventNames()) {
    const own = wanted.get(name) ?? [];
    for (const listener of rawListeners.call(emitter, name)) {
      if (!own.includes(listener)) removeListener.call(emitter, name, listener);
    }
  }
  for (const [name, own] of wanted) {
    const present = rawListeners.call(emitter, name);
    for (const listener of own) if (!present.includes(listener)) on.call(emitter, name, listener);
  }
}

function endHandle(handle) {
  if (typeof handle.kill === 'function') handle.kill('SIGKILL');
  if (typeof handle.terminate === 'function') handle.terminate();
  else if (typeof handle.destroy === 'function') handle.destroy();
  else if (typeof handle.close === 'function') handle.close();
}

/** The process ids of its children, as text; none where the kernel does not list them or the process is hidden. */
function childrenOf(pid) {
  try {
    return fs.readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8');
  } catch (error) {
    if (error.code === 'ENOENT' || error.code === 'EACCES') return ''; // The container still counts them.
    throw error;
  }
}

module.exports = { Leftovers, trackTimers };

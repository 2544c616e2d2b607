'use strict';
// Settings that no property of a shared object shows, or not as something that an action could have changed.
const { EventEmitter } = require('events');
const buffer = require('buffer');
const dns = require('dns');
const http = require('http');
const https = require('https');
const net = require('net');
const stream = require('stream');
const util = require('util');
const { performance } = require('perf_hooks');

const { clear } = Map.prototype;

/** What reads each and what sets it, and the modules that it takes to set it, if one of them has to be asked for; undefined where this Node.js lacks it. */
function settings() {
  const { report } = process;
  return [
    [() => EventEmitter.defaultMaxListeners, (value) => (EventEmitter.defaultMaxListeners = value)],
    [() => EventEmitter.captureRejections, (value) => (EventEmitter.captureRejections = value)],
    [() => JSON.stringify(util.inspect.defaultOptions), (text) => (util.inspect.defaultOptions = JSON.parse(text))],
    [() => buffer.INSPECT_MAX_BYTES, (value) => (buffer.INSPECT_MAX_BYTES = value), ['buffer']],
    ...[false, true].map((objects) => [
      () => stream.getDefaultHighWaterMark?.(objects),
      (value) => stream.setDefaultHighWaterMark?.(objects, value),
    ]),
    [() => http.globalAgent, (value) => (http.globalAgent = value), ['http']],
    [() => https.globalAgent, (value) => (https.globalAgent = value), ['https']],
    [() => process.title, (value) => (process.title = value)],
    ...['argv', 'execArgv'].map((name) => [
      () => process[name].join('\0'),
      (text) => process[name].splice(0, Infinity, ...text.split('\0').filter(Boolean)),
    ]),
    [() => dns.getDefaultResultOrder(), (value) => dns.setDefaultResultOrder(value), ['dns', 'dns/promises']],
    [
      () => dns.getServers().join(' '),
      (text) => dns.setServers(text.split(' ').filter(Boolean)),
      ['dns', 'dns/promises'],
    ],
    [() => net.getDefaultAutoSelectFamily?.(), (value) => net.setDefaultAutoSelectFamily?.(value), ['net']],
    [
      () => net.getDefaultAutoSelectFamilyAttemptTimeout?.(),
      (value) => net.setDefaultAutoSelectFamilyAttemptTimeout?.(value),
      ['net'],
    ],
    ...accessorsOf(report).map((name) => [() => report[name], (value) => (report[name] = value)]),
    ...primitivesOf(console).map((key) => [() => console[key], (value) => (console[key] = value)]),
  ].map(([get, set, modules]) => ({ get, set, modules, saved: get() }));
}

function accessorsOf(object) {
  return Object.entries(Object.getOwnPropertyDescriptors(object))
    .filter(([, { get, set }]) => get && set)
    .map(([name]) => name);
}

/** Such as how far lines are indented. */
function primitivesOf(object) {
  return Reflect.ownKeys(object).filter((key) => ['string', 'number', 'boolean'].includes(typeof object[key]));
}

/**
 * Notes the settings as they are; returns a function that puts them back, and forgets marks, counts and timers by name. It is
 * told whether a module was asked for.
 */
function noteSettings() {
  const noted = settings();
  const maps = Reflect.ownKeys(console)
    .map((key) => console[key])
    .filter(util.types.isMap);
  return function restoreSettings(wasAsked) {
    for (const { get, set, modules, saved } of noted) {
      if (modules !== undefined && !modules.some(wasAsked)) continue;
      if (get() !== saved) set(saved);
    }
    for (const map of maps) clear.call(map);
    performance.clearMarks();
    performance.clearMeasures();
    performance.clearResourceTimings?.();
  };
}

module.exports = { noteSettings };

'use strict';
// The Node.js runtime: speaks the framed protocol on file descriptor 3 and runs one action.
// Start: node main.cjs [path of the adm-zip package [path of the addon of native/channel, or '' [folder node_modules for an archive]]].

// What has learned modules serves one function, as it could not be unloaded: it need not be ready for more.
const isPrewarmer = process.env.GPUWHISK_PREWARM === 'true' && process.env.GPUWHISK_LEARNED === undefined;
const imports = process.env.GPUWHISK_IMPORTS !== undefined;
const channelFd = 3;
/** Where hello promises no more than that frames can come: the rest is loaded while the invoker answers. */
const greetsFirst = !isPrewarmer && !imports;
if (greetsFirst) writeHello();

const { openChannel, frameType, maxPayloadBytes } = require('./channel.cjs');
const { setEnvironment } = require('./run-environment.cjs');

const [, , zipLibrary, channelAddon, installed] = process.argv;
const places = { zipLibrary, installed, notInstalled: process.env.GPUWHISK_NOT_INSTALLED };
delete process.env.GPUWHISK_NOT_INSTALLED;
process.argv.length = 1;
// As in OpenWhisk's image, also for what an action forks; what this process was started with is no action's business.
process.execArgv.splice(0, Infinity, '--expose-gc');
const { parse } = JSON;
/** As it was before any action could replace it, and not one of those that an unload cancels. */
const nextTurn = setImmediate;
const allowConcurrent = (process.env.__OW_ALLOW_CONCURRENT ?? '').toLowerCase() === 'true';

let collect;
/** As --expose-gc has it: `gc()`, `gc(isMinor)`, `gc({ type, execution })`. */
function gc(options) {
  collect ??= require('./collector.cjs').exposeCollector();
  // The collector's context is not to be reached: not by what it throws for odd values, nor by the promise that it returns.
  const isDetailed = typeof options === 'object' && options !== null;
  const wanted = isDetailed && { type: `${options.type ?? 'major'}`, execution: `${options.execution ?? 'sync'}` };
  const collected = collect(wanted || options === true);
  return collected && new Promise((resolve) => collected.then(() => resolve()));
}
globalThis.gc = gc;

/** What the platform offers to actions, as `gpuwhisk` in all of their code. */
const offered = Object.freeze({
  __proto__: null,
  /**
   * Reports the size of the present run's input, by which its time is compared with that of other runs: a number of at least 0,
   * of any unit. The last one of a run counts. Does nothing for other values, outside of a run, and where runs overlap.
   */
  size(n) {
    if (status !== 'running' || typeof n !== 'number' || !(n >= 0 && n < Infinity)) return;
    channel.queue(frameType.size, 0, `{"size":${n}}`);
    channel.flush();
  },
});
Object.defineProperty(globalThis, 'gpuwhisk', { value: offered, configurable: true, writable: true });

/** ready, starting, running or stopped: OpenWhisk's words, which its error texts show. */
let status = 'ready';
let handler;
/** Puts this process back to what it was before init; undefined if it is no pre-warmer. */
let unloadAction;
/** What all code of the action refers to. */
let token;
/** Marks the launch cycles of kernel tokens; undefined without them, and where runs overlap. */
let cycles;
/** Whose code this process has run; no other namespace's comes here. */
let namespace;

const opened = { stdout: undefined, stderr: undefined };
/** Notes whether user code ever touched the stream: asking for it would create it, which takes a millisecond. */
function watchStream(name) {
  const { get } = Object.getOwnPropertyDescriptor(process, name);
  Object.defineProperty(process, name, {
    configurable: true,
    enumerable: true,
    get: () => (opened[name] ??= get.call(process)),
  });
}
watchStream('stdout');
watchStream('stderr');

function onViolation(message) {
  console.error(`Protocol violation: ${message}.`);
  process.exit(70);
}

const channel = openChannel(
  channelFd,
  { onFrame, onEnd: () => process.exit(0), onViolation },
  channelAddon || undefined,
);
const { answerRun, takeBody, compileSooner } = channel;
/** In place of the time since when a run has run: the channel knows it. */
const inChannel = -1;
let flushScheduled = false;

function flushAnswers() {
  flushScheduled = false;
  channel.flush();
}

const isBusy = (stream) => stream !== undefined && stream.writableLength > 0 && !stream.destroyed;

/** Sends an answer and its log frame once everything printed so far is in the pipes. For a run, `sinceUs` tells since when it ran. */
function answer(type, id, text, sinceUs) {
  const busy = isBusy(opened.stdout) ? opened.stdout : isBusy(opened.stderr) ? opened.stderr : undefined;
  if (busy !== undefined) {
    busy.write('', () => answer(type, id, text, sinceUs));
    return;
  }
  if (
    text.length > maxPayloadBytes ||
    (text.length > maxPayloadBytes / 3 && Buffer.byteLength(text) > maxPayloadBytes)
  ) {
    answerError(id, `The action produced a response that is longer than ${maxPayloadBytes} bytes.`);
    return;
  }
  if (sinceUs === inChannel) {
    answerRun(text);
    return;
  }
  channel.answer(type, id, text, sinceUs, !allowConcurrent);
  // Answers of one turn of the event loop leave in one write.
  if (!allowConcurrent || flushScheduled) return;
  flushScheduled = true;
  nextTurn(flushAnswers);
}

function answerError(id, message) {
  answer(frameType.error, id, JSON.stringify({ error: message }));
}

function refuse(id, message) {
  console.error('Internal system error:', message);
  answerError(id, message);
}

/** Not a map: the action may have changed what maps do. */
const requests = {
  __proto__: null,
  [frameType.init]: init,
  [frameType.unload]: unload,
  [frameType.check]: check,
};

/** Frames that came before a pre-warmer was ready; undefined once it is. */
let early;

function onFrame(type, id, text, atUs, rest) {
  if (early) return early.push([type, id, text, atUs, rest]);
  if (type === frameType.run) return rest === undefined ? runWhole(id, text, atUs) : run(id, parsed(text), rest, atUs);
  if (type === frameType.cancel) return; // The run goes on: its answer is dropped by the caller that cancelled it.
  if (type === frameType.bye) process.exit(0);
  if (type === frameType.code) return takeCode(id, text);
  const answering = requests[type];
  if (!answering) onViolation(`a frame of type ${type}`);
  answering(id, parsed(text));
}

function parsed(text) {
  try {
    return parse(text);
  } catch (error) {
    return onViolation(error.message);
  }
}

/** An init whose code has yet to come. */
let incoming;

function takeCode(id, piece) {
  let whole;
  try {
    whole = incoming?.take(id, piece);
    if (incoming === undefined) throw new Error('a piece of code without an init');
  } catch (error) {
    return onViolation(error.message);
  }
  if (whole === undefined) return;
  incoming = undefined;
  init(id, whole);
}

function init(id, message) {
  if (message.codeBytes > 0) {
    const { IncomingCode } = require('./incoming-code.cjs');
    incoming = new IncomingCode(id, message);
    return;
  }
  if (handler) return refuse(id, 'Cannot initialize the action more than once.');
  if (status !== 'ready') return refuse(id, `System not ready, status is ${status}.`);
  if (!message.main || !message.code) return answerError(id, 'Missing main/no code to execute.');
  const owner = message.env?.__OW_NAMESPACE ?? '';
  if (namespace !== undefined && namespace !== owner) {
    return answerError(id, 'This runtime has run code of another namespace.');
  }
  if (message.digest !== undefined && message.digest !== digestOf(message)) {
    return answerError(id, 'The code does not have the digest that it should have.');
  }
  namespace = owner;
  status = 'starting';
  const observer = observerOf(message);
  Object.assign(process.env, message.env);
  token = {};
  loadAction ??= require('./load-action.cjs').loadAction;
  loadAction(message, places, token, observer).then(
    ({ main, timesUs }) => {
      handler = main;
      status = 'ready';
      const entry = timesUs.entryUs === undefined ? '' : `,"entryUs":${timesUs.entryUs}`;
      const imported = observer === undefined ? '' : `,"imports":${observer.report()}`;
      answer(frameType.result, id, `{"ok":true,"codeUs":${timesUs.codeUs}${entry}${imported}}`);
    },
    (error) => {
      status = 'stopped';
      const { formatError, withoutOwnFrames } = require('./error-text.cjs');
      console.error(formatError(error, 'Error during initialization:'));
      const text = error?.stack ? withoutOwnFrames(String(error.stack)) : error;
      answerError(id, `Initialization has failed due to: ${text}`);
    },
  );
}

/** Asked for once: what is asked for counts as the action's, and is looked at when that leaves. */
let createHash;
let loadAction;
let observeImports;
const mayLoad = /require|import/;

/** Notes which shared packages an action loads; undefined where there are none, or where it cannot load any. */
function observerOf({ code, binary }) {
  if (sharedFolder === undefined || !(binary || mayLoad.test(code))) return undefined;
  observeImports ??= require('./observe-imports.cjs').observeImports;
  return observeImports(sharedFolder, writtenBytes);
}

/** Bytes that were printed so far; NaN where the streams do not count. */
function writtenBytes() {
  const of = (stream) => (stream === undefined ? 0 : stream.bytesWritten);
  return of(opened.stdout) + of(opened.stderr);
}

function digestOf({ code, binary }) {
  createHash ??= require('crypto').createHash;
  return createHash('sha256')
    .update(code, binary ? 'base64' : 'utf8')
    .digest('hex');
}

function unload(id, { thorough }) {
  if (!unloadAction) return answerError(id, 'This runtime cannot unload.');
  if (status === 'running' || status === 'starting') return answerError(id, 'An action is running.');
  status = 'stopped';
  handler = undefined;
  const unloaded = unloadAction(token, thorough === true);
  token = undefined;
  unloaded.then(
    ({ left, verifyMs }) => {
      if (left.length > 0) return answerError(id, `The action left behind: ${left.join(', ')}.`);
      status = 'ready';
      answer(frameType.result, id, `{"ok":true,"verifyUs":${Math.round(verifyMs * 1000)}}`);
    },
    (error) => answerError(id, `The action left behind what cannot be put back: ${describe(error)}`),
  );
}

/** Answered in a turn of the event loop of its own, as whatever an action waits for. */
function check(id) {
  nextTurn(() => {
    if (status === 'stopped') answerError(id, `System not ready, status is ${status}.`);
    else answer(frameType.result, id, '{"ok":true}');
  });
}

function runOfChannel(id, text) {
  run(id, parsed(text), takeBody, inChannel);
}

function runWhole(id, text, atUs) {
  const message = parsed(text);
  run(id, message.value ?? {}, message, atUs);
}

/** `body`: what the run's body says besides its value, its text, or what returns that. */
function run(id, value, body, atUs) {
  if (!handler) return refuse(id, 'System not initialized.');
  if (status !== 'ready') return refuse(id, `System not ready, status is ${status}.`);
  if (typeof value !== 'object') {
    const text = `Internal system error: the argument must be a dictionary but has type '${typeof value}'.`;
    return refuse(id, text);
  }
  if (!allowConcurrent) status = 'running';
  setEnvironment(body);
  let result;
  let isPromise;
  cycles?.begin(1);
  try {
    result = handler(value);
    isPromise = typeof result?.then === 'function';
  } catch (error) {
    return fail(id, error);
  }
  if (!isPromise) {
    // Not at once: what the function left for later turns of the same queue comes before its answer.
    settled.then(() => succeed(id, result, atUs));
    return;
  }
  Promise.resolve(result).then(
    (resolved) => succeed(id, resolved, atUs),
    (error) => succeed(id, { error: error ? require('./serialize-error.cjs').serializeError(error) : {} }, atUs),
  );
}

const settled = Promise.resolve();

/**
 * Runs until what is called often is to be compiled sooner; 0: it is. Engines before Maglev wait for tens of thousands of
 * calls. A flag of the start would cost the start: the built-in modules' cached code is made without.
 */
let runsToCompile = compileSooner !== undefined && Number.parseInt(process.versions.v8, 10) < 12 ? 50 : 0;

function succeed(id, result, sinceUs) {
  cycles?.end();
  if (status === 'running') status = 'ready';
  if (typeof result !== 'object' && result !== undefined) {
    console.error(`Result must be of type object but has type "${typeof result}":`, result);
    return answerError(id, 'The action did not return a dictionary.');
  }
  let text;
  try {
    text = result === undefined ? '{}' : JSON.stringify(result);
  } catch (error) {
    return fail(id, error);
  }
  if (text === undefined || (text[0] !== '{' && text[0] !== '[')) {
    return answerError(id, `The action did not produce a valid JSON or JSON Array response: ${text}`);
  }
  if (runsToCompile > 0 && --runsToCompile === 0) compileSooner();
  answer(frameType.result, id, text, sinceUs);
}

function fail(id, error) {
  cycles?.end();
  status = 'stopped';
  console.error(require('./error-text.cjs').formatError(error));
  answerError(id, `An error has occurred: ${describe(error)}`);
}

/** String(error), also for what has no string form (such as an object without a prototype). */
function describe(error) {
  try {
    return String(error);
  } catch {
    return Object.prototype.toString.call(error);
  }
}

function hello(can) {
  const kind = `nodejs:${process.versions.node.split('.')[0]}`;
  return JSON.stringify({ version: 1, kind, pid: process.pid, ...can, codeFrames: true });
}

/** Writes hello before there is a channel. */
function writeHello() {
  const text = hello();
  const frame = Buffer.from(`\0\0\0\0\x01\0\0\0\0${text}`);
  frame.writeUInt32LE(text.length, 0);
  require('fs').writeSync(channelFd, frame);
}

function sayHello(can) {
  channel.queue(frameType.hello, 0, hello(can));
  channel.flush();
}

function takeRuns() {
  if (!allowConcurrent) channel.takeRuns?.(runOfChannel);
}

if (imports) require('./load-imports.cjs');
if (process.env.GPUWHISK_TOKENS_SOCKET !== undefined && !allowConcurrent) {
  cycles = require('./launch-cycles.cjs').launchCycles();
}
const scratchFolders = (process.env.GPUWHISK_SCRATCH ?? '').split(':').filter(Boolean);
delete process.env.GPUWHISK_PREWARM;
/** The packages that every action finds. */
const sharedFolder = process.env.NODE_PATH;
// Read by Node.js when it started; images of OpenWhisk do not have it.
delete process.env.NODE_PATH;
delete process.env.GPUWHISK_SCRATCH;
if (!isPrewarmer) {
  takeRuns();
  if (!greetsFirst) sayHello();
  loadAction = require('./load-action.cjs').loadAction; // Before the code comes.
} else {
  early = [];
  collect = require('./collector.cjs').exposeCollector();
  require('./prewarm.cjs')
    .prewarm(scratchFolders, collect)
    .then((unload) => {
      unloadAction = unload;
      takeRuns();
      sayHello({ unload: true });
      const frames = early;
      early = undefined;
      for (const frame of frames) onFrame(...frame);
    });
}

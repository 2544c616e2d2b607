'use strict';
// Runs executables as actions: speaks the framed protocol on file descriptor 3 and starts the action's program.
// Start: node main.cjs [path of the adm-zip package] [kind] executable
//        node main.cjs [path of the adm-zip package] [kind] loop [file for source] [command...]
//        node main.cjs [path of the adm-zip package] [kind] build-go [file for source] [go] [version of go]
//        node main.cjs [path of the adm-zip package] [kind] build-native [file for source] [C compiler] [C++ compiler]
const { openChannel, frameType, maxPayloadBytes } = require('../nodejs/channel.cjs');
const { IncomingCode } = require('../nodejs/incoming-code.cjs');
const { placeCode } = require('./place-code.cjs');

const [zipLibrary, kind, style, sourceFile = 'exec', ...command] = process.argv.slice(2);
const styles = {
  executable: () => require('./executable.cjs'),
  loop: () => require('./action-loop.cjs'),
  'build-go': () => require('../go/build.cjs'),
  'build-native': () => require('../native/build.cjs'),
};
const notBuilt = 'The action failed to generate or locate a binary. See logs for details.';

// A compiler runs as the same user and reads what the source includes, which could be this process's pipes.
if (process.env.GPUWHISK_CHANNEL !== undefined) {
  const addon = { exports: {} };
  process.dlopen(addon, process.env.GPUWHISK_CHANNEL);
  addon.exports.hide();
  delete process.env.GPUWHISK_CHANNEL;
}

let initialized = false;
/** An init whose code comes, or has come, in frames of its own. */
let incoming;
/** Set by init: `run(message, environment)` resolves with the text of the result or rejects with the error's text. */
let action;

const channel = openChannel(3, {
  onFrame,
  onEnd: () => process.exit(0),
  onViolation: violate,
});

function violate(message) {
  console.error(`Protocol violation: ${message}.`);
  process.exit(70);
}

/** Sends an answer and its log frame once everything printed so far is in the pipes. */
function answer(type, id, text) {
  const busy = [process.stdout, process.stderr].find((stream) => stream.writableLength > 0 && !stream.destroyed);
  if (busy) {
    busy.write('', () => answer(type, id, text));
    return;
  }
  if (Buffer.byteLength(text) > maxPayloadBytes) {
    answerError(id, `The action produced a response that is longer than ${maxPayloadBytes} bytes.`);
    return;
  }
  channel.queue(type, id, text);
  channel.queue(frameType.log, id, '{}');
  channel.flush();
}

function answerError(id, error) {
  answer(frameType.error, id, JSON.stringify({ error }));
}

function onFrame(type, id, text) {
  if (type === frameType.cancel) return; // The run goes on: its answer is dropped by the caller that cancelled it.
  if (type === frameType.bye) process.exit(0);
  if (![frameType.run, frameType.init, frameType.code].includes(type)) violate(`a frame of type ${type}`);
  let message;
  try {
    message = type === frameType.code ? incoming.take(id, text) : JSON.parse(text);
  } catch (error) {
    violate(error.message);
  }
  if (type !== frameType.run && message?.codeBytes > 0) incoming = new IncomingCode(id, message);
  // The rest of the code is yet to come.
  if (message === undefined || message.codeBytes > 0) return;
  const work = type === frameType.run ? run(message) : init(message);
  work.then(
    (result) => answer(frameType.result, id, result),
    (error) => answerError(id, typeof error === 'string' ? error : `Internal error. ${error}`),
  );
}

async function init(message) {
  if (initialized) throw 'Cannot initialize the action more than once.';
  initialized = true;
  Object.assign(process.env, message.env);
  const placed = message.code ? place(message) : undefined;
  action = await styles[style]().load({ placed, command, main: message.main });
  return '{"ok":true}';
}

function place(message) {
  try {
    return placeCode(message, { zipLibrary, sourceFile });
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    throw notBuilt;
  }
}

async function run(message) {
  if (!action) throw 'The action failed to locate a binary. See logs for details.';
  const environment = {};
  for (const [key, value] of Object.entries(message)) {
    if (key !== 'value' && typeof value === 'string') environment[`__OW_${key.toUpperCase()}`] = value;
  }
  return requireResult(await action.run(message, environment));
}

/** The line that the action gave, if it is an object or an array. */
function requireResult(line) {
  try {
    const result = JSON.parse(line);
    if (typeof result === 'object' && result !== null) return line;
  } catch {
    // Not JSON: refused below, as anything else is.
  }
  if (line !== '') console.log(line.length > 1000 ? `${line.slice(0, 1000)}...` : line);
  throw 'The action did not return a dictionary or array.';
}

channel.queue(frameType.hello, 0, JSON.stringify({ version: 1, kind, codeFrames: true }));
channel.flush();

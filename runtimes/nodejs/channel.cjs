'use strict';
// Frames over a connected socket. See docs/runtime-protocol.md.
const fs = require('fs');

const headerBytes = 9;
const maxPayloadBytes = 64 * 1024 * 1024;
/** Frame types of the protocol. */
const frameType = {
  hello: 1,
  init: 2,
  run: 3,
  result: 4,
  error: 5,
  log: 6,
  cancel: 7,
  bye: 8,
  unload: 9,
  check: 10,
  code: 14,
  size: 15,
};

// A function is called now and then, by a process whose memory has left the processor's caches meanwhile and whose code
// was hardly compiled: what counts is how little of it runs for a frame. Hence views instead of Buffer's checked methods.
const viewOf = (bytes) => new DataView(bytes.buffer, bytes.byteOffset, bytes.length);

function writeHeader(view, at, payloadBytes, type, id) {
  view.setUint32(at, payloadBytes, true);
  view.setUint8(at + 4, type);
  view.setUint32(at + 5, id, true);
}

/**
 * Opens `fd`. Calls `onFrame(type, id, text, atUs, rest)` for every frame that arrives (with a Buffer as `text` of a code frame), `onEnd()` when the peer is gone and
 * `onViolation(message)` when what it sends is not the protocol. `atUs` is when the frame came, in microseconds of a clock
 * of the channel's own; a run may come in two texts, its value and, in `rest`, the object of all else. Frames are queued
 * with `queue(type, id, text)`; `flush()` sends all of them in one write. `answer(type, id, text, sinceUs, send)` queues a
 * frame with its log frame, which says how long it took since `sinceUs` if that is a number, and sends them if it is to.
 *
 * By the addon at `addonPath` where it can be loaded (native/channel), else by Node's own streams. The addon also has
 * `takeRuns(onRun)`: `onRun(id, text)` gets the value of each run that comes while none is under way. Its id, time and body
 * stay in the addon: `answerRun(text)` sends its result and log frame, `takeBody()` returns the text of the object of all else.
 * `compileSooner()` has the engine compile what is called often sooner.
 */
function openChannel(fd, handlers, addonPath) {
  if (addonPath !== undefined) {
    const addon = { exports: {} };
    try {
      process.dlopen(addon, addonPath);
    } catch (error) {
      console.error(`Frames go by Node's streams: ${error.message}`);
      return openStream(fd, handlers);
    }
    const { open, ...channel } = addon.exports;
    open(fd, handlers.onFrame, handlers.onEnd, handlers.onViolation);
    return channel;
  }
  return openStream(fd, handlers);
}

function nowUs() {
  // Not performance.now(): its first use in a process loads what takes milliseconds.
  const now = process.hrtime();
  return now[0] * 1e6 + now[1] / 1e3;
}

function openStream(fd, { onFrame, onEnd, onViolation }) {
  const net = require('net');
  let held = [];
  let heldBytes = 0;
  let neededBytes = headerBytes;

  const buffer = Buffer.allocUnsafeSlow(65536);
  const view = viewOf(buffer);

  /** Takes what almost always comes, one whole frame, without more ado. */
  function receive(bytesRead) {
    if (heldBytes === 0 && bytesRead >= headerBytes && view.getUint32(0, true) === bytesRead - headerBytes) {
      const type = view.getUint8(4);
      const isText = type !== frameType.code;
      const payload = isText
        ? buffer.utf8Slice(headerBytes, bytesRead)
        : Buffer.from(buffer.subarray(headerBytes, bytesRead));
      onFrame(type, view.getUint32(5, true), payload, nowUs());
      return true;
    }
    return receivePart(buffer.subarray(0, bytesRead), bytesRead);
  }

  function receivePart(part, bytesRead) {
    let data = part;
    if (heldBytes > 0) {
      held.push(heldBytes + bytesRead < neededBytes ? Buffer.from(data) : data);
      heldBytes += bytesRead;
      if (heldBytes < neededBytes) return true;
      data = Buffer.concat(held, heldBytes);
      held = [];
      heldBytes = 0;
    }
    let at = 0;
    neededBytes = headerBytes;
    while (data.length - at >= headerBytes) {
      const payloadBytes = data.readUInt32LE(at);
      if (payloadBytes > maxPayloadBytes) {
        onViolation(`a frame of ${payloadBytes} bytes is longer than ${maxPayloadBytes}`);
        return false;
      }
      neededBytes = headerBytes + payloadBytes;
      if (data.length - at < neededBytes) break;
      const [type, from, to] = [data[at + 4], at + headerBytes, at + neededBytes];
      const payload = type === frameType.code ? Buffer.from(data.subarray(from, to)) : data.toString('utf8', from, to);
      onFrame(type, data.readUInt32LE(at + 5), payload, nowUs());
      at += neededBytes;
      neededBytes = headerBytes;
    }
    if (at < data.length) {
      held = [Buffer.from(data.subarray(at))];
      heldBytes = data.length - at;
    }
    return true;
  }

  const socket = new net.Socket({ fd, onread: { buffer, callback: receive } });
  socket.on('end', onEnd);
  socket.on('error', onEnd);
  socket.on('close', onEnd);
  socket.resume();

  const batch = Buffer.allocUnsafeSlow(65536);
  const batchView = viewOf(batch);
  let batchBytes = 0;
  let backlogged = false;

  function transmit(bytes, length) {
    let sent = 0;
    if (!backlogged) {
      try {
        sent = fs.writeSync(fd, bytes, 0, length);
      } catch (error) {
        if (error.code !== 'EAGAIN') return onEnd();
      }
    }
    if (sent === length) return;
    backlogged = true;
    socket.write(Buffer.from(bytes.subarray(sent, length)), () => {
      backlogged = socket.writableLength > 0;
    });
  }

  function flush() {
    if (batchBytes === 0) return;
    const length = batchBytes;
    batchBytes = 0;
    transmit(batch, length);
  }

  function queue(type, id, text) {
    // No UTF-16 unit takes more than three bytes of UTF-8.
    const mostBytes = headerBytes + text.length * 3;
    if (mostBytes > batch.length - batchBytes) flush();
    if (mostBytes > batch.length) {
      const frame = Buffer.allocUnsafe(headerBytes + Buffer.byteLength(text));
      writeHeader(viewOf(frame), 0, frame.length - headerBytes, type, id);
      frame.write(text, headerBytes);
      transmit(frame, frame.length);
      return;
    }
    const payloadBytes = batch.utf8Write(text, batchBytes + headerBytes);
    writeHeader(batchView, batchBytes, payloadBytes, type, id);
    batchBytes += headerBytes + payloadBytes;
  }

  function answer(type, id, text, sinceUs, send) {
    queue(type, id, text);
    queue(frameType.log, id, sinceUs === undefined ? '{}' : `{"us":${Math.round(nowUs() - sinceUs)}}`);
    if (send) flush();
  }

  return { queue, answer, flush };
}

module.exports = { openChannel, frameType, maxPayloadBytes };

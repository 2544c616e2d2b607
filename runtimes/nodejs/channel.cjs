'use strict';
// Frames over a connected socket. See docs/runtime-protocol.md.
const fs = require('fs');
const net = require('net');

const headerBytes = 9;
const maxPayloadBytes = 64 * 1024 * 1024;
/** Frame types of the protocol. */
const frameType = { hello: 1, init: 2, run: 3, result: 4, error: 5, log: 6, cancel: 7, bye: 8, unload: 9, check: 10 };

function writeHeader(bytes, at, payloadBytes, type, id) {
  bytes.writeUInt32LE(payloadBytes, at);
  bytes[at + 4] = type;
  bytes.writeUInt32LE(id, at + 5);
}

/**
 * Opens `fd`. Calls `onFrame(type, id, text)` for every frame that arrives, `onEnd()` when the peer is gone and
 * `onViolation(message)` when what it sends is not the protocol. Frames are queued with `queue`; `flush` sends
 * all of them in one write.
 */
function openChannel(fd, { onFrame, onEnd, onViolation }) {
  let held = [];
  let heldBytes = 0;
  let neededBytes = headerBytes;

  function receive(bytesRead, buffer) {
    let data = buffer.subarray(0, bytesRead);
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
      const payload = at + headerBytes;
      onFrame(data[at + 4], data.readUInt32LE(at + 5), data.toString('utf8', payload, at + neededBytes));
      at += neededBytes;
      neededBytes = headerBytes;
    }
    if (at < data.length) {
      held = [Buffer.from(data.subarray(at))];
      heldBytes = data.length - at;
    }
    return true;
  }

  const socket = new net.Socket({ fd, onread: { buffer: Buffer.allocUnsafeSlow(65536), callback: receive } });
  socket.on('end', onEnd);
  socket.on('error', onEnd);
  socket.on('close', onEnd);
  socket.resume();

  const batch = Buffer.allocUnsafeSlow(65536);
  let batchBytes = 0;
  let backlogged = false;

  function transmit(bytes) {
    let sent = 0;
    if (!backlogged) {
      try {
        sent = fs.writeSync(fd, bytes);
      } catch (error) {
        if (error.code !== 'EAGAIN') return onEnd();
      }
    }
    if (sent === bytes.length) return;
    backlogged = true;
    socket.write(Buffer.from(bytes.subarray(sent)), () => {
      backlogged = socket.writableLength > 0;
    });
  }

  function flush() {
    if (batchBytes === 0) return;
    const bytes = batch.subarray(0, batchBytes);
    batchBytes = 0;
    transmit(bytes);
  }

  function queue(type, id, text) {
    // No UTF-16 unit takes more than three bytes of UTF-8.
    const mostBytes = headerBytes + text.length * 3;
    if (mostBytes > batch.length - batchBytes) flush();
    if (mostBytes > batch.length) {
      const frame = Buffer.allocUnsafe(headerBytes + Buffer.byteLength(text));
      writeHeader(frame, 0, frame.length - headerBytes, type, id);
      frame.write(text, headerBytes);
      transmit(frame);
      return;
    }
    const payloadBytes = batch.write(text, batchBytes + headerBytes);
    writeHeader(batch, batchBytes, payloadBytes, type, id);
    batchBytes += headerBytes + payloadBytes;
  }

  return { queue, flush };
}

module.exports = { openChannel, frameType, maxPayloadBytes };

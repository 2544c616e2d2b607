// A function's process of floor.mjs: each frame on descriptor 3 is a length, 4 bytes, and JSON; so is each answer.
import { readSync, writeSync } from 'node:fs';

const channel = 3;
const headerBytes = 4;
// More than any body of a bench.
const input = Buffer.allocUnsafe(64 * 1024);

async function main() {
  return {};
}

for (let filled = 0; ;) {
  const count = readSync(channel, input, filled, input.length - filled, null);
  if (count === 0) break;
  filled += count;
  if (filled < headerBytes || filled < headerBytes + input.readUInt32LE(0)) continue;
  const parameters = JSON.parse(input.toString('utf8', headerBytes, filled));
  filled = 0;
  const result = JSON.stringify(await main(parameters));
  const output = Buffer.allocUnsafe(headerBytes + Buffer.byteLength(result));
  output.writeUInt32LE(output.length - headerBytes);
  output.write(result, headerBytes);
  writeSync(channel, output);
}

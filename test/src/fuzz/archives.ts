import { crc32, deflateRawSync } from 'node:zlib';
import type { Random } from '@gpuwhisk/common/system/random';
import { badText, chance, pick } from './bad-values.js';

/** File names, most of which an archive should not have. */
const names = [
  'index.js',
  'package.json',
  '__main__.py',
  '../../x',
  '/etc/x',
  'a/../../b',
  'a\\..\\b',
  'x'.repeat(300),
  '',
];

/** A zip of some entries; more often than not, fields, lengths, names or bytes are wrong. */
export function badZip(random: Random): Buffer {
  const locals: Buffer[] = [];
  const central: Buffer[] = [];
  let offset = 0;
  const count = random.uint32() % 4;
  for (let at = 0; at < count; at++) {
    const name = Buffer.from(chance(random, 0.2) ? badText(random).slice(0, 500) : pick(random, names));
    const text = Buffer.from(chance(random, 0.5) ? 'exports.main = () => ({});' : badText(random));
    const stored = chance(random, 0.5);
    const data = stored ? text : deflateRawSync(text);
    const size = chance(random, 0.1) ? random.uint32() : text.length;
    const sum = chance(random, 0.1) ? random.uint32() : crc32(text);
    const method = chance(random, 0.1) ? random.uint32() % 100 : stored ? 0 : 8;
    const shared = Buffer.alloc(26);
    shared.writeUInt16LE(20, 0);
    shared.writeUInt16LE(method, 4);
    shared.writeUInt32LE(sum, 10);
    shared.writeUInt32LE(chance(random, 0.1) ? random.uint32() : data.length, 14);
    shared.writeUInt32LE(size, 18);
    shared.writeUInt16LE(name.length, 22);
    const local = Buffer.concat([Buffer.from('PK\x03\x04', 'latin1'), shared, name, data]);
    const tail = Buffer.alloc(14);
    // The upper half of the mode: a plain file, a link, a device.
    tail.writeUInt32LE((pick(random, [0o100644, 0o120777, 0o020666, 0]) << 16) >>> 0, 6);
    tail.writeUInt32LE(chance(random, 0.1) ? random.uint32() : offset, 10);
    central.push(Buffer.concat([Buffer.from('PK\x01\x02\x14\x03', 'latin1'), shared, tail, name]));
    locals.push(local);
    offset += local.length;
  }
  const directory = Buffer.concat(central);
  const end = Buffer.alloc(22);
  end.write('PK\x05\x06', 'latin1');
  end.writeUInt16LE(chance(random, 0.1) ? random.uint32() % 65_536 : count, 8);
  end.writeUInt16LE(count, 10);
  end.writeUInt32LE(directory.length, 12);
  end.writeUInt32LE(offset, 16);
  const whole = Buffer.concat([...locals, directory, end]);
  if (chance(random, 0.2)) return whole.subarray(0, random.uint32() % whole.length);
  for (let flips = random.uint32() % 3; flips > 0; flips--)
    whole[random.uint32() % whole.length] = random.uint32() % 256;
  return whole;
}

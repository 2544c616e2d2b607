// Written so that every Node release can parse it: its one purpose is a clear line on those that are too old. The scripts of
// package.json have it loaded first (-r), since what is old enough does not even parse the program that would load it.
// 20.19.4 is what the client of Kafka needs; 22 has crc32 in node:zlib from 22.2 on, 21 has none.
var version = process.versions.node.split('.').map(Number);
var isNewer20 = version[0] === 20 && (version[1] > 19 || (version[1] === 19 && version[2] >= 4));
var isNewer22 = version[0] > 22 || (version[0] === 22 && version[1] >= 2);
if (!isNewer20 && !isNewer22) {
  console.error('gpuwhisk needs Node.js 20.19.4, 22.2 or newer; this is ' + process.version + '.');
  process.exit(1);
}

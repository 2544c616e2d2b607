// Written so that every Node release can parse it: its one purpose is a clear line on those that are too old. The scripts of
// package.json have it loaded first (-r), since what is old enough does not even parse the program that would load it.
// The releases are those with crc32 in node:zlib.
var version = process.versions.node.split('.').map(Number);
var isSupported = version[0] > 22 || (version[0] === 22 && version[1] >= 2) || (version[0] === 20 && version[1] >= 15);
if (!isSupported) {
  console.error('gpuwhisk needs Node.js 20.15, 22.2 or newer; this is ' + process.version + '.');
  process.exit(1);
}

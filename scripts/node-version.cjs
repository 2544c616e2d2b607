// Written so that every Node release can parse it: its one purpose is a clear line on those that are too old. The scripts of
// package.json have it loaded first (-r), since what is old enough does not even parse the program that would load it.
if (Number(process.versions.node.split('.')[0]) < 20) {
  console.error('gpuwhisk needs Node.js 20 or newer; this is ' + process.version + '.');
  process.exit(1);
}

// Ends the process with a clear line on a release of Node.js that gpuwhisk does not run on: one by which a file of scripts/ or
// bin/ was run directly, and not by scripts/node. Written so that every release can parse it.
var version = process.versions.node.split('.').map(Number);
var isNewer22 = version[0] === 22 && version[1] >= 22;
var isNewer24 = version[0] > 24 || (version[0] === 24 && version[1] >= 6);
// As the client of Kafka.
if (!isNewer22 && !isNewer24) {
  console.error(require('./own-node.cjs').needs + ' Use scripts/node in place of node, which fetches Node.js 24.');
  process.exit(1);
}

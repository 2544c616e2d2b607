'use strict';
const fs = require('fs');
const { extractArchive } = require('../nodejs/extract-archive.cjs');

const executable = 0o755;

function isArchive(bytes) {
  const magic = bytes.toString('hex', 0, 4);
  return magic === '504b0304' || magic.startsWith('1f8b08');
}

function isProgram(bytes) {
  return bytes.toString('hex', 0, 4) === '7f454c46' || bytes.toString('latin1', 0, 2) === '#!';
}

/**
 * Puts the code of an init message into the current folder, and says what it is: an extracted `archive`, a `program`
 * in the file `exec`, or `source` in `sourceFile`. A file `exec` is made executable. Throws what is wrong with an archive.
 */
function placeCode({ code, binary }, { zipLibrary, sourceFile }) {
  const bytes = typeof code === 'string' ? Buffer.from(code, binary ? 'base64' : 'utf8') : code;
  if (isArchive(bytes)) {
    extractArchive(bytes, process.cwd(), zipLibrary);
    if (fs.existsSync('exec')) fs.chmodSync('exec', executable);
    return 'archive';
  }
  if (isProgram(bytes)) {
    fs.writeFileSync('exec', bytes, { mode: executable });
    return 'program';
  }
  // Source whose characters and length happen to be those of base64.
  fs.writeFileSync(sourceFile, typeof code === 'string' ? code : code.toString('base64'), { mode: executable });
  return 'source';
}

module.exports = { placeCode };

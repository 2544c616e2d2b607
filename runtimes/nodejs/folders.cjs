'use strict';
// The folders that an action can fill: what is in them now stays, what comes later is the action's.
const fs = require('fs');
const path = require('path');

/**
 * Notes what is in `working` and the `others`; returns a function that removes what came since, links themselves and
 * not what they point at. Throws for a working folder with files in it.
 */
function keepFolders(working, others) {
  // Whose the files are is not known, and they would be removed.
  if (fs.readdirSync(working).length > 0) throw new Error('The working folder of a pre-warmer must be empty.');
  const folders = [working, ...others].map((folder) => ({ folder, own: new Set(fs.readdirSync(folder)) }));
  return function emptyFolders() {
    for (const { folder, own } of folders) {
      for (const name of fs.readdirSync(folder)) if (!own.has(name)) remove(path.join(folder, name));
    }
  };
}

function remove(entry) {
  if (!fs.lstatSync(entry).isDirectory()) return fs.unlinkSync(entry);
  try {
    for (const name of fs.readdirSync(entry)) remove(path.join(entry, name));
  } catch (error) {
    if (error.code !== 'EACCES') throw error;
    // Its owner is who runs this: the action took its own rights away.
    fs.chmodSync(entry, 0o700);
    for (const name of fs.readdirSync(entry)) remove(path.join(entry, name));
  }
  return fs.rmdirSync(entry);
}

module.exports = { keepFolders };

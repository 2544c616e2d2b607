'use strict';
const fs = require('fs');
const path = require('path');

const fileTypeBits = 0o170000;
const symbolicLink = 0o120000;

/** Extracts a zip or tar.gz archive into `folder`. Throws a text as OpenWhisk's runtime gives it. */
function extractArchive(archive, folder, zipLibrary) {
  const magic = archive.toString('hex', 0, 4);
  if (magic === '504b0304') extractZip(archive, folder, zipLibrary);
  else if (magic.startsWith('1f8b08')) extractTarGz(archive, folder);
  else throw 'There was an error uncompressing the action archive. The file type is unsupported';
}

function extractZip(archive, folder, zipLibrary) {
  try {
    const AdmZip = require(zipLibrary ?? 'adm-zip');
    for (const entry of new AdmZip(archive).getEntries()) extractEntry(entry, folder);
  } catch (error) {
    console.error(error.message);
    throw 'There was an error uncompressing the action Zip archive.';
  }
}

function extractEntry(entry, folder) {
  const target = path.join(folder, entry.entryName);
  if (!target.startsWith(folder + path.sep)) throw new Error(`'${entry.entryName}' lies outside the archive.`);
  if (entry.isDirectory) {
    fs.mkdirSync(target, { recursive: true });
    return;
  }
  fs.mkdirSync(path.dirname(target), { recursive: true });
  const mode = entry.attr >>> 16;
  const data = entry.getData();
  if ((mode & fileTypeBits) === symbolicLink) fs.symlinkSync(data.toString(), target);
  else fs.writeFileSync(target, data, { mode: mode & 0o777 ? (mode & 0o777) | 0o600 : 0o644 });
}

function extractTarGz(archive, folder) {
  const { spawnSync } = require('child_process');
  const tar = spawnSync('tar', ['-xzf', '-', '-C', folder], { input: archive, stdio: ['pipe', 'ignore', 'inherit'] });
  if (tar.error) console.error(tar.error);
  if (tar.error || tar.status !== 0) throw 'There was an error uncompressing the action Tar GZ archive.';
}

module.exports = { extractArchive };

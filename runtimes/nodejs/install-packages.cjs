'use strict';
// Runs npm in the sandbox of an installation, and tells an error of it in one line. Words: npm's script, its words.
const { spawnSync } = require('child_process');

const maxOutputBytes = 64 * 1024 * 1024;
/** Codes of connections that failed. */
const ofConnection =
  /^(ENOTFOUND|EAI_|ECONN|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ERR_SOCKET|CERT_|UNABLE_TO_|SELF_SIGNED)/;

const words = [...process.argv.slice(2), '--json', '--loglevel=silent'];
const npm = spawnSync(process.execPath, words, { stdio: ['ignore', 'pipe', 'inherit'], maxBuffer: maxOutputBytes });
if (npm.error) throw npm.error;
if (npm.status !== 0) {
  console.error(`npm error ${tellError(npm.stdout.toString())}`);
  process.exit(1);
}

/** The code and the first words of the error that npm tells as JSON. */
function tellError(output) {
  const { code, summary, detail } = errorIn(output);
  if (code === undefined) return `it ended with ${npm.status ?? npm.signal}`;
  if (ofConnection.test(code)) return `${code} the registry of packages cannot be reached`;
  if (code === 'E401' || code === 'E403')
    return `${code} the registry of packages refuses the platform's token or password`;
  // Which package is not there stands in the detail.
  const lines = `${code === 'E404' ? detail : summary}`.split('\n').map((line) => line.trim());
  const told = lines.filter((line) => line !== '').slice(0, 2);
  return `${code} ${told.join(' ').replace(/https?:\/\/\S+/g, 'the registry')}`;
}

function errorIn(output) {
  try {
    return JSON.parse(output.slice(output.indexOf('{'))).error ?? {};
  } catch {
    return {};
  }
}

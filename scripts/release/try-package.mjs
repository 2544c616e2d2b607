// node scripts/release/try-package.mjs ROOT PACKAGE...: installs a release's packages (.deb, .rpm or .tar.gz), one after the other, into a
// copy of a root file system that has neither compiler nor network, and calls a function after each. Prints the times, s. Needs root and
// overlay mounts; ROOT, which debootstrap makes, stays as it is.
import { spawn, spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { run } from './run.mjs';

const stepMs = 300_000;

/** Runs inside, as root of the copy: $1 is the package. Its lines "TIME name seconds" are the measurements. */
const script = `
set -e
mount -t proc proc /proc
mount -t sysfs sysfs /sys || true
mount -t tmpfs tmpfs /tmp
for compiler in cc gcc clang c++ g++; do ! command -v $compiler > /dev/null || { echo "a compiler is there: $compiler"; exit 1; }; done
now() { read -r seconds _ < /proc/uptime; echo "$seconds"; }
spent() { echo "TIME $1 $(awk "BEGIN { print $(now) - $2 }")"; }
began=$(now)
case "$1" in
  *.deb) dpkg -i "/$1" ;;
  *.rpm) rpm --install --nodeps "/$1" ;;
  *.tar.gz) mkdir -p /opt && tar -xzf "/$1" -C /opt && ln -sf /opt/gpuwhisk-*/bin/* /usr/bin/ && mkdir -p /etc/gpuwhisk && echo '{}' > /etc/gpuwhisk/gpuwhisk.json ;;
esac
spent install $began
installed=$(now)
mkdir -p -m 700 /var/lib/gpuwhisk
gpuwhisk serve --config /etc/gpuwhisk/gpuwhisk.json --data /var/lib/gpuwhisk > /tmp/log 2>&1 &
server=$!
for try in $(seq 600); do grep -q 'Ctrl-C stops' /tmp/log && break; kill -0 $server 2> /dev/null || break; sleep 0.1; done
grep -q 'Ctrl-C stops' /tmp/log || { cat /tmp/log; exit 1; }
spent serves $installed
auth=$(sed -n 's/.*--auth \\([^ ]*\\) action create.*/\\1/p' /tmp/log)
whisk="wsk --apihost http://127.0.0.1:3233 --auth $auth"
echo 'exports.main = ({ name }) => ({ greeting: "Hello " + name })' > /tmp/hello.js
$whisk action update hello /tmp/hello.js
$whisk action invoke hello --result --param name you | grep -q 'Hello you'
spent firstFunction $installed
grep 'note:' /tmp/log || true
kill $server
wait $server
`;

function inCopy(root, name) {
  const inside = ['chroot', root, 'sh', '-c', script, 'sh', name];
  // The new namespace of the network has a loopback only. A minimal root has no program to raise it.
  const command = `ip link set lo up && mount --make-rprivate / && mount --rbind /dev ${root}/dev && exec "$@"`;
  const args = ['--net', '--mount', '--pid', '--fork', '--kill-child', 'sh', '-c', command, 'sh', ...inside];
  return new Promise((done) => {
    const child = spawn('unshare', args, { stdio: ['ignore', 'pipe', 'pipe'], timeout: stepMs });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (part) => (output += part));
    child.on('close', (status) => done({ status, output }));
  });
}

const [given, ...files] = process.argv.slice(2);
if (given === undefined || files.length === 0 || !existsSync(given)) {
  console.error('Usage: node scripts/release/try-package.mjs ROOT PACKAGE...');
  process.exit(2);
}
const scratch = mkdtempSync(join(tmpdir(), 'gpuwhisk-try-'));
const at = (name) => join(scratch, name);
for (const name of ['upper', 'work', 'root']) mkdirSync(at(name));
run('mount', [
  '-t',
  'overlay',
  'overlay',
  '-o',
  `lowerdir=${resolve(given)},upperdir=${at('upper')},workdir=${at('work')}`,
  at('root'),
]);
try {
  for (const file of files) {
    const name = basename(file);
    copyFileSync(file, join(at('root'), name));
    const { status, output } = await inCopy(at('root'), name);
    const times = Object.fromEntries(
      [...output.matchAll(/^TIME (\w+) ([\d.]+)$/gm)].map(([, what, s]) => [what, Number(s)]),
    );
    if (status === 0)
      console.log(JSON.stringify({ package: name, ...times, notes: output.match(/^ *note: .*$/gm) ?? [] }));
    else {
      console.error(`${name} failed with ${status}:\n${output.slice(-4000)}`);
      process.exitCode = 1;
      break;
    }
  }
} finally {
  spawnSync('umount', ['-l', at('root')], { timeout: 30_000 });
  rmSync(scratch, { recursive: true, force: true });
}

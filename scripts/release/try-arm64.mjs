// node scripts/release/try-arm64.mjs IMAGE: boots a release's image for arm64 (`npm run release -- --arch arm64 --only image`) with Debian's
// kernel in an emulated machine, and calls a function there. Prints the times, s. Needs root, apt, dpkg, mkfs.ext4 and qemu-system-aarch64;
// takes minutes, as every instruction is emulated.
import { spawn } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { download } from './image.mjs';
import { run } from './run.mjs';

const bootMs = 1_500_000;
const diskMiB = 3072;
/** Modules of the kernel: for the disk, and for the network of functions. */
const forDisk = ['virtio_mmio', 'virtio_blk', 'crc32c_generic', 'ext4'];
const forFunctions = ['veth', 'nf_tables', 'nft_ct', 'nft_reject_inet', 'nft_chain_nat', 'nft_masq', 'nft_connlimit'];

/** The first program: loads the modules, and continues with the program /sbin/try of the disk. */
const first = `#!/bin/busybox sh
/bin/busybox mount -t devtmpfs dev /dev
for module in $(/bin/busybox cat /modules); do /bin/busybox insmod /$module.ko || echo "$module is not loaded"; done
/bin/busybox mount -t ext4 /dev/vda /root && exec /bin/busybox switch_root /root /sbin/try
`;

/** Runs as the only program of the machine. Its lines "TIME name seconds" are the measurements. */
const script = `#!/bin/sh
/sbin/busybox mkdir -p /opt/busybox
/sbin/busybox --install -s /opt/busybox
export PATH=/usr/sbin:/usr/bin:/sbin:/bin:/opt/busybox HOME=/root LANG=C.UTF-8
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t tmpfs tmpfs /tmp
mount -t tmpfs tmpfs /run
ip link set lo up
now() { read -r seconds _ < /proc/uptime; echo "$seconds"; }
began=$(now)
echo "TIME boot $began $began"
mkdir -p -m 700 /var/lib/gpuwhisk
gpuwhisk serve --data /var/lib/gpuwhisk > /tmp/log 2>&1 &
server=$!
while ! grep -q 'Ctrl-C stops' /tmp/log && kill -0 $server 2> /dev/null; do sleep 1; done
cat /tmp/log
echo "TIME serves $(now) $began"
auth=$(sed -n 's/.*--auth \\([^ ]*\\) action create.*/\\1/p' /tmp/log)
whisk="wsk --apihost http://127.0.0.1:3233 --auth $auth"
echo 'exports.main = ({ name }) => ({ greeting: "Hello " + name, processor: process.arch })' > /tmp/hello.js
$whisk action update hello /tmp/hello.js
$whisk action invoke hello --result --param name you > /tmp/told
cat /tmp/told
if grep -q 'Hello you' /tmp/told && grep -q arm64 /tmp/told; then echo "TIME firstFunction $(now) $began"; fi
kill $server
wait $server
echo "ENDED $?"
sync
echo o > /proc/sysrq-trigger
sleep 60
`;

/** The paths of these modules and of those that they need, which come first, by their names. */
function modulesFor(names, folder) {
  const files = readdirSync(folder, { recursive: true }).filter((path) => path.endsWith('.ko'));
  const paths = new Map(files.map((path) => [basename(path, '.ko').replaceAll('-', '_'), join(folder, path)]));
  const found = new Map();
  const add = (name) => {
    const path = paths.get(name);
    // It may be a part of the kernel itself.
    if (path === undefined || found.has(name)) return;
    const [, needs] = /\0depends=([^\0]*)\0/.exec(readFileSync(path, 'latin1')) ?? [];
    for (const each of (needs ?? '').split(',')) add(each.replaceAll('-', '_'));
    found.set(name, path);
  };
  names.forEach(add);
  return found;
}

const directoryMode = 0o40755;
const programMode = 0o100755;

/** A file system as the kernel takes one at its start (cpio, "newc"), of the files by their paths and of empty folders. */
function initialFiles(files, folders) {
  const padded = (bytes) => Buffer.concat([bytes, Buffer.alloc(-bytes.length & 3)]);
  const entry = (path, mode, content) => {
    const fields = [0, mode, 0, 0, 1, 0, content.length, 0, 0, 0, 0, path.length + 1, 0];
    const head = `070701${fields.map((field) => field.toString(16).padStart(8, '0')).join('')}${path}\0`;
    return Buffer.concat([padded(Buffer.from(head)), padded(content)]);
  };
  return Buffer.concat([
    ...folders.map((path) => entry(path, directoryMode, Buffer.alloc(0))),
    ...Object.entries(files).map(([path, content]) => entry(path, programMode, Buffer.from(content))),
    entry('TRAILER!!!', 0, Buffer.alloc(0)),
  ]);
}

/** Writes kernel, first files and disk into `folder`. */
function prepare(image, folder) {
  const at = (...names) => join(folder, ...names);
  for (const name of ['root', 'kernel']) mkdirSync(at(name));
  // The kernel's package has its version in its name, which the other one depends on.
  for (const path of download('arm64', folder, ['linux-image-arm64', 'busybox-static']))
    if (/linux-image|busybox/.test(basename(path))) run('dpkg-deb', ['-x', path, at('kernel')]);
  const [kernel] = readdirSync(at('kernel', 'boot')).filter((name) => name.startsWith('vmlinuz'));
  copyFileSync(at('kernel', 'boot', kernel), at('vmlinuz'));
  const modules = modulesFor([...forDisk, ...forFunctions], at('kernel', 'lib', 'modules'));
  const loaded = Object.fromEntries([...modules].map(([name, path]) => [`${name}.ko`, readFileSync(path)]));
  const files = {
    ...{ init: first, modules: [...modules.keys()].join('\n'), ...loaded },
    'bin/busybox': readFileSync(at('kernel', 'bin', 'busybox')),
  };
  writeFileSync(at('initial'), initialFiles(files, ['bin', 'dev', 'root']));
  run('tar', ['-xzf', image, '-C', at('root')]);
  for (const name of ['proc', 'sys', 'dev', 'tmp', 'run', 'root']) mkdirSync(at('root', name), { recursive: true });
  copyFileSync(at('kernel', 'bin', 'busybox'), at('root', 'sbin', 'busybox'));
  writeFileSync(at('root', 'sbin', 'try'), script, { mode: 0o755 });
  run('truncate', ['-s', `${diskMiB}M`, at('disk')]);
  run('mkfs.ext4', ['-q', '-d', at('root'), at('disk')]);
}

/** Starts the machine; resolves with what it printed, once it is off. */
function boot(folder) {
  const at = (name) => join(folder, name);
  const words = [
    '-M',
    'virt',
    '-cpu',
    'cortex-a72',
    '-smp',
    '2',
    '-m',
    '3072',
    '-nographic',
    '-no-reboot',
    '-nic',
    'none',
  ];
  const disk = [
    '-drive',
    `file=${at('disk')},format=raw,if=none,id=disk,cache=unsafe`,
    '-device',
    'virtio-blk-device,drive=disk',
  ];
  const kernel = ['-kernel', at('vmlinuz'), '-initrd', at('initial'), '-append', 'console=ttyAMA0 quiet panic=-1'];
  return new Promise((done, fail) => {
    const child = spawn('qemu-system-aarch64', [...words, ...disk, ...kernel], {
      stdio: ['ignore', 'pipe', 'inherit'],
      timeout: bootMs,
    });
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (part) => {
      output += part;
      process.stderr.write(part);
    });
    child.once('error', fail);
    child.once('close', () => done(output));
  });
}

const [image] = process.argv.slice(2);
if (image === undefined || !existsSync(image)) {
  console.error('Usage: node scripts/release/try-arm64.mjs IMAGE');
  process.exit(2);
}
const folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-arm64-'));
try {
  prepare(image, folder);
  const output = await boot(folder);
  const times = [...output.matchAll(/^TIME (\w+) ([\d.]+) ([\d.]+)/gm)].map(([, name, at, began]) => [
    name,
    Number(name === 'boot' ? at : (at - began).toFixed(1)),
  ]);
  const told = Object.fromEntries(times);
  console.log(JSON.stringify(told));
  if (told.firstFunction === undefined || !/^ENDED 0/m.test(output)) process.exitCode = 1;
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}

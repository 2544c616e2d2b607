// A machine with systemd: a container that sees this machine's files below a writable layer, which is removed at its
// end.
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { randomInt } from 'node:crypto';
import { until } from '../support/running-platform.js';

const bootMs = 60_000;
const commandMs = 60_000;
/** Units that this machine may have enabled, and that must not start in the container. */
const unwanted = ['postgresql', 'docker', 'docker.socket', 'containerd', 'redis-server', 'nginx', 'prometheus'];

export interface Machine {
  address: string;
  /** Path of a program that runs a command on the machine; Ansible uses the program in place of ssh. */
  ssh: string;
  /** Runs a command on the machine and returns its output; throws if the command fails. */
  run(command: string): string;
  /** Starts a process on the machine that keeps running. */
  start(args: readonly string[]): ChildProcess;
  stop(): Promise<void>;
}

function call(program: string, args: readonly string[]): string {
  const { status, stdout, stderr, error } = spawnSync(program, args, { encoding: 'utf8', timeout: commandMs });
  if (status !== 0) throw new Error(`${program} ${args.join(' ')}: ${error?.message ?? stderr}`);
  return stdout;
}

/** Starts a machine; throws if the kernel or missing programs prevent it. */
export async function startMachine(): Promise<Machine> {
  const name = `gw${randomInt(1e8)}`;
  const folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-machine-'));
  const path = (part: string) => join(folder, part);
  const undo: (() => void)[] = [() => rmSync(folder, { recursive: true, force: true })];
  let container: ChildProcess | undefined;
  /** PID of the machine's first process, with which all others end; empty if there is none yet. */
  const first = () => {
    const pid = container?.pid ?? 0;
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ')[0] ?? '';
  };
  const end = async () => {
    if (container?.exitCode === null) {
      const ended = new Promise((resolve) => container?.once('exit', resolve));
      if (first() === '') container.kill('SIGKILL');
      else process.kill(Number(first()), 'SIGKILL');
      await ended;
    }
    for (const step of undo.reverse()) step();
  };
  try {
    for (const part of ['layer', 'root']) mkdirSync(path(part));
    call('mount', ['-t', 'tmpfs', '-o', 'size=6g', 'tmpfs', path('layer')]);
    undo.push(() => call('umount', ['-l', path('layer')]));
    for (const part of ['layer/upper', 'layer/work']) mkdirSync(path(part));
    const layers = `lowerdir=/,upperdir=${path('layer/upper')},workdir=${path('layer/work')}`;
    call('mount', ['-t', 'overlay', 'overlay', '-o', layers, path('root')]);
    undo.push(() => call('umount', ['-l', path('root')]));
    writeFileSync(path('root/etc/machine-id'), '');
    for (const unit of unwanted) {
      rmSync(path(`root/etc/systemd/system/multi-user.target.wants/${unit}.service`), { force: true });
    }

    const second = randomInt(1, 250);
    const third = randomInt(1, 250);
    const [here, address] = [1, 2].map((last) => `10.${second}.${third}.${last}`) as [string, string];
    const args = ['--quiet', '--keep-unit', '--register=no', `--directory=${path('root')}`, `--machine=${name}`];
    // Injection needs Landlock, whose system calls systemd-nspawn does not allow by default.
    args.push('--system-call-filter=landlock_create_ruleset landlock_add_rule landlock_restrict_self');
    container = spawn('systemd-nspawn', [...args, '--network-veth', '--boot', 'systemd.unit=multi-user.target'], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let printed = '';
    for (const stream of [container.stdout, container.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => (printed = (printed + text).slice(-4000)));
    }
    const inside = () => ['--target', first(), '--all', '--root', '--wd'];
    const state = () => spawnSync('nsenter', [...inside(), 'systemctl', 'is-system-running'], { encoding: 'utf8' });
    await until(
      'its systemd has started',
      () => {
        if (container?.exitCode !== null) throw new Error(`systemd-nspawn ended: ${printed}`);
        return /running|degraded/.test(first() === '' ? '' : state().stdout);
      },
      bootMs,
    );
    // systemd-nspawn gives the interfaces these names, and removes them with the container.
    for (const step of [`addr add ${here}/24 dev ve-${name}`, `link set ve-${name} up`]) call('ip', step.split(' '));
    for (const step of [`addr add ${address}/24 dev host0`, 'link set host0 up', `route add default via ${here}`]) {
      call('nsenter', ['--target', first(), '--net', 'ip', ...step.split(' ')]);
    }

    const ssh = path('ssh');
    const environment = ['env', '-i', 'HOME=/root', `PATH=${process.env.PATH ?? ''}`];
    // Ansible passes the command as ssh's last argument.
    const enter = ['exec', 'nsenter', ...inside(), ...environment, 'sh', '-c', '"$command"'].join(' ');
    writeFileSync(ssh, `#!/bin/sh\nfor command; do :; done\n${enter}\n`);
    chmodSync(ssh, 0o755);
    return {
      address,
      ssh,
      run: (command) => call('nsenter', [...inside(), ...environment, 'sh', '-c', command]),
      start: (args) => spawn('nsenter', [...inside(), ...environment, ...args], { stdio: ['pipe', 'pipe', 'inherit'] }),
      stop: end,
    };
  } catch (error) {
    await end();
    throw error;
  }
}

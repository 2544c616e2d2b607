import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runProgram } from '@gpuwhisk/invoker/host/programs';

const folder = fileURLToPath(new URL('../../../native/build/cudasim', import.meta.url));
const readyWithinMs = 20_000;

/** The stand-in's files. */
export const standIn = {
  folder,
  daemon: join(folder, 'daemon'),
  nvml: join(folder, 'libnvidia-ml.so.1'),
  mpsControl: join(folder, 'nvidia-cuda-mps-control'),
};

/** A running daemon of the stand-in, in a folder of its own. */
export interface StandIn {
  /** Folder of the daemon's socket and of other temporary files. */
  folder: string;
  socket: string;
  pid: number;
  /** Makes a device fail. `kind` and `xid` are those of native/cudasim/wire.h; `pid` 0 is the running client. */
  fault(device: number, kind: keyof typeof faultKinds, xid?: number, pid?: number): Promise<void>;
  close(): Promise<void>;
}

const faultKinds = { client: 1, xid: 2, lost: 3, ecc: 4, recover: 5, clocks: 6 } as const;

/** Says hello and requests a fault (gwsim_hello, gwsim_fault); exits with 1 if the daemon refuses. */
const faultProgram = `
import socket, struct, sys
path, operation, device, kind, xid, pid = sys.argv[1], *map(int, sys.argv[2:])
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.settimeout(10)
s.connect(path)
def call(number, operation, body):
    s.send(struct.pack('=IIiI', operation, number, 0, len(body)) + body)
    return struct.unpack('=IIiI', s.recv(65536)[:16])[2]
if call(1, 1, struct.pack('=II', 1, 0)) != 0: sys.exit('no hello')
status = call(2, operation, struct.pack('=IIQi4x', device, kind, xid, pid))
if status != 0: sys.exit('refused: ' + str(status))
`;
/** The number of an operation, by its place in the enumeration of native/cudasim/wire.h. */
function operationNumber(name: string): number {
  const wire = readFileSync(fileURLToPath(new URL('../../../native/cudasim/wire.h', import.meta.url)), 'utf8');
  const [, body = ''] = /enum gwsim_operation \{([^}]*)\}/.exec(wire) ?? [];
  const at = [...body.matchAll(/^ {2}(GWSIM_\w+)/gm)].findIndex((match) => match[1] === name);
  if (at < 0) throw new Error(`${name} is no operation of the stand-in.`);
  return at + 1;
}

function untilReady(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('The stand-in is not ready.')), readyWithinMs);
    child.stdout?.once('data', () => {
      clearTimeout(timer);
      resolve();
    });
    child.once('exit', (code) => reject(new Error(`The stand-in ended with ${code}.`)));
  });
}

/** Starts a daemon for GPUs as `--gpus` names them: `a100-40x2,h100x1`. */
export async function startStandIn(gpus: string, args: readonly string[] = []): Promise<StandIn> {
  const home = mkdtempSync(join(tmpdir(), 'gpuwhisk-sim-'));
  const socket = join(home, 'sim');
  const child = spawn(standIn.daemon, ['--socket', socket, '--gpus', gpus, ...args], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  await untilReady(child);
  return {
    folder: home,
    socket,
    pid: child.pid as number,
    async fault(device, kind, xid = 0, pid = 0) {
      const numbers = [operationNumber('GWSIM_FAULT'), device, faultKinds[kind], xid, pid].map(String);
      await runProgram('python3', ['-c', faultProgram, socket, ...numbers], { timeoutMs: 20_000 });
    },
    async close() {
      child.stdin?.end();
      await ended;
      rmSync(home, { recursive: true, force: true });
    },
  };
}

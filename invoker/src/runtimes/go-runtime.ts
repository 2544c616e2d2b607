import { join } from 'node:path';
import AdmZip from 'adm-zip';
import type { Go } from './find-toolchains.js';
import { goEnv, goMinor } from './go-packages.js';
import { buildLaunch, loopLaunch } from './proxy-runtime.js';
import type { BuildStep, RuntimeLaunch } from '../containers/runtime-launch.js';

/** Of the sandbox that compiles: the linker takes most of it. */
const buildMemoryMiB = 1024;
const elfMagic = '7f454c46';

/** How to start Go actions: compiled in a sandbox of its own first, unless the code is a program already. */
export function goLaunch(runtimesDir: string, node: string, folder: string, go: Go): RuntimeLaunch {
  const kind = `go:${goMinor(go)}`;
  const builder = buildLaunch(runtimesDir, node, {
    kind,
    style: 'build-go',
    sourceFile: 'exec__.go',
    command: [join(go.root, 'bin', 'go'), goMinor(go)],
    needs: [go.root, folder, join(runtimesDir, 'go')],
  });
  const proxy = process.env.GOPROXY;
  const env = { ...goEnv(folder), GOMODCACHE: '/tmp/modules', ...(proxy === undefined ? {} : { GOPROXY: proxy }) };
  const build: BuildStep = {
    needs: ({ code, binary }) => !binary || !isProgram(Buffer.from(code, 'base64')),
    key: folder,
    launch: { ...builder, env },
    memoryMiB: buildMemoryMiB,
  };
  return { ...loopLaunch(runtimesDir, node, { kind, sourceFile: 'exec', command: [], needs: [] }), build };
}

/** An executable, or a zip with the executable `exec` and no sources. */
function isProgram(bytes: Buffer): boolean {
  if (bytes.toString('hex', 0, 4) === elfMagic) return true;
  try {
    const names = new AdmZip(bytes).getEntries().map((entry) => entry.entryName);
    return names.includes('exec') && !names.some((name) => name.endsWith('.go'));
  } catch {
    return false; // No zip: what it is, the build says.
  }
}

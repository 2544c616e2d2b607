import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { systemClock } from '@gpuwhisk/common/system/clock';
import type { ContainerFactory, StartReport } from '@gpuwhisk/invoker/containers/container-factory';
import { createMsContainerFactory } from '@gpuwhisk/invoker/containers/mscontainer/mscontainer-factory';
import { createProcessFactory } from '@gpuwhisk/invoker/containers/process/process-factory';
import type {
  ProcessContainerFactory,
  ProcessFactoryOptions,
} from '@gpuwhisk/invoker/containers/process/process-factory';
import type { RuntimeCatalog, RuntimeLaunch, RunJob } from '@gpuwhisk/invoker/containers/runtime-launch';
import { kind } from './container-calls.js';
import { noEngineTimers, writeGuestProgram } from './guest-program.js';
import { writeHttpGuestProgram } from './http-guest-program.js';

/** The kind whose guest speaks HTTP. */
export const httpKind = 'http:1';

/** Whether this process is root: most isolation measures are at their strictest only then. */
export const isRoot = process.getuid?.() === 0;

/** Path of the built launcher. */
export const launcherPath = fileURLToPath(new URL('../../../native/build/sandbox', import.meta.url));

/** Whether the launcher is built (Linux with a C compiler). */
export const hasLauncher = existsSync(launcherPath);

/** A container factory with its own folders. */
export interface ProcessHarness {
  factory: ContainerFactory;
  /** The factory that starts processes: `factory` itself, or the one that `factory` is built on. */
  processes: ProcessContainerFactory;
  catalog: RuntimeCatalog;
  /** Runs a job as the factory does. */
  runJob: RunJob;
  /** The platform's data folder. */
  dataDir: string;
  /** The result of start(). */
  report: StartReport;
  close(): Promise<void>;
}

/** Path of Node.js in a sandbox. Its own may be below /tmp, which a sandbox has of its own. */
const nodeInside = '/opt/node';

function catalogOf(folder: string): RuntimeCatalog {
  writeGuestProgram(join(folder, 'guest.mjs'));
  writeHttpGuestProgram(join(folder, 'http-guest.mjs'));
  const launchOf = (name: string, protocol: RuntimeLaunch['protocol'], pair?: RuntimeLaunch): RuntimeLaunch => ({
    command: [nodeInside, noEngineTimers, `/opt/guest/${name}`],
    binds: [
      { source: folder, target: '/opt/guest' },
      { source: process.execPath, target: nodeInside },
    ],
    env: {},
    protocol,
    ...(pair && { pair }),
  });
  const launches: Record<string, RuntimeLaunch> = {
    [kind]: launchOf('guest.mjs', 'framed', launchOf('guest.mjs', 'framed')),
    [httpKind]: launchOf('http-guest.mjs', 'http'),
  };
  return {
    manifest: { runtimes: {} },
    notes: [],
    supports: (wanted) => wanted in launches,
    launch: (wanted) => {
      const launch = launches[wanted];
      return launch ? Promise.resolve(launch) : Promise.reject(new Error(`There is no kind '${wanted}'.`));
    },
  };
}

type HarnessOptions = Partial<ProcessFactoryOptions> & { guestsDir?: string };

/** Like openProcessFactory, with an mscontainer factory that makes pairs even if a job waits. */
export function openMsContainerFactory(options: HarnessOptions = {}): Promise<ProcessHarness> {
  return openProcessFactory(options, (processes, catalog) => {
    const factory = createMsContainerFactory({ processes, catalog });
    return { ...factory, create: (wanted) => factory.prewarm(wanted) };
  });
}

/**
 * Opens a process factory over the test guests. For root, its folders are in the home folder, which is closed to other
 * users (mode 0700): binds from there must work.
 */
export async function openProcessFactory(
  options: HarnessOptions = {},
  factoryOver: (processes: ProcessContainerFactory, catalog: RuntimeCatalog) => ContainerFactory = (same) => same,
): Promise<ProcessHarness> {
  const base = isRoot ? homedir() : tmpdir();
  const guests = options.guestsDir ?? mkdtempSync(join(base, '.gpuwhisk-guests-'));
  mkdirSync(guests, { recursive: true });
  // Bound folders keep their modes, and functions run as other users.
  chmodSync(guests, 0o755);
  const dataDir = options.dataDir ?? mkdtempSync(join(base, '.gpuwhisk-data-'));
  const taken: { run?: RunJob } = {};
  const catalog = { ...catalogOf(guests), useSandboxes: (run: RunJob) => void (taken.run = run) };
  const processes = createProcessFactory({
    catalog,
    clock: systemClock,
    actionNetwork: false,
    ...options,
    dataDir,
  });
  const factory = factoryOver(processes, catalog);
  const report = await factory.start();
  return {
    factory,
    processes,
    catalog,
    runJob: (job) => taken.run?.(job) ?? Promise.reject(new Error('The factory has not started.')),
    dataDir,
    report,
    async close() {
      await factory.close();
      rmSync(guests, { recursive: true, force: true });
      if (options.dataDir === undefined) rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

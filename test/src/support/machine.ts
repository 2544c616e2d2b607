import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findTool } from '@gpuwhisk/invoker/host/programs';
import { findPython } from '@gpuwhisk/invoker/runtimes/find-toolchains';

const scratch = mkdtempSync(join(tmpdir(), 'gpuwhisk-machine-'));

/** Whether this machine has a Python that actions can run in. */
export const hasPython = (await findPython(join(scratch, 'python.json'))) !== undefined;
rmSync(scratch, { recursive: true, force: true });

/** Whether the machine has sandboxes at all: the launcher requires a C compiler. */
export const hasLauncher = existsSync(fileURLToPath(new URL('../../../native/build/sandbox', import.meta.url)));

/** The reason if functions do not run in sandboxes with every measure here; undefined if they do. */
export const isolationLack = !hasLauncher
  ? 'the sandbox launcher is not built'
  : process.getuid?.() !== 0
    ? 'full isolation needs root'
    : undefined;

/** The reason if functions have no network here; undefined if they have one. */
export const networkLack =
  isolationLack ?? (((await findTool('nft')) ?? (await findTool('iptables'))) ? undefined : 'no nft and no iptables');

/** The kinds of this machine by their family's default name. */
export const kinds = ['nodejs:default', ...(hasPython ? ['python:default'] : [])] as const;

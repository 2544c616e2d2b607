// Paths of what native/build.mjs builds.
import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isComing } from './behind.js';

/** The folder of the installation, or of the clone. */
export const installationFolder = dirname(fileURLToPath(new URL('../../../package.json', import.meta.url)));

/** The path of a file that native/build.mjs builds. The file is absent without a compiler or on an unsupported processor. */
export const builtPath = (name: string): string =>
  fileURLToPath(new URL(`../../../native/build/${name}`, import.meta.url));

/** The program of the native pre-warmer. */
export const nativePrewarmerPath = builtPath('prewarmer');

/** The resident code that a Python pre-warmer's interpreter loads. */
export const residentLibrary = builtPath('resident.so');

/** The program that becomes the copy of a pre-warmer, if it was built. */
export const restorerPath = builtPath('restorer');

/** Whether that program is built, or will be before the proxy is, without which it is not used. */
export const hasRestorer = (): boolean => existsSync(restorerPath) || isComing('injection');

/** The Python runtime's end of its socket. */
export const pythonChannel = builtPath('python-channel.so');

/** The proxy that serves one pre-warmer as a runtime of the framed protocol: `proxy KIND PREWARMER [ARGUMENT]...`. */
export const proxyPath = builtPath('proxy');

/** The sandbox launcher. */
export const launcherPath = builtPath('sandbox');

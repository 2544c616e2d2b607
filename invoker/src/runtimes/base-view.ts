import { sep } from 'node:path';
import type { Bind } from '../containers/runtime-launch.js';

/** Folders of the host that every sandbox sees. */
const baseView = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64'];

/** Whether `path` is `folder` or lies below it. */
export function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep);
}

/** Binds at the same path inside for what a sandbox does not see anyway, without those that another one holds. */
export function bindsFor(paths: readonly string[]): Bind[] {
  const missing = [...new Set(paths)].filter((path) => !baseView.some((folder) => isWithin(path, folder)));
  return missing
    .filter((path) => !missing.some((other) => other !== path && isWithin(path, other)))
    .map((path) => ({ source: path, target: path }));
}

import { access } from 'node:fs/promises';
import { isAbsolute } from 'node:path';
import type { RuntimeEntry } from '@gpuwhisk/common/runtimes';
import { bindsFor } from './base-view.js';
import type { RuntimeLaunch } from '../containers/runtime-launch.js';

/** How to start a server of `/init` and `/run` that the manifest gives as a command. It sees the files that its words name. */
export async function commandLaunch({ command, binds, env }: RuntimeEntry): Promise<RuntimeLaunch> {
  const words = command ?? [];
  const named: string[] = [];
  for (const word of words.filter((each) => isAbsolute(each))) {
    const found = await access(word).then(
      () => true,
      () => false,
    );
    if (found) named.push(word);
  }
  return { command: words, binds: bindsFor([...named, ...(binds ?? [])]), env: env ?? {}, protocol: 'http' };
}

import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** A process that a stage has left. */
export interface LeftOver {
  pid: number;
  command: string;
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return ''; // It has ended, or belongs to the kernel.
  }
}

function folderOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
}

/** Processes whose environment, command line or working folder names the folder `work`, without this process. */
export function leftOversOf(work: string): LeftOver[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((name) => {
      const from = `/proc/${name}`;
      return [textOf(`${from}/cmdline`), textOf(`${from}/environ`), folderOf(`${from}/cwd`)].some((text) =>
        text.includes(work),
      );
    })
    .map((name) => ({
      pid: Number(name),
      command: textOf(`/proc/${name}/cmdline`).replaceAll('\0', ' ').trim().slice(0, 120),
    }));
}

/** Ends processes at once. Those that have ended meanwhile are ignored. */
export function endAll(processes: readonly LeftOver[]): void {
  for (const { pid } of processes) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }
}

import { writeFileSync } from 'node:fs';

/** Names this thread, of at most 15 characters, for tools that list threads, such as top -H. Does nothing on other systems than Linux. */
export function nameThread(name: string): void {
  if (process.platform === 'linux') writeFileSync('/proc/thread-self/comm', name);
}

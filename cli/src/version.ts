import { readFileSync } from 'node:fs';

/** The CLI's version, from its package.json. */
export function cliVersion(): string {
  const text = readFileSync(new URL('../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}

const goArchitectures: Record<string, string> = { x64: 'amd64', ia32: '386' };

/** The User-Agent that wsk sends; operating system and processor have the names that Go gives them. */
export function userAgent(): string {
  const os = process.platform === 'win32' ? 'windows' : process.platform;
  return `OpenWhisk-CLI/1.0 (${cliVersion()}) ${os} ${goArchitectures[process.arch] ?? process.arch}`;
}

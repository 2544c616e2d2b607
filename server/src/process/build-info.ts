import { readFileSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** Which build of the platform runs. */
interface BuildInfo {
  /** Day of the sources in UTC, `YYYY-MM-DD`. */
  date: string;
  /** Version of the package. */
  number: string;
}

/** Written by scripts/build.mjs from the commit or SOURCE_DATE_EPOCH. */
const buildFile = fileURLToPath(new URL('../build.json', import.meta.url));
const packageFile = fileURLToPath(new URL('../../package.json', import.meta.url));

/** The running build. Where build.json is missing, the day is that of its compilation. */
export function readBuildInfo(): BuildInfo {
  return { date: writtenDate() ?? compiledDate(), number: packageVersion() };
}

function writtenDate(): string | undefined {
  try {
    return (JSON.parse(readFileSync(buildFile, 'utf8')) as { date: string }).date;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    return undefined;
  }
}

function compiledDate(): string {
  return statSync(fileURLToPath(import.meta.url))
    .mtime.toISOString()
    .slice(0, 10);
}

function packageVersion(): string {
  return (JSON.parse(readFileSync(packageFile, 'utf8')) as { version: string }).version;
}

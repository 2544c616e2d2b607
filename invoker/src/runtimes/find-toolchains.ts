import { readFile, realpath } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { findOnPath } from '../host/run-program.js';

/** A Java development kit of the machine. */
export interface Jdk {
  /** Holds `bin/java` and `bin/javac`. */
  home: string;
  /** Such as 17. */
  major: number;
  /** Such as `17.0.15`. */
  version: string;
}

/** A Go toolchain of the machine. */
export interface Go {
  /** GOROOT; holds `bin/go`. */
  root: string;
  /** Such as `1.22.3`. */
  version: string;
}

const oldestJdk = 17;

/** The JDK that the `javac` on PATH belongs to, if it is 17 or newer. Starts no program. */
export async function findJdk(path: string): Promise<Jdk | undefined> {
  for (const javac of await findOnPath('javac', path)) {
    const home = dirname(dirname(javac));
    const release = await readFile(join(home, 'release'), 'utf8').catch(() => '');
    const version = /^JAVA_VERSION="([\d.]+)/m.exec(release)?.[1] ?? '';
    const major = Number(version.split('.')[0]);
    if (major >= oldestJdk) return { home, major, version };
  }
  return undefined;
}

/** The Go toolchain that the `go` on PATH belongs to. Starts no program. */
export async function findGo(path: string): Promise<Go | undefined> {
  for (const program of await findOnPath('go', path)) {
    const root = dirname(dirname(program));
    const text = await readFile(join(root, 'VERSION'), 'utf8').catch(() => '');
    const version = /^go(1\.\d+(?:\.\d+)?)/.exec(text)?.[1];
    if (version !== undefined) return { root: await realpath(root), version };
  }
  return undefined;
}

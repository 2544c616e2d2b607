import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { nativePrewarmerPath } from '@gpuwhisk/invoker/host/native-programs';
import {
  loadInjector,
  type CallOptions,
  type InjectOptions,
  type LaunchedPrewarmer,
  type InjectionOutcome,
} from './inject-addon.js';

/** The addon; undefined if the machine could not build it. */
export const injector = loadInjector();

const compileTimeoutMs = 60_000;

/** Compiles C source into a shared object and returns its bytes; throws an error with the compiler's output. */
export function compileObject(source: string, flags: string[] = ['-fPIC', '-shared']): Buffer {
  const folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-native-'));
  try {
    const file = join(folder, 'function.c');
    const object = join(folder, 'function.so');
    writeFileSync(file, source);
    const run = spawnSync('cc', ['-O1', '-fno-omit-frame-pointer', '-o', object, file, ...flags], {
      encoding: 'utf8',
      cwd: folder,
      timeout: compileTimeoutMs,
    });
    if (run.status !== 0) throw new Error(`cc: ${run.error?.message ?? run.stderr}`);
    return readFileSync(object);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

export const digestOf = (code: Buffer): string => createHash('sha256').update(code).digest('hex');

/** Returns `{"got":...,"count":...}`: its argument, and how often this copy of the function was called. */
export const echoSource = `
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int count;
const char *gpuwhisk_main(const char *json) {
  size_t size = strlen(json) + 64;
  char *text = malloc(size);
  snprintf(text, size, "{\\"got\\":%s,\\"count\\":%d}", json, ++count);
  return text;
}
void gpuwhisk_free(char *text) { free(text); }
`;

/** A pre-warmer under test. */
export class TestPrewarmer {
  private constructor(private launched: LaunchedPrewarmer) {}

  static async launch(environment: string[] = [], args: string[] = []): Promise<TestPrewarmer> {
    if (!injector) throw new Error('The addon was not built.');
    const options = {
      program: nativePrewarmerPath,
      environment: ['PATH=/usr/bin:/bin', ...environment],
      arguments: args,
    };
    return new TestPrewarmer(await injector.launch(options));
  }

  get details(): LaunchedPrewarmer {
    return this.launched;
  }

  /** Loads `code` and calls it with `argument`. */
  run(
    code: Buffer,
    argument: unknown = {},
    options: Partial<InjectOptions> = {},
    timeoutMs = 20_000,
  ): Promise<InjectionOutcome> {
    const first = { argument: JSON.stringify(argument), timeoutMs };
    return injector!.inject(this.launched.target, code, { digest: digestOf(code), first, ...options });
  }

  call(argument: unknown, options: Partial<CallOptions> = {}): Promise<InjectionOutcome> {
    return injector!.call(this.launched.target, { argument: JSON.stringify(argument), timeoutMs: 20_000, ...options });
  }

  unload(): Promise<InjectionOutcome> {
    return injector!.unload(this.launched.target);
  }

  end(): Promise<void> {
    return injector!.end(this.launched.target);
  }

  /** The state that must be the same before and after: mappings, descriptors, threads, signal handling. */
  state(): unknown {
    const folder = `/proc/${this.launched.pid}`;
    const status = readFileSync(`${folder}/status`, 'utf8');
    return {
      maps: readFileSync(`${folder}/maps`, 'utf8'),
      descriptors: list(`${folder}/fd`),
      // The flags show whether reads and writes wait, too.
      flags: readdirSync(`${folder}/fdinfo`).map(
        (name) => /flags:\s*(\d+)/.exec(read(`${folder}/fdinfo/${name}`))?.[1],
      ),
      threads: list(`${folder}/task`),
      signals: status.split('\n').filter((line) => /^(SigIgn|SigCgt|SigPnd|ShdPnd|Threads)/.test(line)),
    };
  }
}

const read = (path: string): string => readFileSync(path, 'utf8');

function list(folder: string): string {
  return spawnSync('ls', [folder], { encoding: 'utf8', timeout: 10_000 }).stdout;
}

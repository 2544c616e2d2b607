import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from '@jest/globals';
import { runWsk } from '../cli/wsk-process.js';
import type { WskResult } from '../cli/wsk-process.js';
import type { Trial } from './trial.js';

/** Exit codes of `wsk`: own error, wrong usage, no connection, and an HTTP status of 4xx minus 256. */
export const exits = {
  error: 1,
  misuse: 2,
  network: 3,
  badRequest: 400 - 256,
  unauthorized: 401 - 256,
  forbidden: 403 - 256,
  notFound: 404 - 256,
  notAllowed: 405 - 256,
  conflict: 409 - 256,
} as const;

/** Kinds of entities in commands of `wsk`, and their collections in the API. */
const collections = { action: 'actions', package: 'packages', trigger: 'triggers', rule: 'rules' } as const;

const hello = `function main(params) {
  console.log('hello', params.payload + '!');
  return { payload: 'hello, ' + params.payload + '!' };
}
`;

/** A home folder for runs of `wsk`; its `.wskprops` has the host and the key of the trial's user. */
export class WskShell {
  private constructor(
    readonly trial: Trial,
    /** The home folder, removed after the case. */
    readonly home: string,
  ) {}

  /** Opens a shell. `properties`: lines of `.wskprops`; default: host and key. `hello.js` greets `payload`. */
  static async open(trial: Trial, properties?: Record<string, string>): Promise<WskShell> {
    const home = await mkdtemp(join(tmpdir(), 'wsk-conformance-'));
    trial.atEnd(() => rm(home, { recursive: true, force: true }));
    const { url, auth } = trial.user;
    const lines = Object.entries(properties ?? { APIHOST: url, AUTH: auth }).map(([key, value]) => `${key}=${value}\n`);
    const shell = new WskShell(trial, home);
    await shell.write('.wskprops', lines.join(''));
    await shell.write('hello.js', hello);
    return shell;
  }

  /** Writes a file in the home folder and returns its path. */
  async write(name: string, content: string | Buffer): Promise<string> {
    const path = join(this.home, name);
    await writeFile(path, content);
    return path;
  }

  /** Runs `wsk`; arguments given as one text are split at spaces. */
  run(args: string | readonly string[], environment: Record<string, string> = {}): Promise<WskResult> {
    return runWsk(typeof args === 'string' ? args.split(' ') : [...args], { directory: this.home, environment });
  }

  /** Runs `wsk`, expects success and returns its output. */
  async prints(args: string | readonly string[], environment?: Record<string, string>): Promise<string> {
    const result = await this.run(args, environment);
    expect({ args, ...result }).toMatchObject({ code: 0 });
    return result.stdout;
  }

  /** Runs `wsk`; expects exit code `code` and `text` in its standard error. */
  async fails(args: string | readonly string[], code: number, text: string | RegExp = ''): Promise<WskResult> {
    const result = await this.run(args);
    const stderr: unknown = typeof text === 'string' ? expect.stringContaining(text) : expect.stringMatching(text);
    expect({ args, ...result }).toMatchObject({ code, stderr });
    return result;
  }

  /** Creates an entity, returns its name and removes it after the case. A `rest` given as text is split at spaces. */
  async create(
    kind: keyof typeof collections,
    name: string,
    rest: string | readonly string[] = kind === 'action' ? 'hello.js' : [],
  ): Promise<string> {
    this.removes(kind, name);
    await this.prints([kind, 'create', name, ...(typeof rest === 'string' ? rest.split(' ') : rest)]);
    return name;
  }

  /** Removes an entity after the case if it exists. */
  removes(kind: keyof typeof collections, name: string): void {
    const path = name.split('/').map(encodeURIComponent).join('/');
    this.trial.removes(`${collections[kind]}/${path}`);
  }

  /** The output of `wsk ... get` below its first line, parsed as JSON. */
  async json<Body = Record<string, unknown>>(args: string | readonly string[]): Promise<Body> {
    const printed = await this.prints(args);
    return JSON.parse(printed.slice(printed.search(/^[[{"]/m))) as Body;
  }
}

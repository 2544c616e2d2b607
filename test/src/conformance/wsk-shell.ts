import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from '@jest/globals';
import { runWsk } from '../cli/wsk-process.js';
import type { WskResult } from '../cli/wsk-process.js';
import type { Trial } from './trial.js';

/** Exit codes of `wsk`: an error of its own, wrong usage, no connection, and an HTTP status of 4xx less 256. */
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

/** Kinds of entities as `wsk` names them, and their collections. */
const collections = { action: 'actions', package: 'packages', trigger: 'triggers', rule: 'rules' } as const;

const hello = `function main(params) {
  console.log('hello', params.payload + '!');
  return { payload: 'hello, ' + params.payload + '!' };
}
`;

/** A home folder in which `wsk` is run; its `.wskprops` has the host and the key of the trial's user. */
export class WskShell {
  private constructor(
    readonly trial: Trial,
    /** Removed after the case. */
    readonly home: string,
  ) {}

  /** `properties`: the lines of `.wskprops`; absent: host and key. `hello.js` greets `payload`. */
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

  /** Writes a file of the home folder and returns its path. */
  async write(name: string, content: string | Buffer): Promise<string> {
    const path = join(this.home, name);
    await writeFile(path, content);
    return path;
  }

  /** Runs `wsk`; a text is split at spaces. */
  run(args: string | readonly string[], environment: Record<string, string> = {}): Promise<WskResult> {
    return runWsk(typeof args === 'string' ? args.split(' ') : [...args], { directory: this.home, environment });
  }

  /** Runs `wsk`, expects that it succeeds, and returns what it prints. */
  async prints(args: string | readonly string[], environment?: Record<string, string>): Promise<string> {
    const result = await this.run(args, environment);
    expect({ args, ...result }).toMatchObject({ code: 0 });
    return result.stdout;
  }

  /** Runs `wsk`, and expects that it fails with `code` and has `text` on its standard error. */
  async fails(args: string | readonly string[], code: number, text: string | RegExp = ''): Promise<WskResult> {
    const result = await this.run(args);
    const stderr: unknown = typeof text === 'string' ? expect.stringContaining(text) : expect.stringMatching(text);
    expect({ args, ...result }).toMatchObject({ code, stderr });
    return result;
  }

  /** Creates an entity, which is removed after the case, and returns its name; `rest` is split at spaces if a text. */
  async create(
    kind: keyof typeof collections,
    name: string,
    rest: string | readonly string[] = kind === 'action' ? 'hello.js' : [],
  ): Promise<string> {
    this.removes(kind, name);
    await this.prints([kind, 'create', name, ...(typeof rest === 'string' ? rest.split(' ') : rest)]);
    return name;
  }

  /** Has an entity, if it is there, removed after the case. */
  removes(kind: keyof typeof collections, name: string): void {
    const path = name.split('/').map(encodeURIComponent).join('/');
    this.trial.removes(`${collections[kind]}/${path}`);
  }

  /** What `wsk ... get` prints below its first line, parsed. */
  async json<Body = Record<string, unknown>>(args: string | readonly string[]): Promise<Body> {
    const printed = await this.prints(args);
    return JSON.parse(printed.slice(printed.search(/^[[{"]/m))) as Body;
  }
}

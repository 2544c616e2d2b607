import { expect } from '@jest/globals';
import type { InitRequest } from '@gpuwhisk/invoker/containers/container-factory';
import type { RuntimeLaunch } from '@gpuwhisk/invoker/containers/runtime-launch';
import { RuntimeProcess } from './runtime-harness.js';

/** A piece of code, and the required answer of a runtime. */
export interface RuntimeCase {
  name: string;
  code: string;
  main?: string;
  entry?: string;
  binary?: boolean;
  env?: Record<string, string>;
  /** Parameters of the run; `{}` if absent. */
  value?: unknown;
  /** Whether the run is a batch of the requests in `value`, an array. */
  batch?: boolean;
  /** The error text of init; the code does not run then. */
  initError?: string | RegExp;
  /** The result of the run. */
  result?: unknown;
  /** The error text of the run. */
  runError?: string | RegExp;
  /** The exit status of the process, if it ends instead of answering. */
  exit?: number;
  stdout?: string | RegExp;
  stderr?: string | RegExp;
}

/** Starts a runtime, gives it the case's code, and checks all expectations of the case. */
export async function checkCase(launch: RuntimeLaunch, given: RuntimeCase): Promise<void> {
  const runtime = new RuntimeProcess(launch);
  try {
    await checkIn(runtime, given);
  } finally {
    await runtime.close();
  }
}

/** Checks cases in one pre-warmer, as long as it can unload them; then in a new one. */
export class InjectedCases {
  private runtime: RuntimeProcess | undefined;

  constructor(private readonly launch: () => RuntimeLaunch) {}

  /** Checks a case as checkCase does. */
  async check(given: RuntimeCase): Promise<void> {
    const runtime = (this.runtime ??= new RuntimeProcess(this.launch(), { GPUWHISK_PREWARM: 'true' }));
    runtime.stdout = runtime.stderr = '';
    let isBack = false;
    try {
      await checkIn(runtime, given);
      isBack = given.exit === undefined && !(await runtime.unload()).isError;
    } finally {
      if (!isBack) await this.close();
    }
  }

  async close(): Promise<void> {
    await this.runtime?.close();
    this.runtime = undefined;
  }
}

async function checkIn(runtime: RuntimeProcess, given: RuntimeCase): Promise<void> {
  const request: Partial<InitRequest> = {
    code: given.code,
    main: given.main ?? 'main',
    ...(given.entry !== undefined && { entry: given.entry }),
    binary: given.binary ?? false,
    env: given.env ?? {},
  };
  if (given.exit !== undefined) {
    const answers = runtime.init(request).then(() => runtime.run(given.value ?? {}));
    await expect(answers).rejects.toThrow('The runtime ended');
    expect(await runtime.exited).toBe(given.exit);
    checkText(runtime.stdout, given.stdout);
    checkText(runtime.stderr, given.stderr);
    return;
  }
  const loaded = await runtime.init(request);
  if (given.initError !== undefined) {
    expect(loaded.isError).toBe(true);
    checkError(loaded.body, given.initError);
    checkText(loaded.stderr, given.stderr);
    return;
  }
  expect(loaded.body).toMatchObject({ ok: true });
  const size = given.batch === true ? { batch: String((given.value as unknown[]).length) } : {};
  const answer = await runtime.run(given.value ?? {}, size);
  expect({ isError: answer.isError, body: answer.body }).toMatchObject({ isError: given.runError !== undefined });
  if (given.runError === undefined) expect(answer.body).toEqual(given.result);
  else checkError(answer.body, given.runError);
  checkText(answer.stdout, given.stdout);
  checkText(answer.stderr, given.stderr);
}

function checkError(body: unknown, wanted: string | RegExp): void {
  const { error } = body as { error: string };
  if (typeof wanted === 'string') expect(error).toBe(wanted);
  else expect(error).toMatch(wanted);
}

function checkText(text: string, wanted: string | RegExp | undefined): void {
  if (typeof wanted === 'string') expect(text).toBe(wanted);
  else if (wanted) expect(text).toMatch(wanted);
}

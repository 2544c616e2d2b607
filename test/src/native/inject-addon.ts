import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { CudaContextKept } from '@gpuwhisk/common/prewarmer';
import { digestError } from '@gpuwhisk/invoker/containers/protocol/frames';
import { builtPath } from '@gpuwhisk/invoker/host/native-programs';

/** Steps of pre-warmers with a CUDA context. */
type CudaStage = 'checkpoint device' | 'restore device' | 'reset device' | 'unload';

/** One step of an injection and its duration. */
export interface Stage {
  name: 'integrity' | 'attach' | 'checkpoint' | 'execute' | 'call' | 'restore' | 'verify' | 'detach' | CudaStage;
  us: number;
}

/** The outcome of an injection, a call or an unload. */
export interface InjectionOutcome {
  /**
   * `result`: success; `refused`: the function gave no answer that can be sent, and stays loaded. After the other kinds
   * the function is unloaded already: `load` (it could not be loaded, or gave no answer), `signal`, `exit`, `timeout`,
   * or `gone` (the process itself has ended).
   */
  kind: 'result' | 'refused' | 'load' | 'signal' | 'exit' | 'timeout' | 'gone';
  /** JSON text that a call returned. */
  result: string;
  /** Description of an outcome other than a result. */
  message: string;
  /** The function's own frames at a failure, innermost first. */
  trace: string[];
  stages: Stage[];
  /** Whether the pre-warmer can serve further functions. If not, it has been killed, and `replace` gives the reason. */
  ready: boolean;
  replace: string;
}

export interface LaunchOptions {
  /** Path of the pre-warmer's program. */
  program: string;
  arguments?: string[];
  /** All of its environment: NAME=value. */
  environment?: string[];
  /** Command of the process that calls the driver for checkpoints; absent: none is taken. */
  checkpoint?: string[];
  /** Descriptors that become its standard output and error; default 1 and 2. */
  output?: number;
  errors?: number;
  /** Time to become Ready; default 60,000. */
  timeoutMs?: number;
}

export interface CallOptions {
  /** JSON text, up to 8 MiB with the environment. */
  argument: string;
  /** NAME=value, set before the call. */
  environment?: string[];
  timeoutMs?: number;
}

export interface InjectOptions {
  /** SHA-256 of the code as it was registered, in lower-case hexadecimal. */
  digest: string;
  /** The function's name in the code; default `gpuwhisk_main`. */
  entry?: string;
  /** NAME=value, set before the code is loaded. */
  environment?: string[];
  /** Whether code must be a shared object; default true. */
  sharedObject?: boolean;
  loadTimeoutMs?: number;
  /** Limit of the function's data beyond the pre-warmer's own; default: no limit. */
  memoryMiB?: number;
  /** Folders, each with a slash at its end, whose files may be mapped as code; files of the system always may. */
  libraryFolders?: string[];
  /**
   * Lets the function make code at run time, which is never writable and executable at once. The pre-warmer is not used
   * again afterwards. Default false.
   */
  executableMemory?: boolean;
  /** Call that is made together with the injection. */
  first?: CallOptions;
}

/** Codes of errors: `digest` for code that differs from the registered code; for others see native/inject/failure.h. */
export type InjectFailureCode = 'not-ready' | 'gone' | 'digest' | 'payload' | 'policy' | 'unrestorable' | 'system';

/** The addon's handle of a pre-warmer. */
export type PrewarmerTarget = object;

export interface LaunchedPrewarmer {
  target: PrewarmerTarget;
  pid: number;
  /** Whether the kernel tracks the function's writes; otherwise pages are compared with a copy. */
  tracksWrites: boolean;
  /** Version of Landlock that confines the pre-warmer; 0 if this kernel has none. */
  landlock: number;
  /** How a CUDA context is kept from function to function; `none` without one. */
  cuda: CudaContextKept | 'none';
}

/**
 * Interface of native/addon. A promise is rejected if nothing was injected, or the pre-warmer is lost; the Error has an
 * `InjectFailureCode` as its `code`. A failure of the function is an outcome. Calls for one target run in order.
 */
export interface Injector {
  launch(options: LaunchOptions): Promise<LaunchedPrewarmer>;
  inject(target: PrewarmerTarget, payload: Buffer, options: InjectOptions): Promise<InjectionOutcome>;
  call(target: PrewarmerTarget, options: CallOptions): Promise<InjectionOutcome>;
  unload(target: PrewarmerTarget): Promise<InjectionOutcome>;
  /** Kills the pre-warmer. */
  end(target: PrewarmerTarget): Promise<void>;
}

/** Loads the addon; undefined if it was not built (no C++ compiler, another processor, not Linux). */
export function loadInjector(): Injector | undefined {
  const path = builtPath('inject.node');
  if (!existsSync(path)) return undefined;
  const addon = createRequire(import.meta.url)(path) as Injector;
  return {
    ...addon,
    async inject(target, payload, options) {
      const wrong = digestError(payload, options.digest);
      if (wrong !== undefined) throw Object.assign(new Error(wrong), { code: 'digest' satisfies InjectFailureCode });
      return addon.inject(target, payload, options);
    },
  };
}

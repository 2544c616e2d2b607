// Types for actions of gpuwhisk in JavaScript and TypeScript. In a .js file beside this one:
//
//   /** @type {import('./gpuwhisk').Action<{ name?: string }, { greeting: string }>} */
//   function main({ name = 'you' }) {
//     return { greeting: `hello ${name}` };
//   }

/** A value that JSON can hold. */
export type JsonValue = null | boolean | number | string | JsonValue[] | { [name: string]: JsonValue };

/** The result of a run that failed: the caller gets its text. */
export interface Failure {
  error: JsonValue;
}

/** A result: an object or a list. */
export type Result = { [name: string]: unknown } | unknown[];

/** The function of an action: gets the parameters of the action and the call, returns the result or a promise of it. */
export type Action<Parameters = { [name: string]: unknown }, Value extends Result | void = Result> = (
  parameters: Parameters,
) => Value | Failure | Promise<Value | Failure>;

/** Parameters of a web action, besides those of the caller. */
export interface WebParameters {
  __ow_method: 'get' | 'post' | 'put' | 'delete' | 'patch' | 'head' | 'options';
  __ow_headers: { [name: string]: string };
  /** The rest of the path behind the action's name. */
  __ow_path: string;
  /** The caller's namespace, if the action requires one. */
  __ow_user?: string;
  /** The body, of a raw HTTP web action, or one that is no JSON object. */
  __ow_body?: string;
  /** The query, of a raw HTTP web action. */
  __ow_query?: string;
}

/** The answer of a web action that is called with .http. */
export interface WebAnswer {
  statusCode?: number;
  headers?: { [name: string]: string | number | boolean | string[] };
  /** Text; base64 of binary content; or a JSON value. */
  body?: JsonValue;
}

/** Annotation `gpu`. */
export interface GpuAnnotation {
  /** Device memory, MiB. */
  memoryMiB: number;
  /** Longest time from acceptance to result, ms; absent: best effort. */
  sloMs?: number;
  /** Default `inference`. */
  class?: 'inference' | 'training' | 'compute';
  /** Requests that may run as one, at most; default 1. */
  batch?: number;
  /** Devices that it needs; default 1. */
  gpus?: number;
  /** Devices of one node that its memory may be split over, at most. */
  spans?: number;
  /** Name of the model, which functions with the same one share profiles by. */
  model?: string;
  /** Figures of the function, by name. */
  features?: { [name: string]: number };
  /** Fixed share of the device, percent. */
  mpsPercent?: number;
  /** Share of the device that it needs, as a fraction. */
  smRequest?: number;
  /** Share of the device that it may have, as a fraction. */
  smLimit?: number;
  /** What profiling may run: a parameter object, or the name of an action. */
  sample?: { [name: string]: JsonValue } | string;
  /** Functions that may share its device: any, those of its namespace, or none; default `namespace`. */
  isolation?: 'shared' | 'namespace' | 'exclusive';
}

declare global {
  namespace NodeJS {
    /** What the platform puts into the environment of a run. */
    interface ProcessEnv {
      /** URL of the platform's API. */
      __OW_API_HOST?: string;
      /** The caller's key; absent unless the action has annotation `provide-api-key`. */
      __OW_API_KEY?: string;
      __OW_NAMESPACE?: string;
      /** `/namespace/package/action`. */
      __OW_ACTION_NAME?: string;
      __OW_ACTION_VERSION?: string;
      __OW_ACTIVATION_ID?: string;
      __OW_TRANSACTION_ID?: string;
      /** End of the run's time limit, epoch ms. */
      __OW_DEADLINE?: string;
      /** `true` where one process takes several runs at once. */
      __OW_ALLOW_CONCURRENT?: string;
    }
  }
}

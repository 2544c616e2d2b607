// The part of autocannon that the benches use; the package has no types.
declare module 'autocannon' {
  import type { EventEmitter } from 'node:events';

  interface Request {
    path?: string;
    setupRequest?: (request: Request) => Request;
    onResponse?: (status: number, body: string) => void;
  }

  interface Options {
    url: string;
    connections: number;
    /** s */
    duration: number;
    /** s */
    timeout: number;
    method: string;
    headers: Record<string, string>;
    body: string;
    requests: Request[];
  }

  interface Result {
    /** s */
    duration: number;
    errors: number;
  }

  function autocannon(options: Options): EventEmitter & PromiseLike<Result>;
  export default autocannon;
}

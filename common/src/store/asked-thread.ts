import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { ResourceLimits } from 'node:worker_threads';

interface Asked<Answer> {
  resolve: (answer: Answer) => void;
  reject: (error: Error) => void;
}

/** Dependencies of AskedThread. */
interface AskedThreadParts {
  /** The thread's module. It answers each message with one of the same number, and ends after `undefined`. */
  entry: URL;
  folder: string;
  resourceLimits: ResourceLimits;
  /** The error of those who have asked when the thread ends. */
  onEnd: (reason: string) => Error;
}

/** A thread that answers requests. It starts with the first request, and again if it ends. */
export class AskedThread<Request extends object, Answer extends { number: number }> {
  private readonly asked = new Map<number, Asked<Answer>>();
  private worker: Worker | undefined;
  private asks = 0;

  constructor(private readonly parts: AskedThreadParts) {}

  /** Resolves with the thread's answer. Rejects with the error of `onEnd`. `moved` are buffers in `request` that it takes. */
  ask(request: Request, moved: readonly ArrayBuffer[] = []): Promise<Answer> {
    const worker = (this.worker ??= this.start());
    const number = ++this.asks;
    return new Promise((resolve, reject) => {
      this.asked.set(number, { resolve, reject });
      worker.ref();
      worker.postMessage({ ...request, number }, moved);
    });
  }

  /** Ends the thread after all requests. */
  async close(): Promise<void> {
    const { worker } = this;
    if (worker === undefined) return;
    worker.ref();
    worker.postMessage(undefined);
    await once(worker, 'exit');
  }

  private start(): Worker {
    const { entry, folder, resourceLimits, onEnd } = this.parts;
    // The process's own execArgv may be for its main program only.
    const worker = new Worker(entry, { workerData: folder, execArgv: [], resourceLimits });
    let failure: unknown;
    worker.on('message', (answer: Answer) => this.take(worker, answer));
    worker.once('error', (error) => (failure = error));
    worker.once('exit', (code) => {
      this.worker = undefined;
      const reason = failure instanceof Error ? failure.message : `its thread ended with ${code}`;
      for (const { reject } of this.asked.values()) reject(onEnd(reason));
      this.asked.clear();
    });
    return worker;
  }

  private take(worker: Worker, answer: Answer): void {
    const asked = this.asked.get(answer.number);
    this.asked.delete(answer.number);
    // Alone it does not keep the process from its end.
    if (this.asked.size === 0) worker.unref();
    asked?.resolve(answer);
  }
}

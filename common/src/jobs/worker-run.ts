import { Worker } from 'node:worker_threads';
import type { JsonValue } from '../json.js';

/**
 * Calls the default export of a module with `input` in a thread of its own, of low priority on Linux, so that computing
 * delays no request, and gives its result. Ends the thread at once where `signal` is aborted. Rejects with what the
 * module throws, with the reason of the signal, or where the thread needs more memory than it may have.
 */
export function runInWorker(module: URL, input: JsonValue, signal: AbortSignal, maxHeapMiB = 1024): Promise<JsonValue> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) {
      reject(signal.reason as Error);
      return;
    }
    const worker = new Worker(new URL('./worker-entry.js', import.meta.url), {
      workerData: { module: module.href, input },
      resourceLimits: { maxOldGenerationSizeMb: maxHeapMiB },
    });
    const abort = (): void => {
      reject(signal.reason as Error);
      void worker.terminate();
    };
    signal.addEventListener('abort', abort, { once: true });
    worker.once('message', resolve);
    worker.once('error', reject);
    worker.once('exit', (code) => {
      signal.removeEventListener('abort', abort);
      reject(new Error(`the thread ended without a result (exit code ${code})`));
    });
  });
}

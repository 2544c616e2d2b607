import { constants, setPriority } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import type { JsonValue } from '../json.js';

/** The thread that runInWorker starts. */
// There it is the thread's own.
if (process.platform === 'linux') setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
const { module, input } = workerData as { module: string; input: JsonValue };
const { default: run } = (await import(module)) as { default: (input: JsonValue) => JsonValue | Promise<JsonValue> };
parentPort?.postMessage(await run(input));

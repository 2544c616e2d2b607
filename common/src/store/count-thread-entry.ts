import { setPriority } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import type { MessagePort } from 'node:worker_threads';
import { nameThread } from '../system/thread-name.js';
import { countAll } from './lmdb-count.js';
import { openRoot } from './lmdb-table.js';

/** The thread that StoredByNamespace starts for data of earlier releases. */
nameThread('count');
// On Linux it is the thread's own. All other work goes before it.
if (process.platform === 'linux') setPriority(19);
const { folder, stop } = workerData as { folder: string; stop: Int32Array };
const root = openRoot(folder);
const port = parentPort as MessagePort;
try {
  port.postMessage(countAll(root, () => Atomics.load(stop, 0) !== 0));
} finally {
  await root.close();
}

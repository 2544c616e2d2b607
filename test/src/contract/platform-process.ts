// A platform for tests to kill: three containers with a `sleep` in the background, one of them paused. The last
// argument selects pairs, or one container with 1,000 busy processes.
import { join } from 'node:path';
import { openMsContainerFactory, openProcessFactory } from './process-harness.js';
import { busyScript, initRequest, limits, runRequest, spec } from './container-calls.js';

const [, , dataDir = '', mark = '', sort = ''] = process.argv;
const open = sort === 'pairs' ? openMsContainerFactory : openProcessFactory;
const { factory } = await open({ dataDir, guestsDir: join(dataDir, 'guests') });
const isBusy = sort === 'busy';
for (let i = 0; i < (isBusy ? 1 : 3); i++) {
  const container = await factory.create({ ...spec, memoryMiB: 512 });
  await container.init(initRequest(), limits).outcome;
  const script = isBusy ? busyScript(mark) : `spawn('/bin/sleep', ['${mark}']); await sleep(50); return 0;`;
  await container.run(runRequest({ do: 'script', script }), limits).outcome;
  if (i === 0 && !isBusy) await container.pause();
}
console.log('running');
setInterval(() => undefined, 1000);

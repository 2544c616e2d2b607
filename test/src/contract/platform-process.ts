// A platform for tests to kill: three containers with a `sleep` in the background, one of them paused. The last
// argument selects pairs.
import { join } from 'node:path';
import { openMsContainerFactory, openProcessFactory } from './process-harness.js';
import { initRequest, limits, runRequest, spec } from './container-calls.js';

const [, , dataDir = '', mark = '', sort = ''] = process.argv;
const open = sort === 'pairs' ? openMsContainerFactory : openProcessFactory;
const { factory } = await open({ dataDir, guestsDir: join(dataDir, 'guests') });
for (let i = 0; i < 3; i++) {
  const container = await factory.create(spec);
  await container.init(initRequest(), limits).outcome;
  const script = `spawn('/bin/sleep', ['${mark}']); await sleep(50); return 0;`;
  await container.run(runRequest({ do: 'script', script }), limits).outcome;
  if (i === 0) await container.pause();
}
console.log('running');
setInterval(() => undefined, 1000);

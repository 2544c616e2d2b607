// The process of one stage: node stage-process.js OPTIONS, forked by the runner, which reads its findings.
import { newCleanup } from '../cleanup.js';
import { stages } from './stages.js';
import { newStage } from './stages/stage.js';
import type { Finding, StageOptions } from './stages/stage.js';

const options = JSON.parse(process.argv[2] ?? '') as StageOptions;
const say = (line: string): void => void process.stderr.write(`${line}\n`);
const tell = (finding: Finding): void => void process.send?.(finding);

const cleanup = newCleanup(say);
// The runner asks for the end, or has ended.
const stop = (): void => void cleanup.run().then(() => process.exit(1));
process.once('SIGTERM', stop);
process.once('disconnect', stop);

try {
  await stages[options.stage]?.(newStage(options, tell, cleanup));
  tell({ type: 'end' });
} catch (error) {
  say((error as Error).stack ?? String(error));
  tell({ type: 'end', problem: (error as Error).message });
} finally {
  await cleanup.run();
  process.removeListener('disconnect', stop);
  process.disconnect();
}

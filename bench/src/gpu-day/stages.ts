import { colocation } from './stages/colocation-stage.js';
import { facts } from './stages/facts.js';
import { injection } from './stages/injection-stage.js';
import { platform } from './stages/platform.js';
import { tokens } from './stages/tokens-stage.js';
import type { Stage } from './stages/stage.js';

/** The body of each stage by its name. A stage that rejects failed; its checks fail by themselves. */
export const stages: Readonly<Record<string, (stage: Stage) => Promise<void>>> = {
  facts,
  platform,
  injection,
  tokens,
  colocation,
};

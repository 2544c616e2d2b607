import { measureColocation } from './stages/colocation.js';
import { facts } from './stages/facts.js';
import { measureInjection } from './stages/injection.js';
import { measured } from './stages/measured.js';
import { platform } from './stages/platform.js';
import type { Stage } from './stages/stage.js';
import { measureTokens } from './stages/tokens.js';

/** The body of each stage by its name. A stage that rejects failed; its checks fail by themselves. */
export const stages: Readonly<Record<string, (stage: Stage) => Promise<void>>> = {
  facts,
  platform,
  injection: (stage) => measured(stage, measureInjection),
  tokens: (stage) => measured(stage, measureTokens),
  colocation: (stage) => measured(stage, measureColocation),
};

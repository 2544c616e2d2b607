import type { StageGiven, StageResult } from '../../gpu/stage.js';
export const measureInjection = (_: StageGiven): Promise<StageResult> => Promise.resolve({ metrics: {}, failures: [] });

import type { Preempt } from './preempt.js';

/** What runs, runs to its end. */
export const none: Preempt = () => [];

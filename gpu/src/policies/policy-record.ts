import type { Settings, stages } from './stages.js';

type Name<Stage extends keyof typeof stages> = keyof (typeof stages)[Stage];

/** Stages that decide one after the other, or what stands for them. */
export type Deciding = { plan: Name<'plan'> } | { order: Name<'order'>; share: Name<'share'>; place: Name<'place'> };

/** A policy: the implementation of each of its stages. */
export type PolicyRecord = Deciding & {
  /** One line. */
  summary: string;
  admit: Name<'admit'>;
  /** Absent, as `scale`: none. */
  preempt?: Name<'preempt'>;
  scale?: Name<'scale'>;
  /** Settings of its stages; absent: the defaults of the stages. */
  settings?: Settings;
  /** It uses no measurements of functions, so that no samples are run for it. */
  needsNoProfiles?: boolean;
  /** A task that arrives while the queue is empty is placed at once, not together with others of the same moment. */
  takesAsTheyCome?: boolean;
};

import type { Settings, stages } from './stages.js';

type Name<Stage extends keyof typeof stages> = keyof (typeof stages)[Stage];

/** Stages that decide one after the other, or what stands for them. */
export type Deciding = { plan: Name<'plan'> } | { order: Name<'order'>; share: Name<'share'>; place: Name<'place'> };

/** A policy: which implementation of each stage it is made of. */
export type PolicyRecord = Deciding & {
  /** One line. */
  summary: string;
  admit: Name<'admit'>;
  /** Of its stages; absent: as they are if nobody sets them. */
  settings?: Settings;
  /** It goes by nothing that is measured of functions, so that none need be measured for it. */
  needsNoProfiles?: boolean;
  /** Those who come while nobody waits are decided about at once, without a look at who else comes in that moment. */
  takesAsTheyCome?: boolean;
};

// The record of stages that a policy is defined by. The names are those of `policies/stages.ts`.
/** Numbers of a stage that can be set. */
export type Settings = Readonly<Record<string, number>>;

/** Stages that decide one after the other, or what stands for them. */
type Deciding = { plan: string } | { order: string; share: string; place: string };

/** A policy: the implementation of each of its stages, by its name. */
export type PolicyRecord = Deciding & {
  /** One line. */
  summary: string;
  admit: string;
  /** Absent, as the next three: none. */
  preempt?: string;
  scale?: string;
  geometry?: string;
  procure?: string;
  /** Settings of its stages; absent: the defaults of the stages. */
  settings?: Settings;
  /** It asks the predicted filters (`place/predicted-filters.ts`): which functions may be on a place together. */
  asksPredicted?: boolean;
  /** It uses no measurements of functions, so that no samples are run for it. */
  needsNoProfiles?: boolean;
  /** A task that arrives while the queue is empty is placed at once, not together with others of the same moment. */
  takesAsTheyCome?: boolean;
};

/** How long actions take until they have come about, ms. A launch takes what its function's start does. */
export interface ActionTimes {
  /** Until an instance has its new share. */
  reshareMs: number;
  /** Until a device that is empty has its new slices. */
  cutMs: number;
  /** Until a node that is taken runs functions. */
  acquireMs: number;
}

/**
 * A share moves within two periods of kernel tokens; a device is cut in 2 s (PROTEAN, section 4.4); a machine of a cloud boots
 * in 2 minutes.
 */
export const actionTimes: ActionTimes = { reshareMs: 10, cutMs: 2000, acquireMs: 120_000 };

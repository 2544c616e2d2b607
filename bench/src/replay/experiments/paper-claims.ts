/** What FaaShare's paper says of itself against its best baseline, FaST-GShare (section IX). */
export const paperClaims = {
  /** Figure 10(a), and figure 11 at high load: how much lower the mean completion time is. */
  jctGain: 0.23,
  /** Figure 10(b). */
  makespanGain: 0.33,
  /** Figure 10(c): how many times the throughput. */
  stpGain: 1.18,
  /** Figure 14(c), at 16 GPUs. */
  violations16: 0.04,
  /** Section IX-G, against time priority and memory priority. */
  jctGainOverOrders: { 'time-priority': 0.41, 'memory-priority': 0.23 },
  makespanGainOverOrders: { 'time-priority': 0.51, 'memory-priority': 0.19 },
} as const;

// Figures of Dilu's paper (ASPLOS 2025).

/** Table 2: trials of a search, of about 30 s each, for four models. */
export const paperTrials: Readonly<Record<string, readonly number[]>> = {
  traversal: [60, 60, 60, 60],
  INFless: [20, 40, 40, 30],
  GPUlet: [16, 16, 16, 16],
  Dilu: [8, 6, 6, 9],
};

/** Columns of `interference/lucid_training_pairs.csv`. */
export const lucidPairColumns = {
  model_a: 'text',
  dataset_a: 'text',
  batch_a: 'number',
  amp_a: 'number',
  model_b: 'text',
  dataset_b: 'text',
  batch_b: 'number',
  amp_b: 'number',
  norm_speed_a: 'number',
  norm_speed_b: 'number',
} as const;

/** Columns of `interference/igniter_v100_mps_pairs.csv` that every reader needs; times in ms. */
export const igniterPairColumns = {
  model_a: 'text',
  batch_a: 'number',
  partition_a_pct: 'number',
  model_b: 'text',
  batch_b: 'number',
  partition_b_pct: 'number',
  lat_a_solo_ms: 'number',
  lat_a_co_ms: 'number',
  lat_b_solo_ms: 'number',
  lat_b_co_ms: 'number',
} as const;

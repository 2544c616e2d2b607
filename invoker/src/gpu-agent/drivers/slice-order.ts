const gpuSlices = (profile: string): number => Number.parseInt(profile, 10);

/**
 * The order in which the slices of one device are to be made where the driver chooses their places: those of three first,
 * since a smaller or larger one before them can take the place that they need; then the largest.
 */
export function inOrderOfCreation(profiles: readonly string[]): string[] {
  const rank = (profile: string): number => (gpuSlices(profile) === 3 ? Infinity : gpuSlices(profile));
  return [...profiles].sort((a, b) => (rank(a) === rank(b) ? 0 : rank(b) - rank(a)));
}

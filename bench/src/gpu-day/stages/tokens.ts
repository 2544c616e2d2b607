import type { Measured, MeasurementGiven } from './measured.js';
export const measureTokens = (_: MeasurementGiven): Promise<Measured> => Promise.resolve({ metrics: {}, failures: [] });

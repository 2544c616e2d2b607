import { fileURLToPath } from 'node:url';

/** The folder of the results of full runs. */
export const resultsDir = fileURLToPath(new URL('../results/', import.meta.url));

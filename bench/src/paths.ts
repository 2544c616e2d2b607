import { fileURLToPath } from 'node:url';

/** The root of the repository. */
export const repositoryDir = fileURLToPath(new URL('../../', import.meta.url));
/** This package's folder. */
export const benchDir = fileURLToPath(new URL('../', import.meta.url));

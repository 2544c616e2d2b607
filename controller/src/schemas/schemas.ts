import { adminSchemas } from './admin-schemas.js';
import { entitySchemas } from './entity-schemas.js';
import { gpuSchemas } from './gpu-schemas.js';

/** The JSON that the API takes and gives. */
export const schemas = { ...entitySchemas, ...adminSchemas, ...gpuSchemas };

/** The name of a schema. */
export type SchemaName = keyof typeof schemas;

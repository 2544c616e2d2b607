import { adminSchemas } from './schemas/admin-schemas.js';
import { entitySchemas } from './schemas/entity-schemas.js';
import { gpuSchemas } from './schemas/gpu-schemas.js';

/** The JSON that the API takes and gives. */
export const schemas = { ...entitySchemas, ...adminSchemas, ...gpuSchemas };

/** The name of a schema. */
export type SchemaName = keyof typeof schemas;

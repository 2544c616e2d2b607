import { packageShape } from '../../shapes.js';
import type { EntityKind } from '../entities.js';
import { listFormats } from '../lists.js';

/** What the commands about packages work on. */
export const packages: EntityKind = {
  noun: 'package',
  collection: 'packages',
  shape: packageShape,
  format: listFormats.packages,
};

import { triggerShape } from '../../shapes.js';
import type { EntityKind } from '../entities.js';
import { listFormats } from '../lists.js';

/** What the commands about triggers work on. */
export const triggers: EntityKind = {
  noun: 'trigger',
  collection: 'triggers',
  shape: triggerShape,
  format: listFormats.triggers,
};

// The format of agents' rows in the GPU table, and the rules by which rows of other releases are read.
import { z } from 'zod';
import { shareClasses, tokenStates } from './gpu.js';
import type { NodeStatus } from './gpu.js';
import type { JsonValue } from './json.js';

/** The format of rows that this release writes. It grows with every change of the fields that this release reads. */
export const rowFormat = 2;

/**
 * The oldest format whose readers understand rows of `rowFormat`: a change that only adds fields leaves it, one that removes a
 * field or gives it another meaning makes it `rowFormat`.
 */
export const rowReadableFrom = 1;

/** The oldest format that this release reads. Rows without a format, of releases before formats, have 1. */
const oldestRead = 1;

/** Thrown for a row that cannot be read; `message` names what is wrong with it. */
export class RowError extends Error {
  override name = 'RowError';
}

const text = z.string();
const number = z.number();
const fraction = z.number().min(0);
const numbers = z.looseObject({ shareClass: z.literal([...shareClasses]), smRequest: fraction, smLimit: fraction });

const shareSchema = numbers.extend({
  memoryMiB: number,
  tokens: z.looseObject({ maxTokens: number.optional(), violation: number.optional() }).optional(),
});

const sliceSchema = z.looseObject({
  ...{ uuid: text, profile: text, startSlot: number, slots: number, instance: number.optional() },
  ...{ smCount: number, memoryMiB: number },
});

const deviceSchema = z.looseObject({
  ...{ uuid: text, index: number, name: text, type: text, smCount: number, memoryMiB: number },
  mode: z.enum(['exclusive', 'timeslice', 'mps', 'mig']),
  slices: z.array(sliceSchema),
  simulated: z.boolean(),
  returnsToMps: z.literal(true).optional(),
});

const statusSchema = z.looseObject({
  ...{ uuid: text, at: number, usedMemoryMiB: number },
  ...{ utilisation: number.optional(), smActivity: number.optional(), dramActivity: number.optional() },
  ...{ temperatureC: number.optional(), powerW: number.optional(), contextMiB: number.optional() },
  health: z.looseObject({
    state: z.enum(['healthy', 'leaving', 'cordoned', 'draining', 'offline']),
    reasons: z.array(text),
    longestRunMs: number.optional(),
  }),
  processes: z.array(
    z.looseObject({
      ...{ pid: number, memoryMiB: number, utilisation: number.optional() },
      ...{ container: text.optional(), workload: text.optional(), slice: text.optional() },
    }),
  ),
  cut: z
    .looseObject({
      profiles: z.array(text),
      state: z.enum(['waiting', 'draining', 'cutting', 'done', 'refused']),
      ...{ reason: text.optional(), drainMs: number.optional(), cutMs: number.optional() },
    })
    .optional(),
});

const launchesSchema = z.looseObject({
  ...{ blocks: number, waits: number, soloRate: number, cycles: number, cycleMs: number, cycleBatch: number },
  state: z.enum(tokenStates),
  budget: number.optional(),
});

const residentSchema = z.looseObject({
  ...{ container: text, since: number.optional(), gang: z.array(text).optional() },
  ...{ action: text.optional(), version: text.optional(), device: text, slice: text.optional() },
  share: shareSchema,
  ...{ memoryMiB: number, heldMiB: number.optional(), loadMs: number.optional() },
  isLoading: z.literal(true).optional(),
  launches: launchesSchema.optional(),
  ...{ namespace: text.optional(), subject: text.optional() },
  isolation: z.enum(['shared', 'namespace', 'exclusive']).optional(),
  activations: z.array(text),
  idleSince: number.optional(),
});

/** The fields of a row that this release reads; further ones are of newer releases and are left as they are. */
export const nodeRowSchema = z.looseObject({
  ...{ invoker: text.min(1), version: number, at: number, driver: text.optional() },
  devices: z.array(deviceSchema),
  status: z.array(statusSchema),
  residents: z.array(residentSchema),
  epoch: number.optional(),
  faults: z
    .array(
      z.looseObject({
        ...{ at: number, place: text },
        functions: z.array(z.looseObject({ action: text, version: text })),
      }),
    )
    .optional(),
  inHand: z.array(z.looseObject({ activationId: text, at: number, epoch: number, version: number })).optional(),
  labels: z.record(text, text).optional(),
  market: z.enum(['spot', 'on-demand']).optional(),
  ...{ pricePerHour: number.optional(), leavesAt: number.optional() },
  ...{ movesShares: z.boolean().optional(), cuts: z.boolean().optional() },
  clientEnv: z.record(text, z.record(text, text)).optional(),
}) satisfies z.ZodType<NodeStatus>;

const formatSchema = z.looseObject({ format: number.int().default(1), readableFrom: number.int().default(1) });

/** A row as it is written to the table. */
export function writeRow(row: NodeStatus): JsonValue {
  return { ...row, format: rowFormat, readableFrom: rowReadableFrom } as unknown as JsonValue;
}

/**
 * A row of the table. Rows of this release and of older ones, back to those without a format, are read; of newer ones those that
 * say that this release's format is enough. Throws RowError for others, and for fields that are missing or have no valid value.
 */
export function readRow(value: JsonValue): NodeStatus {
  const { format, readableFrom } = checked(formatSchema, value);
  if (format > rowFormat && readableFrom > rowFormat) {
    throw new RowError(
      `its format ${format} takes a reader of format ${readableFrom}, and this release has ${rowFormat}`,
    );
  }
  if (format < oldestRead) throw new RowError(`its format is ${format}, and the oldest that is read is ${oldestRead}`);
  checked(nodeRowSchema, value);
  return value as unknown as NodeStatus;
}

function checked<Result>(schema: z.ZodType<Result>, value: unknown): Result {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new RowError(issueOf(parsed.error));
}

/** The first issue of a value that was checked, with the path of its field: `devices.0.memoryMiB: …`. */
export function issueOf({ issues }: z.ZodError): string {
  const [issue] = issues;
  if (issue === undefined) return 'it is not valid';
  return issue.path.length === 0 ? issue.message : `${issue.path.join('.')}: ${issue.message}`;
}

// The fields of saved views and passes, checked before a decision is made on them.
import { savedTrials } from '../share/set-codec.js';
import { z } from 'zod';
import { issueOf, nodeRowSchema } from '@gpuwhisk/common/gpu-rows';

const text = z.string();
const number = z.number();
/** A measured or predicted quantity, of which policies bear any number. */
const measured = z.custom<number>((value) => typeof value === 'number', { error: 'Invalid input: expected number' });
const mode = z.enum(['exclusive', 'timeslice', 'mps', 'mig']);
const market = z.enum(['spot', 'on-demand']);
const features = z.record(text, measured);

const requestSchema = z.looseObject({
  ...{ memoryMiB: measured.optional(), batch: number, spans: number.optional(), subject: text.optional() },
  share: z.looseObject({ shareClass: number, smRequest: number, smLimit: number, memoryMiB: measured }),
});

const taskSchema = z.looseObject({
  ...{ id: text, function: text, version: text, namespace: text, batch: number, gpus: number, memoryMiB: measured },
  ...{ soloMs: measured.optional(), startMs: measured.optional(), arrivedAt: number, sloMs: number.optional() },
  ...{ features: features.optional(), featureRecord: features.optional() },
  profiledShares: z
    .array(z.looseObject({ gpuType: text, mode, request: number, limit: number, batch: number, ms: number }))
    .optional(),
  class: z.enum(['inference', 'training', 'compute']),
  ...{ mustNotStop: z.literal(true).optional(), share: number.optional(), maxShare: number.optional() },
  isolation: z.enum(['shared', 'namespace', 'exclusive']).optional(),
  allowed: z.set(text).optional(),
  request: requestSchema.optional(),
});

const placementSchema = z.looseObject({
  ...{ invoker: text, devices: z.array(text).min(1), slice: text.optional() },
  share: z.looseObject({ shareClass: number, smRequest: number, smLimit: number, memoryMiB: number }),
  ...{ partsMiB: z.array(number).optional(), at: number, epoch: number, version: number },
});

const ledgerSchema = z.looseObject({
  ...{ epoch: number, rows: z.array(nodeRowSchema), open: z.array(text) },
  held: z.array(
    z.looseObject({
      ...{ activationId: text, action: text, namespace: text, ended: z.boolean(), reuses: text.optional() },
      placement: placementSchema,
    }),
  ),
  byLoad: z.array(text),
});

const countsSchema = z.array(z.tuple([number.int().min(0), number.int().min(0)]));

const functionSchema = z.looseObject({
  ...{ task: taskSchema, bySecond: countsSchema, byMinute: countsSchema, runMs: number.optional() },
  served: z.looseObject({ request: number, limit: number }).optional(),
  forecast: z.looseObject({ requests: number, active: number }).optional(),
});

const instanceSchema = z.looseObject({
  ...{ id: text, function: text, namespace: text, gpus: z.array(text), memoryMiB: number },
  share: z.looseObject({ request: number, limit: number, class: number }),
  state: z.enum(['loading', 'idle', 'running', 'draining']),
  ...{ tasks: z.array(text), idleSince: number.optional(), loadMs: number.optional() },
});

const nodeSchema = z.looseObject({
  ...{ id: text, labels: z.record(text, text), market: market.optional() },
  ...{ pricePerHour: number.optional(), leavesAt: number.optional() },
});

const deviceSchema = z.looseObject({
  ...{ id: text, node: text, type: text, mode, geometries: z.array(z.array(text)) },
  places: z.array(z.looseObject({ id: text, startSlot: number.optional(), slots: number.optional() })),
});

const workloadSchema = z.looseObject({
  ...{ id: text, node: text, device: text, tolerated: number, name: text.optional(), features: features.optional() },
  ...{ baseline: number.optional(), rate: number.optional(), reportedAt: number.optional() },
  ...{ measured: number.optional(), estimated: number.optional() },
});

const procurementSchema = z.looseObject({
  wanted: number,
  machines: z.array(z.looseObject({ id: text, market, state: z.enum(['asked', 'booting', 'up', 'lost', 'leaving']) })),
  prices: z.partialRecord(market, number),
  refusedAt: z.partialRecord(market, number),
});

/** The fields of a saved view that decisions read. */
const viewSchema = z.looseObject({
  ...{ at: number, waiting: z.array(taskSchema), ledger: ledgerSchema },
  runs: z.array(z.tuple([text, z.looseObject({ task: taskSchema, startedAt: number })])),
  functions: z.array(functionSchema).optional(),
  instances: z.array(instanceSchema).optional(),
  nodes: z.array(nodeSchema).optional(),
  devices: z.array(deviceSchema).optional(),
  workloads: z.array(workloadSchema).optional(),
  procurement: procurementSchema.optional(),
});

const eventKinds = ['arrival', 'completion', 'timeout', 'tick', 'report', 'procure', 'timer'] as const;

/** The fields of a saved pass besides those of its view, and those that codecs of their own read. */
const passSchema = z.looseObject({
  policy: z.union([text, z.looseObject({ base: text })]),
  admission: z.enum(['best-effort', 'refuse']),
  trainingLast: z.boolean().optional(),
  event: z.looseObject({ kind: z.enum(eventKinds), task: text.optional(), gpu: text.optional() }),
  models: z.array(text),
  quotas: z.array(z.unknown()).optional(),
  trials: savedTrials.optional(),
});

/** What is wrong with a value as a saved view, or a saved pass, with the path of the field; undefined: nothing. */
export function savedFault(kind: 'view' | 'pass', value: unknown): string | undefined {
  const parsed = (kind === 'view' ? viewSchema : passSchema).safeParse(value);
  return parsed.success ? undefined : issueOf(parsed.error);
}

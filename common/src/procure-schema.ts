import { z } from 'zod';

const count = z.number().int().nonnegative();
const command = z.array(z.string().min(1)).min(1);
const price = z.number().positive();

/** Prices per hour of a machine with 8 A100 GPUs at AWS (PROTEAN, table 3), US dollars. */
const paperPrices = { spot: 9.8318, onDemand: 32.7726 };

/** Settings of a cloud that is emulated on the controller's machine. */
const emulatedSchema = z.strictObject({
  /** Seed of all draws. */
  seed: count.default(1),
  /** Probability that a spot machine is revoked at the end of an interval, and that a request for one is refused. */
  revocation: z.number().min(0).max(1).default(0.354),
  /** Interval between draws for each machine, s. */
  everyS: z.number().positive().default(60),
  /** From a notice until the machine is taken away, s. */
  noticeS: z.number().min(0).default(120),
  /** From a request until the machine begins to start, s. */
  bootS: z.number().min(0).default(0),
  spotPrice: price.default(paperPrices.spot),
  onDemandPrice: price.default(paperPrices.onDemand),
  /** Settings of the invokers on its machines: paths with their values, such as `{"gpus": "sim:a100-40"}`. */
  set: z.record(z.string(), z.unknown()).default({}),
});

/** Settings of the machines that the platform rents: docs/protean.md. */
export const procureSchema = z
  .strictObject({
    /** Where machines come from: nowhere, an emulated cloud, the operator's commands, or a webhook. */
    provider: z.enum(['none', 'emulated', 'commands', 'webhook']).default('none'),
    /** Number of nodes with a market to have; `wsk gpu rent N` changes it. */
    nodes: count.default(0),
    /** Time limit of one call of the provider, ms. */
    timeoutMs: z.number().int().positive().default(30_000),
    /** Attempts at a call that fails. */
    tries: z.number().int().min(1).max(10).default(3),
    /** Interval of looks at notices and machines, ms. */
    pollMs: z.number().int().min(100).default(5000),
    /** From a request until the machine's invoker reports, ms; after that the machine is given back. */
    bootMs: z.number().int().positive().default(600_000),
    /** Price above which a machine is given back at once, and no price is believed; absent: any. */
    maxPricePerHour: price.optional(),
    /** Programs with their arguments, which run without a shell. */
    commands: z
      .strictObject({ acquire: command, release: command, prices: command.optional(), notices: command.optional() })
      .optional(),
    webhook: z
      .strictObject({
        url: z.url({ protocol: /^https?$/ }),
        /** Sent as `Authorization: Bearer`. */ token: z.string().min(1).optional(),
      })
      .optional(),
    emulated: emulatedSchema.prefault({}),
  })
  .refine(({ provider, commands }) => provider !== 'commands' || commands !== undefined, {
    error: "provider 'commands' needs 'commands' with 'acquire' and 'release'",
  })
  .refine(({ provider, webhook }) => provider !== 'webhook' || webhook !== undefined, {
    error: "provider 'webhook' needs 'webhook' with 'url'",
  });

/** Settings of the machines that the platform rents. */
export type ProcureOptions = z.infer<typeof procureSchema>;

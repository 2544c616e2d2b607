// Scenarios of verdicts, as research/scenarios.json names them before the seeds of verdict run.
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { repositoryDir } from '@gpuwhisk/bench/machine';
import { z } from 'zod';
import { metricNames } from './metrics.js';
import { worldNames } from './worlds.js';

/** A policy of the registry, or changes to one, as configuration names it. */
const policySchema = z.union([
  z.string(),
  z.object({ base: z.string(), settings: z.record(z.string(), z.number()).optional() }).catchall(z.string()),
]);

const contenderSchema = z.union([
  z.string(),
  z.strictObject({
    /** As tables name it. */
    name: z.string(),
    policy: policySchema,
    /** MIG profiles of GPUs at the beginning; absent: those of the scenario. */
    profiles: z.array(z.string()).optional(),
    /** It is given true times, slowdowns and lengths. */
    knowsTruth: z.literal(true).optional(),
  }),
]);

const scenarioSchema = z.strictObject({
  name: z.string().regex(/^[a-z][a-z0-9-]*$/),
  /** What it is, and which objection or claim it answers. */
  about: z.string(),
  /** The measured world of a full run, and of the licensed subset. */
  world: z.enum(worldNames),
  licensed: z.enum(worldNames),
  ours: contenderSchema,
  rivals: z.array(contenderSchema).min(1),
  metrics: z.array(z.enum(metricNames)).min(1),
  gpus: z.int().min(1),
  /** MIG profiles of GPUs at the beginning, but for the first `wholeGpus`. */
  profiles: z.array(z.string()).default([]),
  wholeGpus: z.int().min(0).default(0),
  /** Functions drawn for a run, and the part of them that has an SLO. */
  functions: z.int().min(1),
  strictPart: z.number().min(0).max(1),
  /** Namespaces that they belong to in turn. */
  namespaces: z.int().min(1).default(1),
  /** SLO over the time alone, drawn for each function between both. */
  sloFactor: z.tuple([z.number().positive(), z.number().positive()]).default([2, 8]),
  /** Times alone are drawn between both, ms, distributed as Azure's functions. */
  lengthMs: z.tuple([z.number().positive(), z.number().positive()]).default([50, 5000]),
  /** GPUs with a training job as a resident. */
  trainings: z.int().min(0).default(0),
  /** Degradation that its owner tolerates, T_together / T_alone − 1. */
  bound: z.number().positive().default(0.1),
  requests: z.int().min(10),
  /**
   * `flood`: requests of one namespace come all within a tenth of the time; `closed`: all requests are there at the start.
   */
  arrivals: z.enum(['poisson', 'bursty', 'flood', 'closed']),
  /** Arrival rates over the capacity of `mps-equal`; one for `closed`, where it has no effect. */
  loads: z.array(z.number().positive()).min(1),
  /** Whether the greatest load at which each policy keeps 95 % of its SLOs is looked for. */
  greatestLoad: z.boolean().default(false),
});

/** A policy of a scenario. */
export type Contender = Exclude<z.infer<typeof contenderSchema>, string>;

/** A scenario, with its defaults. */
export interface Scenario extends Omit<z.infer<typeof scenarioSchema>, 'ours' | 'rivals'> {
  ours: Contender;
  rivals: readonly Contender[];
}

/** The committed scenarios. */
export const scenariosFile = join(repositoryDir, 'research/scenarios.json');

const named = (one: z.infer<typeof contenderSchema>): Contender =>
  typeof one === 'string' ? { name: one, policy: one } : one;

/**
 * Reads scenarios, with the first 48 bits of the file's SHA-256, which results carry. Throws Error that names the file and
 * what is wrong with it.
 */
export async function readScenarios(file = scenariosFile): Promise<{ scenarios: readonly Scenario[]; hash: number }> {
  const text = await readFile(file, 'utf8');
  let parsed: z.infer<typeof scenarioSchema>[];
  try {
    parsed = z.array(scenarioSchema).min(1).parse(JSON.parse(text));
  } catch (error) {
    const why = error instanceof z.ZodError ? z.prettifyError(error) : (error as Error).message;
    throw new Error(`${file} has no valid scenarios: ${why}`, { cause: error });
  }
  const scenarios = parsed.map((one) => ({ ...one, ours: named(one.ours), rivals: one.rivals.map(named) }));
  for (const names of [scenarios.map(({ name }) => name), ...scenarios.map(namesOf)]) {
    const twice = names.find((name, at) => names.indexOf(name) !== at);
    if (twice !== undefined) throw new Error(`${file} names '${twice}' twice`);
  }
  return { scenarios, hash: createHash('sha256').update(text).digest().readUIntBE(0, 6) };
}

const namesOf = ({ ours, rivals }: Scenario): string[] => [ours, ...rivals].map(({ name }) => name);

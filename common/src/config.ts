import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { z } from 'zod';
import { configSchema } from './config-schema.js';

/** The typed configuration. */
export type Config = z.infer<typeof configSchema>;

/** The configuration as it may be shown: without its secrets. */
export function withoutSecrets(config: Config): Config {
  const { parameterStorage, couchdb, kafka, redis, invokerAuth, operatorKey, gpu, tracing } = config;
  const { webhook } = gpu.procure;
  const keys = Object.fromEntries(
    Object.entries(parameterStorage.keys).map(([cipher, all]) => [cipher, all?.map(() => '(hidden)')]),
  );
  const hidden = (url: string): string => url.replace(/\/\/[^/@]*@/, '//(hidden)@');
  return {
    ...config,
    parameterStorage: { ...parameterStorage, keys },
    tracing: {
      ...tracing,
      ...(tracing.url !== undefined && { url: hidden(tracing.url) }),
      headers: Object.fromEntries(Object.keys(tracing.headers).map((name) => [name, '(hidden)'])),
    },
    ...(couchdb && { couchdb: { ...couchdb, url: hidden(couchdb.url) } }),
    ...(kafka?.sasl && { kafka: { ...kafka, sasl: { ...kafka.sasl, password: '(hidden)' } } }),
    ...(redis && { redis: { ...redis, url: hidden(redis.url) } }),
    ...(invokerAuth !== undefined && { invokerAuth: '(hidden)' }),
    ...(operatorKey !== undefined && { operatorKey: '(hidden)' }),
    ...(webhook?.token !== undefined && {
      gpu: { ...gpu, procure: { ...gpu.procure, webhook: { ...webhook, token: '(hidden)' } } },
    }),
  };
}

/** Thrown for a setting that is unknown or has an impossible value; `message` names it. */
export class ConfigError extends Error {
  override name = 'ConfigError';
}

type Tree = { [key: string]: unknown };

function overlay(base: Tree, over: Tree): Tree {
  const merged: Tree = { ...base };
  for (const [key, value] of Object.entries(over)) {
    const below = merged[key];
    merged[key] = isTree(value) && isTree(below) ? overlay(below, value) : value;
  }
  return merged;
}

function isTree(value: unknown): value is Tree {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** `GPUWHISK_LIMITS__MAX_MEMORY_MIB=4096` → `{limits: {maxMemoryMiB: 4096}}`. */
function fromEnvironment(env: NodeJS.ProcessEnv): Tree {
  let tree: Tree = {};
  for (const [name, text] of Object.entries(env)) {
    if (!name.startsWith('GPUWHISK_') || name === 'GPUWHISK_CONFIG' || text === undefined) continue;
    const path = name.slice('GPUWHISK_'.length).split('__').map(camelCase);
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      value = text;
    }
    tree = overlay(tree, path.reduceRight<unknown>((inner, key) => ({ [key]: inner }), value) as Tree);
  }
  return tree;
}

function camelCase(upper: string): string {
  return upper
    .toLowerCase()
    .replace(/_(.)/g, (_, letter: string) => letter.toUpperCase())
    .replace(/Mib$/, 'MiB');
}

/** The settings of a file, with the paths of policy modules relative to its folder made absolute. */
function withPathsOf(file: string, tree: Tree): Tree {
  const { gpu } = tree;
  if (!isTree(gpu) || !Array.isArray(gpu['policyModules'])) return tree;
  const paths = (gpu['policyModules'] as unknown[]).map((path) =>
    typeof path === 'string' ? resolve(dirname(file), path) : path,
  );
  return { ...tree, gpu: { ...gpu, policyModules: paths } };
}

/**
 * The configuration from, weakest first: defaults, `base`, the file that GPUWHISK_CONFIG or `file` names
 * (JSON), `GPUWHISK_*` of the environment, `flags`. Throws ConfigError.
 */
export function loadConfig(
  sources: { base?: object; file?: string; env?: NodeJS.ProcessEnv; flags?: object } = {},
): Config {
  const env = sources.env ?? {};
  const file = sources.file ?? env.GPUWHISK_CONFIG;
  let tree = (sources.base ?? {}) as Tree;
  if (file !== undefined) {
    try {
      tree = overlay(tree, withPathsOf(file, JSON.parse(readFileSync(file, 'utf8')) as Tree));
    } catch (error) {
      throw new ConfigError(`The configuration file '${file}' cannot be read: ${(error as Error).message}`);
    }
  }
  tree = overlay(overlay(tree, fromEnvironment(env)), (sources.flags ?? {}) as Tree);
  const parsed = configSchema.safeParse(tree);
  if (parsed.success) return parsed.data;
  const reasons = parsed.error.issues.map((issue) => `${issue.path.join('.') || 'configuration'}: ${issue.message}`);
  throw new ConfigError(`The configuration is not valid: ${reasons.join('; ')}`);
}

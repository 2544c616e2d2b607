// Policy modules: the checks of what they export, and their registration.
import type { ModuleStage, PolicyModule } from '../plugin.js';
import type { LedgerPlace, Scores } from '../stages/place/place.js';
import { addTokenPolicy, tokenPolicies } from '../tokens/token-policies.js';
import { compositionOf } from './make-policy.js';
import { addPolicy, policies } from './registry.js';
import { addStage, capabilities, placeStageOf, stages } from './stages.js';
import type { PolicyRecord, Settings } from '../stages/policy-record.js';
import type { StageName } from './stages.js';

/** The version of the interface that this release has. */
const interfaceVersion = 1;

/** A policy module as text that was read once and checked: what is loaded is what was read. */
export interface ModuleSource {
  path: string;
  /** SHA-256 of the text, hexadecimal. */
  sha256: string;
  text: string;
}

/** Imports a module by its address and gives its namespace. */
type Import = (address: string) => Promise<unknown>;

const registered: ModuleSource[] = [];

/** The modules that were registered in this process. */
export function policyModules(): readonly ModuleSource[] {
  return registered;
}

/**
 * Imports modules and adds what they export to the policies, stages and token policies of this process. A module that was
 * registered before is left out. Rejects with RangeError, which names the module and what is wrong with it; nothing of these
 * modules is registered then.
 */
export async function registerModules(sources: readonly ModuleSource[], load: Import): Promise<void> {
  const undo: (() => void)[] = [];
  const fresh = sources.filter(({ sha256 }) => !registered.some((one) => one.sha256 === sha256));
  let path = '';
  try {
    const modules: { source: ModuleSource; module: PolicyModule }[] = [];
    for (const source of fresh) {
      ({ path } = source);
      const module = readModule(await load(addressOf(source)));
      addStages(module, undo);
      modules.push({ source, module });
    }
    for (const { source, module } of modules) {
      ({ path } = source);
      addPolicies(module, undo);
    }
    registered.push(...fresh);
  } catch (error) {
    for (const remove of undo.reverse()) remove();
    throw new RangeError(`${path}: ${reasonOf(error)}`, { cause: error });
  }
}

/** An address that holds the text: relative imports and packages cannot be resolved from it. Stack traces show the path. */
function addressOf({ path, text }: ModuleSource): string {
  const code = Buffer.from(`${text}\n//# sourceURL=${encodeURI(`file://${path}`)}`);
  return `data:text/javascript;base64,${code.toString('base64')}`;
}

/** One line, without the address of a module, which holds all of its text. */
function reasonOf(error: unknown): string {
  const [line = ''] = (error instanceof Error ? error.message : String(error)).split('\n');
  const isImport = line.includes('data:text/javascript');
  const told = line.replace(/"?data:text\/javascript[^\s"]*"?/g, 'the module');
  return isImport ? `it must be one file without imports, but those of Node.js: ${told}` : told;
}

type Fields = Readonly<Record<string, unknown>>;

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function fieldsOf(what: string, value: unknown = {}): Fields {
  if (isFields(value)) return value;
  throw new RangeError(`${what} must be an object`);
}

function checkNames(what: string, value: Fields, allowed: readonly string[]): void {
  const unknown = Object.keys(value).find((name) => !allowed.includes(name));
  if (unknown !== undefined) throw new RangeError(`${what} has no field '${unknown}'; there are ${allowed.join(', ')}`);
}

/** The exports of a module, checked. Throws RangeError. */
function readModule(exported: unknown): PolicyModule {
  const module = fieldsOf('the default export', isFields(exported) ? (exported['default'] ?? null) : null);
  const { version, policies: own, stages: ofStages, tokens } = module;
  if (version !== interfaceVersion) {
    throw new RangeError(
      `its interface has version ${JSON.stringify(version) ?? 'undefined'}, and this release has ${interfaceVersion}`,
    );
  }
  checkNames('the default export', module, ['version', 'policies', 'stages', 'tokens']);
  for (const [name, policy] of Object.entries(fieldsOf("'policies'", own))) readPolicy(name, policy);
  const known = Object.keys(stages);
  checkNames("'stages'", fieldsOf("'stages'", ofStages), known);
  for (const [stage, entries] of Object.entries(fieldsOf("'stages'", ofStages))) {
    for (const [name, entry] of Object.entries(fieldsOf(`'stages.${stage}'`, entries))) readStage(stage, name, entry);
  }
  for (const [name, token] of Object.entries(fieldsOf("'tokens'", tokens))) {
    checkName('token policy', name);
    checkNames(`token policy '${name}'`, fieldsOf(`token policy '${name}'`, token), ['make']);
    checkMake(`token policy '${name}'`, token);
  }
  const read = module as unknown as PolicyModule;
  const entries = [read.policies, read.tokens, ...Object.values(read.stages ?? {})];
  if (entries.every((one) => Object.keys(one ?? {}).length === 0)) {
    throw new RangeError('it registers no policy, stage or token policy');
  }
  return read;
}

function checkName(what: string, name: string): void {
  if (/^[a-z0-9][a-z0-9-]{0,63}$/.test(name)) return;
  throw new RangeError(`the name of ${what} '${name}' must be 1 to 64 small letters, digits and hyphens`);
}

function checkMake(what: string, entry: unknown): void {
  if (typeof (entry as Partial<ModuleStage<unknown>>).make !== 'function') {
    throw new RangeError(`'make' of ${what} must be a function`);
  }
}

function checkSettings(what: string, settings: unknown): void {
  for (const [name, value] of Object.entries(fieldsOf(`'settings' of ${what}`, settings))) {
    if (typeof value === 'number' && Number.isFinite(value) && value >= 0) continue;
    throw new RangeError(`setting '${name}' of ${what} is no number from 0`);
  }
}

function checkFlags(what: string, entry: Fields, names: readonly string[]): void {
  const wrong = names.find((name) => entry[name] !== undefined && typeof entry[name] !== 'boolean');
  if (wrong !== undefined) throw new RangeError(`'${wrong}' of ${what} must be true or false`);
}

function readStage(stage: string, name: string, given: unknown): void {
  const what = `${stage} stage '${name}'`;
  checkName(`${stage} stage`, name);
  const entry = fieldsOf(what, given ?? null);
  checkNames(what, entry, ['settings', 'make', ...capabilities]);
  checkMake(what, entry);
  checkSettings(what, entry['settings']);
  checkFlags(what, entry, capabilities);
}

const policyFlags = ['asksPredicted', 'needsNoProfiles', 'takesAsTheyCome'];

function readPolicy(name: string, given: unknown): void {
  const what = `policy '${name}'`;
  checkName('policy', name);
  const policy = fieldsOf(what, given ?? null);
  const stageNames = Object.keys(stages);
  checkNames(what, policy, ['summary', 'settings', ...policyFlags, ...stageNames]);
  const texts = ['summary', 'admit', ...stageNames.filter((stage) => policy[stage] !== undefined)];
  const missing = texts.find((field) => typeof policy[field] !== 'string');
  if (missing !== undefined) throw new RangeError(`'${missing}' of ${what} must be a text`);
  if (!('plan' in policy) && !['order', 'share', 'place'].every((stage) => stage in policy)) {
    throw new RangeError(`${what} must name a plan, or order, share and place`);
  }
  checkSettings(what, policy['settings']);
  checkFlags(what, policy, policyFlags);
}

function checkFree(what: string, taken: object, name: string): void {
  if (Object.hasOwn(taken, name)) throw new RangeError(`it names ${what} '${name}', which is there already`);
}

function addStages({ stages: own = {}, tokens = {} }: PolicyModule, undo: (() => void)[]): void {
  for (const [stage, entries] of Object.entries(own)) {
    for (const [name, entry] of Object.entries(entries) as [string, ModuleStage<unknown>][]) {
      checkFree(`${stage} stage`, stages[stage as StageName], name);
      const { settings = {} } = entry;
      const make: typeof entry.make = (needs, given: Settings) => {
        const made = entry.make(needs, { ...settings, ...given });
        return stage === 'place' ? placeStageOf(name, made as Scores | LedgerPlace) : made;
      };
      undo.push(addStage(stage as StageName, name, { ...entry, settings, make }));
    }
  }
  for (const [name, entry] of Object.entries(tokens)) {
    checkFree('token policy', tokenPolicies, name);
    undo.push(addTokenPolicy(name, (columns) => entry.make(columns)));
  }
}

function addPolicies({ policies: own = {} }: PolicyModule, undo: (() => void)[]): void {
  for (const [name, policy] of Object.entries(own)) {
    checkFree('policy', policies, name);
    undo.push(addPolicy(name, policy));
    checkComposition(name, policy);
  }
}

/** Throws RangeError for stages that there are not, or that do not fit each other. */
function checkComposition(name: string, policy: PolicyRecord): void {
  const { plan, order, share, place }: Partial<Record<StageName, string>> = policy;
  if (plan !== undefined && [order, share, place].some((one) => one !== undefined)) {
    throw new RangeError(`policy '${name}': a plan stands for order, share and place`);
  }
  const named = Object.entries(policy).filter(([field]) => Object.hasOwn(stages, field));
  for (const [stage, one] of named as [StageName, string][]) {
    const there = stages[stage];
    if (Object.hasOwn(there, one)) continue;
    throw new RangeError(
      `policy '${name}': there is no ${stage} stage '${one}'; there are ${Object.keys(there).join(', ')}`,
    );
  }
  compositionOf(name);
}

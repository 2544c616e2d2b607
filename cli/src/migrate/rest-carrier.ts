import type { JsonObject } from '@gpuwhisk/common/json';
import { sameBody } from './bodies.js';
import { RefusedError } from './http.js';
import { fullName, localName, type Collection, type Namespace } from './namespace.js';
import type { EntityType, Report } from './report.js';
import type { TargetKinds } from './target-kinds.js';
import { isObject, objectsOf, textOf } from './values.js';

/** The namespace of a key at the source, and that of a key at the target. */
export interface Pair {
  source: Namespace;
  target: Namespace;
}

/** One thing on its way. */
export interface Load {
  pair: Pair;
  type: EntityType;
  collection: Collection;
  /** As the source shows it. */
  entity: JsonObject;
  /** What is to be put at the target. */
  body: JsonObject;
  /** What a PUT would have to be for what the target has. */
  bodyOf(found: JsonObject): Promise<JsonObject>;
}

/** What happens where the target has something else. */
export interface CarryOptions {
  dryRun: boolean;
  overwrite: boolean;
}

const collections = ['packages', 'actions', 'triggers', 'rules'] as const satisfies Collection[];
const singular = { packages: 'package', actions: 'action', triggers: 'trigger', rules: 'rule' } as const;

/** Puts entities at the target, and tells the report. */
export class RestCarrier {
  /** What each target namespace has: full name to collection. */
  private readonly present = new Map<string, Collection>();

  constructor(
    private readonly report: Report,
    private readonly kinds: TargetKinds,
    private readonly options: CarryOptions,
  ) {}

  /** Learns what the target has. Throws RefusedError, UnreachableError. */
  async look(targets: readonly Namespace[]): Promise<void> {
    for (const target of targets) {
      for (const collection of collections) {
        for (const row of await target.list(collection)) this.present.set(fullName(row), collection);
      }
    }
  }

  /** Carries one thing; what the target refuses is told. Throws UnreachableError. */
  async carry(load: Load): Promise<void> {
    try {
      const { exec } = load.body;
      const problem = isObject(exec) ? this.kinds.problem(textOf(exec.kind)) : undefined;
      if (problem !== undefined) this.report.fail(load.type, fullName(load.entity), problem);
      else await this.placeWithoutSecrets(load);
    } catch (error) {
      if (!(error instanceof RefusedError)) throw error;
      this.report.fail(load.type, fullName(load.entity), error.message);
    }
  }

  /** An API takes no value that another server has encrypted: such parameters stay behind, which is told. */
  private async placeWithoutSecrets(load: Load): Promise<void> {
    const given = objectsOf(load.body.parameters);
    const locked = given.filter(({ encryption }) => textOf(encryption) !== '' && encryption !== 'noop');
    if (load.body.parameters === undefined) return this.place(load);
    const keys = new Set(locked.map(({ key }) => textOf(key)));
    const open = (body: JsonObject): JsonObject => ({
      ...body,
      parameters: objectsOf(body.parameters)
        .filter(({ key }) => !keys.has(textOf(key)))
        // As OpenWhisk stores plain text where encryption is `noop`.
        .map((one) => (one.encryption === 'noop' ? withoutCipher(one) : one)),
    });
    await this.place({ ...load, body: open(load.body), bodyOf: async (found) => open(await load.bodyOf(found)) });
    if (keys.size === 0) return;
    const names = [...keys].map((key) => `'${key}'`).join(', ');
    const reason = `its encrypted parameters ${names} are to be given again, or migrated from CouchDB, which carries them`;
    this.report.lack(load.type, fullName(load.entity), reason);
  }

  private async place(load: Load): Promise<void> {
    const { report } = this;
    const { pair, type, collection, entity, body } = load;
    const name = localName(entity);
    const there = this.present.get(`${pair.target.name}/${name}`);
    if (there !== undefined && there !== collection) {
      report.fail(type, fullName(entity), `its name is taken at the target by a ${singular[there]}`);
      return;
    }
    if (there === undefined) {
      if (this.options.dryRun || (await this.create(load, name))) {
        if (!this.options.dryRun) await this.setStatus(load, name, 'active');
        report.add(type, 'created');
        return;
      }
    }
    const found = await pair.target.get(collection, name);
    if (sameBody(body, await load.bodyOf(found))) {
      // A rule that an interrupted migration left is active still.
      if (statusOf(found) === statusOf(entity)) return report.add(type, 'equal');
      if (!this.options.dryRun) await this.setStatus(load, name, statusOf(found));
      return report.add(type, 'replaced');
    }
    if (!this.options.overwrite) {
      report.fail(type, fullName(entity), 'the target has another one of this name (--overwrite replaces it)');
      return;
    }
    if (!this.options.dryRun) {
      await pair.target.put(collection, name, body, true);
      await this.setStatus(load, name, statusOf(found));
    }
    report.add(type, 'replaced');
  }

  /** False if something came to be there meanwhile, perhaps by an attempt whose answer was lost. */
  private async create({ pair, collection, body }: Load, name: string): Promise<boolean> {
    try {
      await pair.target.put(collection, name, body, false);
      return true;
    } catch (error) {
      if (error instanceof RefusedError && error.status === 409 && error.message === 'resource already exists') {
        return false;
      }
      throw error;
    }
  }

  private async setStatus({ pair, collection, entity }: Load, name: string, now: string | undefined): Promise<void> {
    const wanted = statusOf(entity);
    if (collection === 'rules' && wanted !== undefined && wanted !== now) {
      await pair.target.setRuleStatus(name, wanted);
    }
  }
}

function withoutCipher(parameter: JsonObject): JsonObject {
  const plain = { ...parameter };
  delete plain.encryption;
  return plain;
}

/** `active` or `inactive` of a rule. */
function statusOf({ status }: JsonObject): string | undefined {
  return status === 'active' || status === 'inactive' ? status : undefined;
}

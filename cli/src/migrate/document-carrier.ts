import type { JsonObject } from '@gpuwhisk/common/json';
import type { CouchDatabase } from './couchdb.js';
import { CodeError, codeReference, digestOf, withDigest } from './document-code.js';
import { RefusedError } from './http.js';
import type { DatabaseName, RawTarget } from './raw-target.js';
import type { EntityType, Report } from './report.js';
import type { TargetKinds } from './target-kinds.js';
import { isObject, objectsOf, sameJson, textOf } from './values.js';

/** How documents are carried. */
export interface DocumentOptions {
  dryRun: boolean;
  overwrite: boolean;
  /** Source kind to target kind. */
  kinds: ReadonlyMap<string, string>;
}

/** A document on its way. */
export interface DocumentLoad {
  database: Exclude<DatabaseName, 'activations'>;
  type: EntityType;
  /** As CouchDB has it. */
  document: JsonObject;
  /** Where its attachment lies. */
  source: CouchDatabase;
}

/** Puts documents at the target as they are, and tells the report. */
export class DocumentCarrier {
  private readonly present: Record<DocumentLoad['database'], Set<string>> = { subjects: new Set(), whisks: new Set() };

  constructor(
    private readonly target: RawTarget,
    private readonly report: Report,
    private readonly targetKinds: TargetKinds,
    private readonly options: DocumentOptions,
  ) {}

  /** Learns what the target has. Throws RefusedError, UnreachableError. */
  async look(database: DocumentLoad['database']): Promise<void> {
    this.present[database] = await this.target.ids(database);
  }

  /** Carries one document; what cannot be is told. Throws UnreachableError. */
  async carry(load: DocumentLoad): Promise<void> {
    const id = textOf(load.document._id);
    try {
      await this.place(load, id);
    } catch (error) {
      if (!(error instanceof RefusedError || error instanceof CodeError)) throw error;
      this.report.fail(load.type, id, error.message);
    }
  }

  private async place({ database, type, document, source }: DocumentLoad, id: string): Promise<void> {
    const { report, target, options } = this;
    let wanted = this.withKind(withoutInternals(document));
    const kind = isObject(wanted.exec) ? textOf(wanted.exec.kind) : undefined;
    const problem = kind === undefined ? undefined : this.targetKinds.problem(kind);
    if (problem !== undefined) return report.fail(type, id, problem);

    const code = codeReference(wanted);
    let bytes: Buffer | undefined;
    if (code !== undefined && code.digest === undefined) {
      bytes = await source.attachment(id, code.name);
      wanted = withDigest(wanted, code, bytes);
    }
    const found = this.present[database].has(id) ? await target.get(database, id) : undefined;
    if (found !== undefined) {
      const other = entityTypeOf(found);
      if (database === 'whisks' && other !== entityTypeOf(document)) {
        return report.fail(type, id, `its name is taken at the target by a ${other ?? 'document of another sort'}`);
      }
      if (sameJson(wanted, withoutInternals(found))) return report.add(type, 'equal');
      if (!options.overwrite) {
        return report.fail(type, id, 'the target has another one of this name (--overwrite replaces it)');
      }
    }
    report.noteCiphers(id, document.parameters);
    if (!options.dryRun) {
      if (code !== undefined) bytes ??= await source.attachment(id, code.name);
      if (code?.digest?.startsWith('sha256-') === true && bytes !== undefined && digestOf(bytes) !== code.digest) {
        throw new CodeError('its code is not what its document says: the digests differ');
      }
      await target.put(database, {
        ...wanted,
        ...(found !== undefined && { _rev: found._rev ?? null }),
        ...(code !== undefined &&
          bytes !== undefined && {
            _attachments: { [code.name]: { content_type: code.contentType, data: bytes.toString('base64') } },
          }),
      });
    }
    report.add(type, found === undefined ? 'created' : 'replaced');
  }

  /** The document with the kind that it has at the target. */
  private withKind(document: JsonObject): JsonObject {
    const { exec } = document;
    if (!isObject(exec)) return document;
    const kind = this.options.kinds.get(textOf(exec.kind));
    if (kind === undefined) return document;
    const annotations = objectsOf(document.annotations).map((one) =>
      one.key === 'exec' ? { ...one, value: kind } : one,
    );
    return { ...document, exec: { ...exec, kind }, annotations };
  }
}

/** The type of a document of the whisks; old ones do not name it. */
export function entityTypeOf(document: JsonObject): 'action' | 'package' | 'trigger' | 'rule' | undefined {
  const { entityType, exec, binding, trigger, parameters } = document;
  if (entityType === 'action' || entityType === 'package' || entityType === 'trigger' || entityType === 'rule') {
    return entityType;
  }
  if (entityType !== undefined) return undefined;
  if (exec !== undefined) return 'action';
  if (isObject(binding)) return 'package';
  if (trigger !== undefined) return 'rule';
  return parameters === undefined ? undefined : 'trigger';
}

function withoutInternals(document: JsonObject): JsonObject {
  const fields = { ...document };
  delete fields._rev;
  delete fields._attachments;
  return fields;
}

import {
  alreadyExists,
  isApiError,
  notAllowed,
  ruleIncomplete,
  ruleTargetMissing,
  ruleTriggerGone,
} from '@gpuwhisk/common/errors';
import { referenceId, bumpPatch, firstVersion } from '@gpuwhisk/common/entities/names';
import type { EntityReference } from '@gpuwhisk/common/entities/names';
import type { WhiskRule, RuleLink, RuleStatus, WhiskTrigger } from '@gpuwhisk/common/entities/trigger';
import { readRule, ruleDocument } from '@gpuwhisk/common/entities/trigger';
import type { ArtifactStore } from '@gpuwhisk/common/store/artifact-store';
import { KeyQueue } from '@gpuwhisk/common/store/key-queue';
import { deleteEntity, findStoredEntity, readStoredEntity, writeEntity } from '../entities/stored-entity.js';
import type { RulePut, TriggerWriter } from './trigger-writer.js';

/** A rule and whether fires run it. */
export interface RuleWithStatus {
  rule: WhiskRule;
  status: RuleStatus;
}

/** Options of a rule's PUT. */
export interface RulePutOptions {
  overwrite: boolean;
  /** Epoch ms. */
  nowMs: number;
  /** Resolves if the caller may use the action. Throws ApiError (403, 404, 409, 500). */
  checkAction: (action: EntityReference) => Promise<unknown>;
}

/**
 * Reads and writes rules; `id` is `ns/rule`. A rule consists of a document and a link in its trigger's document, which
 * cannot be written atomically. The document is written first and deleted last. A crash in between leaves a rule without
 * a link, which can still be read, updated, enabled and deleted. There is never a link without a rule. While an update
 * changes the action, the link is marked, so that readers of the link read the document. A failed write is undone.
 */
export class RuleWriter {
  /** Serialises the writes of a rule. A rule's write may wait for its trigger's, never the other way round. */
  private readonly writes = new KeyQueue();

  constructor(
    private readonly store: ArtifactStore,
    private readonly triggers: TriggerWriter,
  ) {}

  /** The rule and its status. Throws ApiError (404, 409, 500). */
  async read(id: string): Promise<RuleWithStatus> {
    const rule = await readStoredEntity(this.store, id, readRule);
    return { rule, status: statusOf(await this.findLink(rule)) };
  }

  /** Creates an active rule, or updates a rule if `overwrite` is set. Throws ApiError. */
  put(namespace: string, name: string, put: RulePut, options: RulePutOptions): Promise<RuleWithStatus> {
    const id = `${namespace}/${name}`;
    return this.writes.run(id, async () => {
      const stored = await findStoredEntity(this.store, id, readRule);
      if (stored !== undefined && !options.overwrite) throw alreadyExists();
      return stored === undefined ? this.create(namespace, name, put, options) : this.update(stored, put, options);
    });
  }

  /** Deletes a rule and its link. Throws ApiError (404, 409, 500). */
  delete(id: string): Promise<WhiskRule> {
    return this.writes.run(id, async () => {
      const rule = await readStoredEntity(this.store, id, readRule);
      const link = await this.findLink(rule);
      if (link !== undefined) await this.unlink(rule);
      await orElse(
        () => deleteEntity(this.store, id, rule.revision),
        () => this.restoreLink(rule, link),
      );
      return rule;
    });
  }

  /** Enables or disables a rule. Throws ApiError (404, 409, 500). */
  setStatus(id: string, status: RuleStatus): Promise<void> {
    return this.writes.run(id, async () => {
      const rule = await readStoredEntity(this.store, id, readRule);
      const old = statusOf(await this.findLink(rule));
      if (old === status) return;
      const linked = await this.triggers.setLink(referenceId(rule.trigger), id, { action: rule.action, status });
      if (!linked) throw ruleTriggerGone();
    });
  }

  /** The trigger with links that match their rules, also after interrupted writes of rules. Throws ApiError. */
  async settled(trigger: WhiskTrigger): Promise<WhiskTrigger> {
    const rules = new Map(trigger.rules);
    for (const [id, link] of rules) {
      if (link.replacing !== undefined) rules.set(id, await this.writes.run(id, () => this.settledLink(id, link)));
    }
    return trigger.rules === undefined ? trigger : { ...trigger, rules };
  }

  /** A link's present action and status. A mark is kept if another controller may still complete its write. */
  private async settledLink(id: string, seen: RuleLink): Promise<RuleLink> {
    const rule = await findStoredEntity(this.store, id, readRule);
    if (rule === undefined) return seen;
    const link = await this.findLink(rule);
    if (link === undefined) return seen;
    const settled = { action: rule.action, status: link.status };
    if (link.replacing !== undefined && link.replacing !== rule.revision) await this.link(rule, link.status);
    return settled;
  }

  private async create(
    namespace: string,
    name: string,
    put: RulePut,
    { nowMs, checkAction }: RulePutOptions,
  ): Promise<RuleWithStatus> {
    const { trigger, action } = put;
    if (trigger === undefined || action === undefined) throw ruleIncomplete();
    await this.checkTargets(trigger, action, checkAction);
    const rule: WhiskRule = {
      namespace,
      name,
      trigger,
      action,
      version: put.version ?? firstVersion,
      publish: put.publish ?? false,
      annotations: put.annotations ?? [],
      updated: nowMs,
      revision: '',
    };
    const revision = await writeEntity(this.store, ruleDocument(rule));
    await orElse(
      () => this.link(rule, 'active'),
      () => deleteEntity(this.store, idOf(rule), revision),
    );
    return { rule: { ...rule, revision }, status: 'active' };
  }

  private async update(stored: WhiskRule, put: RulePut, options: RulePutOptions): Promise<RuleWithStatus> {
    const rule: WhiskRule = {
      ...stored,
      version: bumpPatch(stored.version),
      ...put,
      updated: options.nowMs,
    };
    await this.checkTargets(rule.trigger, rule.action, options.checkAction);
    const link = await this.findLink(stored);
    const status = statusOf(link);
    const moves = referenceId(rule.trigger) !== referenceId(stored.trigger);
    const marks = !moves && link !== undefined && referenceId(rule.action) !== referenceId(stored.action);
    // The link is removed while the document still names the old trigger.
    if (moves && link !== undefined) await this.unlink(stored);
    if (marks) await this.restoreLink(stored, { ...link, replacing: stored.revision });
    const revision = await orElse(
      () => writeEntity(this.store, ruleDocument(rule)),
      () => (marks ? this.unmark(stored, link) : this.restoreLink(stored, moves ? link : undefined)),
    );
    await orElse(
      () => this.link(rule, status),
      async () => {
        await writeEntity(this.store, ruleDocument({ ...stored, revision }));
        await this.restoreLink(stored, moves || marks ? link : undefined);
      },
    );
    return { rule: { ...rule, revision }, status };
  }

  private async checkTargets(
    trigger: EntityReference,
    action: EntityReference,
    checkAction: RulePutOptions['checkAction'],
  ): Promise<void> {
    await targetExists('trigger', trigger, () => this.triggers.read(referenceId(trigger)));
    await targetExists('action', action, () => checkAction(action));
  }

  /** The rule's link; undefined without a link or without a readable trigger. */
  private async findLink(rule: WhiskRule): Promise<RuleLink | undefined> {
    try {
      return (await this.triggers.find(referenceId(rule.trigger)))?.rules?.get(idOf(rule));
    } catch (error) {
      if (isApiError(error)) return undefined;
      throw error;
    }
  }

  private async link(rule: WhiskRule, status: RuleStatus): Promise<void> {
    const trigger = referenceId(rule.trigger);
    const linked = await this.triggers.setLink(trigger, idOf(rule), { action: rule.action, status });
    // The trigger existed when the targets were checked.
    if (!linked) throw ruleTargetMissing('trigger', trigger);
  }

  private async unlink(rule: WhiskRule): Promise<void> {
    await this.triggers.setLink(referenceId(rule.trigger), idOf(rule), undefined);
  }

  /** Removes the mark from a link after a failed write. A concurrent write may already have set the action. */
  private async unmark(stored: WhiskRule, { status }: RuleLink): Promise<void> {
    const rule = await findStoredEntity(this.store, idOf(stored), readRule);
    if (rule !== undefined && referenceId(rule.trigger) === referenceId(stored.trigger)) await this.link(rule, status);
  }

  private async restoreLink(rule: WhiskRule, link: RuleLink | undefined): Promise<void> {
    if (link !== undefined) await this.triggers.setLink(referenceId(rule.trigger), idOf(rule), link);
  }
}

function idOf({ namespace, name }: WhiskRule): string {
  return `${namespace}/${name}`;
}

/** The status of a rule by its link; a rule without a link is inactive. */
function statusOf(link: RuleLink | undefined): RuleStatus {
  return link?.status ?? 'inactive';
}

/** Does `work`. If that fails, calls `undo` for the earlier steps and throws the failure. */
async function orElse<T>(work: () => Promise<T>, undo: () => Promise<unknown>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    try {
      await undo();
    } catch (undoError) {
      const text = 'a write failed, and its earlier steps could not be undone';
      throw new AggregateError([error, undoError], text, { cause: undoError });
    }
    throw error;
  }
}

/** Checks a target. Every error except a lack of rights becomes an error of the request. */
async function targetExists(
  kind: 'trigger' | 'action',
  target: EntityReference,
  check: () => Promise<unknown>,
): Promise<void> {
  try {
    await check();
  } catch (error) {
    if (!isApiError(error) || error.status === 403) throw error;
    throw error.status === 404 ? ruleTargetMissing(kind, referenceId(target)) : notAllowed(error.message);
  }
}

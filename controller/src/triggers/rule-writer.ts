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

/** A rule and whether it takes part in fires. */
export interface RuleWithStatus {
  rule: WhiskRule;
  status: RuleStatus;
}

/** How a PUT is done. */
export interface RulePutOptions {
  overwrite: boolean;
  /** Epoch ms. */
  nowMs: number;
  /** Resolves if the caller may use the action. Throws ApiError (403, 404, 409, 500). */
  checkAction: (action: EntityReference) => Promise<unknown>;
}

/**
 * Reads and writes rules; `id` is `ns/rule`. A rule is a document and a link in its trigger's document, which no store
 * writes at once. The document is written first and goes last, so that what a crash leaves between the two is a rule
 * that can be seen, updated, enabled and deleted, and never a link that no rule stands for. While an update changes
 * the action, the link is marked, so that its readers ask the document. What fails is undone.
 */
export class RuleWriter {
  /** One write of a rule at a time. A rule's turn may wait for its trigger's, never the other way round. */
  private readonly writes = new KeyQueue();

  constructor(
    private readonly store: ArtifactStore,
    private readonly triggers: TriggerWriter,
  ) {}

  /** Throws ApiError (404, 409, 500). */
  async read(id: string): Promise<RuleWithStatus> {
    const rule = await readStoredEntity(this.store, id, readRule);
    return { rule, status: statusOf(await this.findLink(rule)) };
  }

  /** Creates a rule, active, or, where `overwrite`, updates one. Throws ApiError. */
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

  /** Makes a rule take part in fires, or not. Throws ApiError (404, 409, 500). */
  setStatus(id: string, status: RuleStatus): Promise<void> {
    return this.writes.run(id, async () => {
      const rule = await readStoredEntity(this.store, id, readRule);
      const old = statusOf(await this.findLink(rule));
      if (old === status) return;
      const linked = await this.triggers.setLink(referenceId(rule.trigger), id, { action: rule.action, status });
      if (!linked) throw ruleTriggerGone();
    });
  }

  /** The trigger with links as their rules have them, where a write of a rule did not come to its end. Throws ApiError. */
  async settled(trigger: WhiskTrigger): Promise<WhiskTrigger> {
    const rules = new Map(trigger.rules);
    for (const [id, link] of rules) {
      if (link.replacing !== undefined) rules.set(id, await this.writes.run(id, () => this.settledLink(id, link)));
    }
    return trigger.rules === undefined ? trigger : { ...trigger, rules };
  }

  /** A link's action and status now; a mark whose write another controller may still do stays. */
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
    // Before the document forgets which trigger it was.
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

  /** The rule's link; undefined where there is none, or no readable trigger to hold it. */
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
    // It was there when the targets were checked.
    if (!linked) throw ruleTargetMissing('trigger', trigger);
  }

  private async unlink(rule: WhiskRule): Promise<void> {
    await this.triggers.setLink(referenceId(rule.trigger), idOf(rule), undefined);
  }

  /** Takes the mark off a link after a failed write; a faster write has said which action it is. */
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

/** A rule that its trigger does not know is inactive. */
function statusOf(link: RuleLink | undefined): RuleStatus {
  return link?.status ?? 'inactive';
}

/** Does `work`; where that fails, undoes what came before it and throws the failure. */
async function orElse<T>(work: () => Promise<T>, undo: () => Promise<unknown>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    try {
      await undo();
    } catch (undoError) {
      const text = 'a write failed, and undoing what came before it failed too';
      throw new AggregateError([error, undoError], text, { cause: undoError });
    }
    throw error;
  }
}

/** Whatever keeps a target from being used, but a lack of rights, is a mistake of the request. */
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

import type { ActionCache, ActionWriter } from '../actions/action-store.js';
import type { ActionResolver } from '../actions/action-resolver.js';
import type { Identities } from '../authentication/authentication.js';
import type { ComposingInvoker } from '../compose/composing-invoker.js';
import type { Throttles } from '../entitlement/throttles.js';
import type { InvokeService } from '../invoke/invoke-service.js';
import type { PackageCache, PackageWriter } from '../packages/package-store.js';
import type { RuleWriter } from '../triggers/rule-writer.js';
import type { TriggerWriter } from '../triggers/trigger-writer.js';
import type { ControllerDependencies } from './dependencies.js';

/** All that the resources of the API share; each takes a Pick of what it uses. */
export interface ApiContext extends ControllerDependencies {
  /** Runs actions of every sort. */
  invoker: ComposingInvoker;
  /** Runs actions that have code of their own. */
  primitive: InvokeService;
  actions: ActionCache;
  actionResolver: ActionResolver;
  actionWriter: ActionWriter;
  packages: PackageCache;
  packageWriter: PackageWriter;
  identities: Identities;
  /** To be asked before every invocation and fire. */
  throttles: Throttles;
  triggerWriter: TriggerWriter;
  ruleWriter: RuleWriter;
}

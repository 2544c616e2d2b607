// The interface of policy modules (`gpu.policyModules`): what a module exports, and the types of its stages.
// docs/policy-modules.md describes it.
import type { LedgerPlace, Scores } from './place/place.js';
import type { TokenPolicy } from './tokens/token-policies.js';
import type { TokenColumns } from './tokens/token-machine.js';
import type { Capabilities, Settings, StageName, StageNeeds, Stages } from './policies/stages.js';

export type { Admit } from './admit/admit.js';
export type { Geometry } from './geometry/geometry.js';
export type { Order, Turn } from './order/order.js';
export type { Pass, Planned, Planner } from './order/plan.js';
export type { Refusal } from './place/fact-filters.js';
export type { LedgerPlace, Scores };
export type { Preempt } from './preempt/preempt.js';
export type { Procure } from './procure/procure.js';
export type { Scale } from './scale/scale.js';
export type { ShareOut } from './share/share.js';
export type { TokenColumns, TokenPolicy };
export type { Action, Decision, Start } from './view/decision.js';
export type { Task, View } from './view/view.js';
export type { Settings, StageName, StageNeeds, Stages };

/** Version of the interface; a module of another version is refused. */
export type InterfaceVersion = 1;

/** What a module's implementations of each stage are: a place stage gives scores, or searches the ledger by itself. */
export type ModuleStages = Omit<Stages, 'place'> & { place: Scores | LedgerPlace };

/** An implementation of a stage in a module. */
export interface ModuleStage<Stage> extends Capabilities {
  /** Its settings with their defaults, numbers from 0; absent: none. */
  settings?: Settings;
  /** Makes the stage for one policy; `settings` has all of them as they are in force. */
  make(needs: StageNeeds, settings: Settings): Stage;
}

/** A policy in a module: names of stages, the module's own, those of other modules and the platform's. */
export interface ModulePolicy extends Partial<Record<StageName, string>> {
  /** One line. */
  summary: string;
  admit: string;
  /** Settings of its stages; absent: the defaults. */
  settings?: Settings;
  /** It uses no measurements of functions, so that no samples are run for it. */
  needsNoProfiles?: boolean;
  /** A task that arrives while the queue is empty is placed at once. */
  takesAsTheyCome?: boolean;
}

/** The default export of a policy module. */
export interface PolicyModule {
  version: InterfaceVersion;
  /** By name: small letters, digits and hyphens. */
  policies?: Readonly<Record<string, ModulePolicy>>;
  stages?: { readonly [Name in StageName]?: Readonly<Record<string, ModuleStage<ModuleStages[Name]>>> };
  /** Token policies, of which `gpu.tokens` names one. */
  tokens?: Readonly<Record<string, { make(columns: TokenColumns): TokenPolicy }>>;
}

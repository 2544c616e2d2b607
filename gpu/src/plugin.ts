// The interface of policy modules (`gpu.policyModules`): what a module exports, and the types of its stages.
// docs/policy-modules.md describes it.
import type { LedgerPlace, Scores } from './stages/place/place.js';
import type { TokenPolicy } from './tokens/token-policies.js';
import type { TokenColumns } from './tokens/token-machine.js';
import type { PolicyRecord, Settings } from './stages/policy-record.js';
import type { Capabilities, StageName, StageNeeds, Stages } from './policies/stages.js';

export type { Admit } from './stages/admit/admit.js';
export type { Geometry } from './stages/geometry/geometry.js';
export type { Order, Turn } from './stages/order/order.js';
export type { Pass, Planned, Planner } from './stages/order/plan.js';
export type { Refusal } from './stages/place/fact-filters.js';
export type { LedgerPlace, Scores };
export type { Preempt } from './stages/preempt/preempt.js';
export type { Procure } from './stages/procure/procure.js';
export type { Scale } from './stages/scale/scale.js';
export type { ShareOut } from './stages/share/share.js';
export type { TokenColumns, TokenPolicy };
export type { Action, Decision, Start } from './view/decision.js';
export type { Task, View } from './view/view.js';
export type { PolicyRecord, Settings, StageName, StageNeeds, Stages };

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

/** The default export of a policy module. */
export interface PolicyModule {
  version: InterfaceVersion;
  /** By name: small letters, digits and hyphens. Stages are the module's own, those of other modules and the platform's. */
  policies?: Readonly<Record<string, PolicyRecord>>;
  stages?: { readonly [Name in StageName]?: Readonly<Record<string, ModuleStage<ModuleStages[Name]>>> };
  /** Token policies, of which `gpu.tokens` names one. */
  tokens?: Readonly<Record<string, { make(columns: TokenColumns): TokenPolicy }>>;
}

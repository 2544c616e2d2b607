import { actionAnnotationCases } from './cases/action-annotations.js';
import { actionLimitCases } from './cases/action-limits.js';
import { actionRefusalCases } from './cases/action-refusals.js';
import { actionCases } from './cases/actions.js';
import { activationCases } from './cases/activations.js';
import { apiRefusalCases } from './cases/api-refusals.js';
import { authenticationCases } from './cases/authentication.js';
import { bindingCases } from './cases/bindings.js';
import { concurrencyCases } from './cases/concurrency.js';
import { conductorCases } from './cases/conductors.js';
import { conflictCases } from './cases/conflicts.js';
import { documentCases } from './cases/documents.js';
import { encryptionCases } from './cases/encryption.js';
import { entitlementCases } from './cases/entitlement.js';
import { gatewayCases } from './cases/gateway.js';
import { headerCases } from './cases/headers.js';
import { infoCases } from './cases/info.js';
import { invocationCases } from './cases/invocation.js';
import { listCases } from './cases/lists.js';
import { languageCases } from './cases/languages.js';
import { packageCases } from './cases/packages.js';
import { programCases } from './cases/programs.js';
import { resultCases } from './cases/results.js';
import { ruleLinkCases } from './cases/rule-links.js';
import { ruleCases } from './cases/rules.js';
import { runtimeCases } from './cases/runtime.js';
import { schemaCases } from './cases/schemas.js';
import { sequenceCases } from './cases/sequences.js';
import { throttleCases } from './cases/throttles.js';
import { triggerCases } from './cases/triggers.js';
import { unreadableCases } from './cases/unreadable.js';
import { webActionCases } from './cases/web-actions.js';
import { webAnswerCases } from './cases/web-answers.js';
import { wskActionCases } from './cases/wsk-actions.js';
import { wskActivationCases } from './cases/wsk-activations.js';
import { wskArgumentCases } from './cases/wsk-arguments.js';
import { wskApiCases } from './cases/wsk-api.js';
import { wskEntityCases } from './cases/wsk-entities.js';
import { wskInvocationCases } from './cases/wsk-invocations.js';
import { wskPackageCases } from './cases/wsk-packages.js';
import { wskPropertyCases } from './cases/wsk-properties.js';
import { wskSdkCases } from './cases/wsk-sdk.js';
import { wskTriggerCases } from './cases/wsk-triggers.js';
import { wskWebActionCases } from './cases/wsk-web-actions.js';
import type { ConformanceCase } from './conformance-case.js';

/** All cases, by area. */
export const conformanceCases: readonly ConformanceCase[] = [
  ...authenticationCases,
  ...infoCases,
  ...actionCases,
  ...actionAnnotationCases,
  ...actionRefusalCases,
  ...listCases,
  ...packageCases,
  ...bindingCases,
  ...triggerCases,
  ...ruleCases,
  ...ruleLinkCases,
  ...invocationCases,
  ...resultCases,
  ...sequenceCases,
  ...conductorCases,
  ...activationCases,
  ...entitlementCases,
  ...webActionCases,
  ...webAnswerCases,
  ...actionLimitCases,
  ...throttleCases,
  ...programCases,
  ...apiRefusalCases,
  ...concurrencyCases,
  ...gatewayCases,
  ...runtimeCases,
  ...headerCases,
  ...schemaCases,
  ...conflictCases,
  ...encryptionCases,
  ...unreadableCases,
  ...documentCases,
  ...languageCases,
  ...wskPropertyCases,
  ...wskApiCases,
  ...wskSdkCases,
  ...wskPackageCases,
  ...wskInvocationCases,
  ...wskTriggerCases,
  ...wskEntityCases,
  ...wskActionCases,
  ...wskActivationCases,
  ...wskWebActionCases,
  ...wskArgumentCases,
];

import { actionRoutes } from './actions.js';
import { adminDataRoutes } from './admin-data.js';
import { adminRoutes } from './admin.js';
import { activationRoutes } from './activations.js';
import type { ApiContext } from './api-context.js';
import { docsRoutes } from './docs.js';
import { gpuDecisionRoutes } from './gpu-decisions.js';
import { gpuLearnedRoutes } from './gpu-learned.js';
import { gpuRoutes } from './gpu.js';
import { gpuInstanceRoutes } from './gpu-instances.js';
import { gpuPolicyRoutes } from './gpu-policy.js';
import { healthRoutes } from './health.js';
import { infoRoutes } from './info.js';
import { namespaceRoutes } from './namespaces.js';
import { packageRoutes } from './packages.js';
import type { Route } from '../http/route.js';
import { refusedRecordRoutes } from './refused-records.js';
import { ruleRoutes } from './rules.js';
import { sdkRoutes } from './sdk.js';
import { triggerRoutes } from './triggers.js';
import { webRoutes } from './web-routes.js';

/** Every route of the controller. */
export function createRoutes(context: ApiContext): Route[] {
  const routes: Route[] = [
    ...infoRoutes(context),
    ...healthRoutes(context),
    ...docsRoutes(() => routes),
    ...sdkRoutes(),
    ...namespaceRoutes(context),
    ...adminRoutes(context),
    ...adminDataRoutes(context),
    ...refusedRecordRoutes(context),
    ...gpuRoutes(context),
    ...gpuInstanceRoutes(context),
    ...gpuPolicyRoutes(context),
    ...gpuDecisionRoutes(context),
    ...gpuLearnedRoutes(context),
    ...actionRoutes(context),
    ...packageRoutes(context),
    ...activationRoutes(context),
    ...triggerRoutes(context),
    ...ruleRoutes(context),
    ...webRoutes(),
  ];
  return routes;
}

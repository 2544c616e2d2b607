import { apisOf, callGateway } from '../commands/api/gateway.js';
import { asMap, asText } from '../json/json.js';
import { parseJson } from '../json/parse.js';
import { clientError, find, removeIfThere, routes, withRetries, type Deployer } from './deployer.js';
import { tellFeed } from './feeds.js';
import { apiLabel, isDefaultPackage, pathOf, type Plan, type PlannedApi, type PlannedDependency } from './plan.js';

/** What of a plan is needed to take it off the platform. */
export type Removable = Pick<Plan, 'apis'> & {
  swagger?: string;
  packages: Map<
    string,
    { actions: Map<string, { name: string; isSequence: boolean }>; dependencies: Map<string, PlannedDependency> }
  >;
  triggers: Map<string, { name: string; feed: string }>;
  rules: Map<string, { name: string }>;
};

/** Deletes what a plan describes as far as it is there, in the reverse order. */
export async function undeploy(
  plan: Removable,
  deployer: Deployer,
  undeployFolder: (name: string, dependency: PlannedDependency) => Promise<void>,
): Promise<void> {
  if (plan.swagger !== undefined) await removeSwagger(deployer, plan.swagger);
  for (const api of plan.apis) await removeApi(deployer, api);
  for (const { name } of plan.rules.values()) await removeIfThere(deployer, 'rule', name, routes.rule(name));
  for (const { name, feed } of plan.triggers.values()) await removeTrigger(deployer, name, feed);
  for (const isSequence of [true, false]) {
    for (const [packageName, { actions }] of plan.packages) {
      for (const action of actions.values()) {
        if (action.isSequence !== isSequence) continue;
        const name = pathOf(packageName, action.name);
        await removeIfThere(deployer, 'action', name, routes.action(name));
      }
    }
  }
  for (const name of plan.packages.keys()) {
    if (!isDefaultPackage(name)) await removeIfThere(deployer, 'package', name, routes.package(name));
  }
  for (const { dependencies } of plan.packages.values()) {
    for (const [name, dependency] of dependencies) {
      if (dependency.isBinding) await removeIfThere(deployer, 'package binding', name, routes.package(name));
      else await undeployFolder(name, dependency);
    }
  }
}

/** Deletes a trigger after telling its feed, if both are there. @throws WskError if the feed refuses. */
export async function removeTrigger(deployer: Deployer, name: string, feed: string): Promise<void> {
  if (feed !== '' && (await find(deployer, routes.trigger(name)))) {
    try {
      await tellFeed(deployer, feed, name, 'DELETE', new Map());
    } catch (error) {
      throw clientError(error);
    }
  }
  await removeIfThere(deployer, 'trigger', name, routes.trigger(name));
}

async function removeApi(deployer: Deployer, api: PlannedApi): Promise<void> {
  const { basePath: basepath, path: relpath, verb: operation } = api;
  deployer.info(`Undeploying api [${apiLabel(api)}]...\n`);
  await deleteRoutes(deployer, { basepath, relpath, operation });
  deployer.info(`api [${apiLabel(api)}] has been successfully undeployed.\n\n`);
}

function removeSwagger(deployer: Deployer, swagger: string): Promise<void> {
  return deleteRoutes(deployer, { basepath: asText(asMap(parseJson(swagger)).get('basePath')) });
}

async function deleteRoutes(
  deployer: Deployer,
  which: { basepath: string; relpath?: string; operation?: string },
): Promise<void> {
  const { client, settings } = deployer;
  try {
    const found = apisOf(await callGateway(client, settings, 'GET', which));
    if (found.length === 0) return;
    await withRetries(deployer, () => callGateway(client, settings, 'DELETE', which));
  } catch (error) {
    throw clientError(error);
  }
}

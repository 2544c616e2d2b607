import { toKeyValues } from '../args/parameters.js';
import { parseQualifiedName } from '../args/qualified-name.js';
import { apiDocAction, apiDocument, apisOf, callGateway, checkApi, pathParameters } from '../client/gateway.js';
import { asMap, asText, body, type Json, type JsonMap } from '../json/json.js';
import { parseJson } from '../json/parse.js';
import {
  clientError,
  deploying,
  find,
  put,
  removeIfThere,
  routes,
  tellFeed,
  withRetries,
  type Deployer,
} from './deployer.js';
import { qualified } from './inputs.js';
import {
  apiLabel,
  isDefaultPackage,
  pathOf,
  type Plan,
  type PlannedAction,
  type PlannedApi,
  type PlannedDependency,
  type PlannedPackage,
  type PlannedRule,
  type PlannedTrigger,
} from './plan.js';

/**
 * Puts packages and their actions, triggers, rules and routes on the platform, in this order; replaces existing ones.
 */
export async function deploy(
  plan: Plan,
  deployer: Deployer,
  deployFolder: (name: string, dependency: PlannedDependency) => Promise<void>,
): Promise<void> {
  const packages = [...plan.packages.values()];
  for (const planned of packages) await putPackage(deployer, planned);
  for (const { dependencies } of packages) {
    for (const [name, dependency] of dependencies) {
      if (dependency.isBinding) await putBinding(deployer, name, dependency);
      else await deployFolder(name, dependency);
    }
  }
  for (const isSequence of [false, true]) {
    for (const { name, actions } of packages) {
      const chosen = [...actions.values()].filter((action) => action.isSequence === isSequence);
      for (const action of chosen) await putAction(deployer, name, action);
    }
  }
  for (const trigger of plan.triggers.values()) await putTrigger(deployer, trigger);
  for (const rule of plan.rules.values()) await putRule(deployer, rule);
  if (plan.swagger !== undefined) await postSwagger(deployer, plan.swagger);
  else for (const api of plan.apis) await postApi(deployer, api, plan);
}

/** Creates or updates a package; the default package needs no creation. */
export async function putPackage(deployer: Deployer, planned: PlannedPackage): Promise<void> {
  const { name, version, publish, annotations, parameters } = planned;
  if (isDefaultPackage(name)) return;
  const lists = { annotations: toKeyValues(annotations), parameters: toKeyValues(parameters) };
  await put(deployer, 'package', name, routes.package(name), body({ name, version, publish, ...lists }));
}

/** Creates or updates a binding. */
export async function putBinding(
  deployer: Deployer,
  name: string,
  { location, annotations, parameters }: Omit<PlannedDependency, 'isBinding'>,
): Promise<void> {
  const provider = parseQualifiedName(location);
  const entity = body({
    publish: false,
    annotations: toKeyValues(annotations),
    parameters: toKeyValues(parameters),
    binding: body({ namespace: provider.namespace, name: provider.path }),
  });
  await put(deployer, 'package binding', name, routes.package(name), entity);
}

async function putAction(deployer: Deployer, packageName: string, action: PlannedAction): Promise<void> {
  const name = pathOf(packageName, action.name);
  const entity = body({
    name,
    version: action.version || undefined,
    exec: action.exec,
    annotations: toKeyValues(action.annotations),
    parameters: toKeyValues(action.parameters),
    limits: action.limits.size > 0 ? action.limits : undefined,
    publish: false,
  });
  await put(deployer, 'action', name, routes.action(name), entity);
}

async function putTrigger(deployer: Deployer, trigger: PlannedTrigger): Promise<void> {
  const { name, feed, parameters } = trigger;
  const annotations = toKeyValues(trigger.annotations);
  const route = routes.trigger(name);
  if (feed === '') {
    const entity = body({ name, annotations, parameters: toKeyValues(parameters), publish: false });
    return put(deployer, 'trigger', name, route, entity);
  }
  // Feeds have no update: an existing trigger is first removed from its feed, which may refuse.
  if (await find(deployer, route)) await attempt(() => tellFeed(deployer, feed, name, 'DELETE', new Map()));
  await put(deployer, 'trigger', name, route, body({ name, annotations, publish: true }));
  try {
    await deploying(deployer, 'trigger feed', name, () => tellFeed(deployer, feed, name, 'CREATE', parameters));
  } catch (error) {
    await attempt(() => deployer.client.delete(deployer.namespace, route));
    throw error;
  }
}

/** Ignores a failed request of a step whose failure changes neither later steps nor the report. */
async function attempt(step: () => Promise<unknown>): Promise<void> {
  try {
    await step();
  } catch (error) {
    clientError(error); // rethrows all but failed requests
  }
}

async function putRule(deployer: Deployer, rule: PlannedRule): Promise<void> {
  const { name } = rule;
  const entity = body({
    name,
    annotations: toKeyValues(rule.annotations),
    status: '',
    trigger: qualified(deployer.namespace, rule.trigger),
    action: qualified(deployer.namespace, rule.action),
    publish: false,
  });
  await put(deployer, 'rule', name, routes.rule(name), entity);
  const active = body({ status: 'active', trigger: null, action: null });
  try {
    await withRetries(deployer, () => deployer.client.post(deployer.namespace, routes.rule(name), active));
  } catch (error) {
    throw clientError(error);
  }
}

async function postApi(deployer: Deployer, api: PlannedApi, plan: Plan): Promise<void> {
  const { client, namespace, settings } = deployer;
  const { apiName, basePath, path, verb, packageName, actionName, responseType } = api;
  const url = `${client.base}/v1/web/${namespace}/${packageName}/${actionName}.http`;
  const name = { path: pathOf(packageName, actionName), namespace };
  const action = apiDocAction(name, url, verb, settings.auth);
  const secret = plan.packages.get(packageName)?.actions.get(actionName)?.annotations.get('require-whisk-auth');
  if (secret !== undefined) action.set('secureKey', secret);
  const parameters = pathParameters(path);
  const document = apiDocument({ namespace, apiName, basePath, path, verb, parameters }, action);
  await deploying(deployer, 'api', apiLabel(api), () => create(deployer, document, responseType));
}

function postSwagger(deployer: Deployer, swagger: string): Promise<void> {
  const document = new Map([
    ['namespace', deployer.namespace],
    ['swagger', swagger],
  ]);
  return deploying(deployer, 'api', 'swagger', () => create(deployer, document, ''));
}

async function create({ client, settings }: Deployer, document: JsonMap, responsetype: string): Promise<void> {
  const request = new Map<string, Json>([['apidoc', document]]);
  checkApi(asMap(await callGateway(client, settings, 'POST', { responsetype }, request)));
}

/** The parts of a plan that are needed to remove it from the platform. */
export type Removable = Pick<Plan, 'apis'> & {
  swagger?: string;
  packages: Map<
    string,
    { actions: Map<string, { name: string; isSequence: boolean }>; dependencies: Map<string, PlannedDependency> }
  >;
  triggers: Map<string, { name: string; feed: string }>;
  rules: Map<string, { name: string }>;
};

/** Deletes a plan's existing entities, in the reverse order. */
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

/** Deletes a trigger after notifying its feed, if both exist. @throws WskError if the feed refuses. */
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

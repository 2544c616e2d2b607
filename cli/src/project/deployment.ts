import { asMap, type JsonMap } from '../json/json.js';
import { interpolateAll } from './environment.js';
import { fileError } from './errors.js';
import { textOf, type Manifest } from './manifest.js';
import type { Plan } from './plan.js';

/** What a deployment file can change. */
interface Changeable {
  parameters: JsonMap;
  annotations: JsonMap;
}

/**
 * Puts a deployment file's inputs and annotations over those of the plan; the command line's values stay on top.
 * @throws WskError if the file is about another project.
 */
export function applyDeployment(
  plan: Plan,
  manifest: Manifest,
  deployment: Manifest,
  commandLine: JsonMap,
  warn: (message: string) => void,
): void {
  const [own, theirs] = [textOf(manifest.project, 'name'), textOf(deployment.project, 'name')];
  if (manifest.inProject && deployment.inProject && own !== '' && own !== theirs) {
    const message = `The project named [${theirs}] in deployment file [${deployment.file}] does not match the name [${own}] in manifest file [${manifest.file}].`;
    throw fileError('ERROR_YAML_FILE_FORMAT_ERROR', manifest.file, message);
  }
  const change = (kind: string, name: string, target: Changeable | undefined, declared: JsonMap): void => {
    if (target) bind(target, declared, commandLine);
    else warn(`The ${kind} [${name}] in the deployment file was not found in the manifest file.\n`);
  };
  for (const [name, declared] of deployment.packages) {
    const planned = plan.packages.get(name);
    change('package', name, planned, declared);
    for (const [actionName, action] of asMap(declared.get('actions'))) {
      change('action', actionName, planned?.actions.get(actionName), asMap(action));
    }
    for (const [triggerName, trigger] of asMap(declared.get('triggers'))) {
      change('trigger', triggerName, plan.triggers.get(triggerName), asMap(trigger));
    }
  }
}

function bind(target: Changeable, declared: JsonMap, commandLine: JsonMap): void {
  for (const [name, input] of asMap(declared.get('inputs'))) {
    const given = commandLine.get(name) ?? asMap(input).get('value') ?? asMap(input).get('default') ?? null;
    target.parameters.set(name, interpolateAll(given));
  }
  for (const [name, value] of asMap(declared.get('annotations'))) target.annotations.set(name, interpolateAll(value));
}

import { parseQualifiedName } from '../args/qualified-name.js';
import { encodePath } from '../client/api-host.js';
import { sortKeys, type Json, type JsonMap } from '../json/json.js';
import { withRetries, type Deployer } from './deployer.js';

/** Invokes a trigger's feed and waits for its answer. */
export function tellFeed(
  deployer: Deployer,
  feedName: string,
  trigger: string,
  lifecycleEvent: 'CREATE' | 'READ' | 'DELETE',
  parameters: JsonMap,
  result = false,
): Promise<Json> {
  const feed = parseQualifiedName(feedName);
  const lifecycle: [string, Json][] = [
    ['authKey', deployer.settings.auth],
    ['lifecycleEvent', lifecycleEvent],
    ['triggerName', `/${deployer.namespace}/${trigger}`],
  ];
  const body = sortKeys(new Map([...parameters, ...lifecycle]));
  const route = `actions/${encodePath(feed.path)}`;
  return withRetries(deployer, () => deployer.client.invoke(feed.namespace, route, body, { blocking: true, result }));
}

import { encodePath } from '../../client/api-host.js';
import type { Client } from '../../client/client.js';
import { wrapError } from '../../errors.js';
import { asList, asMap, asText, type Json, type JsonMap } from '../../json/json.js';

/** A list of rules with the status of each, which the server's lists lack. */
export async function withStatus(client: Client, namespace: string, rules: Json): Promise<JsonMap[]> {
  const complete: JsonMap[] = [];
  for (const rule of asList(rules).map(asMap)) {
    const name = asText(rule.get('name'));
    try {
      const found = asMap(await client.get(namespace, `rules/${encodePath(name)}`));
      complete.push(new Map([...rule, ['status', found.get('status') ?? '']]));
    } catch (error) {
      throw wrapError(error, `Unable to get status of rule '${name}'`);
    }
  }
  return complete;
}

import { isJsonObject } from '@gpuwhisk/common/json';
import type { JsonObject } from '@gpuwhisk/common/json';
import type { CouchClient } from './couchdb-client.js';

/** The first version that locks out accounts whose logins fail. */
const lockoutSince = [3, 4];

/**
 * Settings of a server that are known to harm, a line each; docs/failure-modes.md says what to do about them. Most of them are
 * shown to administrators only: what this account may not see, or the server does not tell, is left out.
 */
export async function serverWarnings(client: CouchClient): Promise<string[]> {
  const ask = async (path: string): Promise<JsonObject> => {
    const answer = await client.send({ path }).catch(() => undefined);
    return isJsonObject(answer) ? answer : {};
  };
  const [root, versions, lockout, membership] = await Promise.all(
    ['', '_node/_local/_versions', '_node/_local/_config/chttpd_auth_lockout', '_membership'].map(ask),
  );
  const warnings: string[] = [];
  const engine = isJsonObject(versions?.javascript_engine) ? versions.javascript_engine.name : undefined;
  if (engine === 'spidermonkey') {
    warnings.push(
      "its views run in SpiderMonkey, whose heap is 64 MiB unless couchjs has the flag -S: a document of some MB ends it, and a view's lists with it",
    );
  }
  // Only who may read the versions may read the configuration, where an absent setting is the default.
  if (engine !== undefined && hasLockout(root?.version) && (lockout?.mode ?? 'enforce') === 'enforce') {
    warnings.push(
      'it locks out an account after a few failed logins (chttpd_auth_lockout): one process with a wrong password locks out all with its account that come from its address',
    );
  }
  const nodes = membership?.cluster_nodes;
  if (Array.isArray(nodes) && nodes.length > 1) {
    warnings.push(
      `it is a cluster of ${nodes.length} nodes: its address must lead to one of them at a time, since of two writers at two nodes both may win`,
    );
  }
  return warnings;
}

function hasLockout(version: unknown): boolean {
  const [major = 0, minor = 0] = String(version).split('.').map(Number);
  const [sinceMajor = 0, sinceMinor = 0] = lockoutSince;
  return major > sinceMajor || (major === sinceMajor && minor >= sinceMinor);
}

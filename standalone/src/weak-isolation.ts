import type { Config } from '@gpuwhisk/common/config';
import { IsolationError } from '@gpuwhisk/invoker/containers/container-factory';

const loopback = /^(localhost|127(\.\d{1,3}){3}|::1)$/i;

/**
 * Throws IsolationError for measures of isolation that the host forbids, unless the configuration allows to do without, or
 * says nothing and only programs of this machine can reach the API.
 */
export function refuseWeakIsolation(
  { allowWeakIsolation, host }: Pick<Config, 'allowWeakIsolation' | 'host'>,
  weaknesses: readonly string[],
  inCluster: boolean,
): void {
  const onlyLocal = !inCluster && loopback.test(host);
  if (weaknesses.length === 0 || (allowWeakIsolation ?? onlyLocal)) return;
  const why = inCluster
    ? 'an invoker of a cluster'
    : onlyLocal
      ? 'a server with allowWeakIsolation=false'
      : `a server at '${host}'`;
  const list = weaknesses.map((line) => line.replace(/\.$/, '')).join('; ');
  throw new IsolationError(
    `This host forbids measures of isolation that ${why} does not do without, unless it is given --allow-weak-isolation: ${list}.`,
  );
}

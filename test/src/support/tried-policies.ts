import { policies } from '@gpuwhisk/gpu/policies/registry';

function shareOf(name = ''): string | undefined {
  const record = policies[name];
  return record !== undefined && 'share' in record ? record.share : undefined;
}

/** Every policy with a plan, and of the others one for each share stage: a scheduler serves their orders and places alike. */
export const triedPolicies: readonly string[] = Object.keys(policies).filter((name, at, names) => {
  const share = shareOf(name);
  return share === undefined || names.findIndex((other) => shareOf(other) === share) === at;
});

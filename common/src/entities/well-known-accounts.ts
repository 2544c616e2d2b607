/** An account with one namespace. */
export interface WellKnownAccount {
  subject: string;
  namespace: string;
  uuid: string;
  /** 64 characters. */
  key: string;
}

/** OpenWhisk's well-known guest account; standalone only. */
export const guest: WellKnownAccount = {
  subject: 'guest',
  namespace: 'guest',
  uuid: '23bc46b1-71f6-4ed5-8c54-816aa4f8c502',
  key: '123zO3xZCLrMN6v2BKK1dXYFpXlPkccOFqm12CdAsMgRU4VrNZ9lyGVCGuMDGIwP',
};

/** OpenWhisk's well-known system account; standalone only. */
export const whiskSystem: WellKnownAccount = {
  subject: 'whisk.system',
  namespace: 'whisk.system',
  uuid: '789c46b1-71f6-4ed5-8c54-816aa4f8c502',
  key: 'abczO3xZCLrMN6v2BKK1dXYFpXlPkccOFqm12CdAsMgRU4VrNZ9lyGVCGuMDGIwP',
};

const publishedSecrets = [guest.key, whiskSystem.key];

/** Whether the secret of a `uuid:secret` is one that OpenWhisk's sources publish. */
export function hasPublishedSecret(authkey: string): boolean {
  return publishedSecrets.includes(authkey.slice(authkey.indexOf(':') + 1));
}

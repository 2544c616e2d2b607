/** An account with one namespace of its own name. */
export interface StandaloneIdentity {
  subject: string;
  namespace: string;
  uuid: string;
  key: string;
}

/** OpenWhisk's well-known guest account; standalone only. */
export const guest: StandaloneIdentity = {
  subject: 'guest',
  namespace: 'guest',
  uuid: '23bc46b1-71f6-4ed5-8c54-816aa4f8c502',
  key: '123zO3xZCLrMN6v2BKK1dXYFpXlPkccOFqm12CdAsMgRU4VrNZ9lyGVCGuMDGIwP',
};

/** OpenWhisk's well-known system account; standalone only. */
export const whiskSystem: StandaloneIdentity = {
  subject: 'whisk.system',
  namespace: 'whisk.system',
  uuid: '789c46b1-71f6-4ed5-8c54-816aa4f8c502',
  key: 'abczO3xZCLrMN6v2BKK1dXYFpXlPkccOFqm12CdAsMgRU4VrNZ9lyGVCGuMDGIwP',
};

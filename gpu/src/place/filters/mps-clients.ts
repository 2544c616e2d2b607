import { mpsClientLimit } from '@gpuwhisk/common/gpu';
import type { FactFilter } from './fact-filter.js';

/** An MPS server has a limit of clients, idle instances included. */
export const mpsClients: FactFilter = {
  code: 'clients',
  refuses: ({ mode, clients }, _, joined) => mode === 'mps' && joined === undefined && clients >= mpsClientLimit,
  explain: ({ clients }) => ({ reason: 'it has as many clients as MPS serves', numbers: { clients } }),
};

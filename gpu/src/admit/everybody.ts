import type { Admit } from './admit.js';

/** Everybody goes on, late or not. */
export const everybody: Admit = ({ waiting }) => ({ tasks: waiting, hopeless: new Map() });

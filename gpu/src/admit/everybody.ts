import type { Admit } from './admit.js';

/** Admits every task, late or not. */
export const everybody: Admit = ({ waiting }) => ({ tasks: waiting, hopeless: new Map() });

/** Imports the module at an address and gives its namespace. Rejects with what it throws, or a SyntaxError. */
export const importModule = (address: string): Promise<unknown> => import(address);

/** Sorts after every time and every name of a view's key. */
export const afterAll = '\ufff0';

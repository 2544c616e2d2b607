// Work that npm start does behind the running server (scripts/behind.mjs). Other processes have none: all is built before them.

/** Groups of native parts (native/build.mjs), and the packages of actions in these languages. */
type Work = 'injection' | 'gpu' | 'standIn' | 'nodejs' | 'python';

interface Behind {
  isComing(work: Work): boolean;
  ready(work: Work): Promise<void>;
}

const key = Symbol.for('gpuwhisk.behind');
const behind = (): Behind | undefined => (globalThis as { [key]?: Behind })[key];

/** Whether the work is under way. */
export const isComing = (work: Work): boolean => behind()?.isComing(work) ?? false;

/** Resolves when the work is done, at once if it is not under way. Rejects with an Error of one line if it failed. */
export const whenReady = (work: Work): Promise<void> => behind()?.ready(work) ?? Promise.resolve();

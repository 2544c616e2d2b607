import type { ImageFacts } from './engine.js';

/** Labels of our images (the first four) and of the containers that are made of any. */
export const labels = {
  /** `framed`: its runtime connects to the mounted socket and speaks the framed protocol. Absent: `/init` and `/run`. */
  protocol: 'gpuwhisk.protocol',
  /** The program, a JSON list of words, that makes a container of it one that functions are injected into. */
  pair: 'gpuwhisk.pair',
  /** `true`: functions are unloaded by a proxy, from outside of their process. */
  traces: 'gpuwhisk.traces',
  /** The program, a JSON list of words, that makes a container of it one that compiles source which is no ELF file. */
  build: 'gpuwhisk.build',
  /** Which platform a container is of. */
  platform: 'gpuwhisk.platform',
  kind: 'gpuwhisk.kind',
} as const;

/** The command of one of our images that keeps a PID namespace; its first program is native/entry. */
export const holdCommand = ['--hold'];

/** Whether it says so. An image of somebody else's may say what it likes. */
export function speaksFrames(facts: ImageFacts): boolean {
  return facts.labels[labels.protocol] === 'framed';
}

/** The program that a label names, of an image that speaks frames; undefined if it names none. */
export function commandOf(facts: ImageFacts, label: string): string[] | undefined {
  const text = facts.labels[label];
  if (text === undefined || !speaksFrames(facts)) return undefined;
  let words: unknown;
  try {
    words = JSON.parse(text);
  } catch {
    return undefined;
  }
  const isCommand = Array.isArray(words) && words.length > 0 && words.every((word) => typeof word === 'string');
  return isCommand ? (words as string[]) : undefined;
}

import type { ImageFacts } from './engine.js';

/** Labels of our images (the first two) and of the containers that are made of any. */
export const labels = {
  /** `framed`: its runtime connects to the mounted socket and speaks the framed protocol. Absent: `/init` and `/run`. */
  protocol: 'gpuwhisk.protocol',
  /** The program, a JSON list of words, that makes a container of it one that functions are injected into. */
  pair: 'gpuwhisk.pair',
  /** Which platform a container is of. */
  platform: 'gpuwhisk.platform',
  kind: 'gpuwhisk.kind',
} as const;

export function speaksFrames(facts: ImageFacts): boolean {
  return facts.labels[labels.protocol] === 'framed';
}

/** The program of a container that is made ahead; undefined: as one that is made when somebody waits. */
export function pairCommand(facts: ImageFacts): string[] | undefined {
  const text = facts.labels[labels.pair];
  if (text === undefined || !speaksFrames(facts)) return undefined;
  let words: unknown;
  try {
    words = JSON.parse(text);
  } catch {
    // An image of somebody else's may say what it likes; its own program is then what runs.
    return undefined;
  }
  const isCommand = Array.isArray(words) && words.length > 0 && words.every((word) => typeof word === 'string');
  return isCommand ? (words as string[]) : undefined;
}

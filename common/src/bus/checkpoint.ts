import type { Topic } from './topic.js';

/**
 * What every group of every durable topic has consumed, as one log entry: topic → group → first the offset of its
 * next message, then the offsets before it that were delivered and are not done (at most as many as are in flight).
 */
export type Checkpoint = Record<string, Record<string, number[]>>;

/** The state of the durable topics now. */
export function takeCheckpoint(topics: Iterable<Topic>): Checkpoint {
  const checkpoint: Checkpoint = {};
  for (const topic of topics) {
    if (topic.groups.size === 0) continue;
    const groups: Record<string, number[]> = (checkpoint[topic.name] = {});
    for (const group of topic.groups.values()) {
      const next = group.cursor?.offset ?? topic.lastOffset + 1;
      groups[group.name] = [next, ...group.again.keys(), ...group.inHand.keys()];
    }
  }
  return checkpoint;
}

/** Forgets the messages that all groups in `positions` have finished, looking only at those before every `next`. */
export function dropFinished(topic: Topic, positions: Record<string, number[]>): void {
  const groups = Object.values(positions);
  if (groups.length === 0) return;
  const firstNext = Math.min(...groups.map((offsets) => offsets[0] ?? 0));
  const unfinished = new Set(groups.flatMap((offsets) => offsets.slice(1)));
  for (let node = topic.head; node && node.offset < firstNext; node = node.next) {
    if (!unfinished.has(node.offset)) topic.unlink(node);
  }
}

/** Gives a recovered topic its groups, as the last checkpoint has them. */
export function restoreGroups(topic: Topic, positions: Record<string, number[]>): void {
  // All groups are made first: a message goes when the last of them has finished it.
  for (const name of Object.keys(positions)) topic.group(name);
  for (const [name, [next = 0, ...delivered]] of Object.entries(positions)) {
    const group = topic.group(name);
    const unfinished = new Set(delivered);
    topic.lastOffset = Math.max(topic.lastOffset, next - 1);
    while (group.cursor && group.cursor.offset < next) {
      const node = group.cursor;
      group.cursor = node.next;
      group.undelivered--;
      group.again.set(node.offset, node);
      if (!unfinished.has(node.offset)) group.finish(node);
    }
  }
}

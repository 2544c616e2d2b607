import type { CommittedProgress } from './group-progress.js';
import type { KafkaLink } from './kafka-link.js';

/** The offset of the oldest message that brokers keep, or of the next to come. */
export const logStart = (link: KafkaLink, topic: string): Promise<number> =>
  link.atLeader(topic, (broker) => broker.offsetAt(topic, 'start'));

/** The offset of the next message to come. */
export const logEnd = (link: KafkaLink, topic: string): Promise<number> =>
  link.atLeader(topic, (broker) => broker.offsetAt(topic, 'end'));

/** What `group` has committed in `topic`; undefined: nothing. */
export async function fetchCommitted(
  link: KafkaLink,
  topic: string,
  group: string,
): Promise<CommittedProgress | undefined> {
  const committed = await link.atCoordinator(group, (broker) => broker.committed(topic, group));
  return committed.offset < 0 ? undefined : committed;
}

/** Commits for `group`, which has no members. */
export async function commit(
  link: KafkaLink,
  topic: string,
  group: string,
  { offset, metadata }: CommittedProgress,
): Promise<void> {
  await link.atCoordinator(group, (broker) => broker.commit(topic, group, offset, metadata));
}

/** Has brokers delete all messages below `offset`; they give back whole segments, some minutes later. */
export async function deleteBelow(link: KafkaLink, topic: string, offset: number): Promise<void> {
  await link.atLeader(topic, (broker) => broker.deleteBelow(topic, offset));
}

/** The groups that know anything of `topic` by their names: `topic` itself, and what begins with it and a dot. */
export async function groupsOf(link: KafkaLink, topic: string): Promise<string[]> {
  const ids = (await link.atEach((broker) => broker.groups())).flat();
  return ids.filter((id) => id === topic || id.startsWith(`${topic}.`));
}

import type { CommittedProgress } from './group-progress.js';
import type { KafkaLink } from './kafka-link.js';

const earliest = -2;
const latest = -1;

async function offsetAt(link: KafkaLink, topic: string, timestamp: number): Promise<number> {
  const { responses } = await link.atLeader(topic, (broker) =>
    broker.listOffsets({
      replicaId: -1,
      isolationLevel: 0,
      topics: [{ topic, partitions: [{ partition: 0, timestamp }] }],
    }),
  );
  return Number(responses[0]?.partitions[0]?.offset ?? 0);
}

/** The offset of the oldest message that brokers keep, or of the next to come. */
export const logStart = (link: KafkaLink, topic: string): Promise<number> => offsetAt(link, topic, earliest);

/** The offset of the next message to come. */
export const logEnd = (link: KafkaLink, topic: string): Promise<number> => offsetAt(link, topic, latest);

/** What `group` has committed in `topic`; undefined: nothing. */
export async function fetchCommitted(
  link: KafkaLink,
  topic: string,
  group: string,
): Promise<CommittedProgress | undefined> {
  const { responses } = await link.atCoordinator(group, (broker) =>
    broker.offsetFetch({ groupId: group, topics: [{ topic, partitions: [{ partition: 0, offset: '0' }] }] }),
  );
  const partition = responses[0]?.partitions[0] as { offset: string; metadata?: string | null } | undefined;
  const offset = Number(partition?.offset ?? -1);
  return offset < 0 ? undefined : { offset, metadata: partition?.metadata ?? '' };
}

/** Commits for `group`, which has no members. */
export async function commit(
  link: KafkaLink,
  topic: string,
  group: string,
  { offset, metadata }: CommittedProgress,
): Promise<void> {
  const partition = { partition: 0, offset: String(offset), metadata };
  await link.atCoordinator(group, (broker) =>
    broker.offsetCommit({
      groupId: group,
      groupGenerationId: -1,
      memberId: '',
      topics: [{ topic, partitions: [partition] }],
    }),
  );
}

/** Has brokers delete all messages below `offset`; they give back whole segments, some minutes later. */
export async function deleteBelow(link: KafkaLink, topic: string, offset: number): Promise<void> {
  const partitions = [{ partition: 0, offset: String(offset) }];
  await link.atLeader(topic, (broker) => broker.deleteRecords({ topics: [{ topic, partitions }] }));
}

/** The groups that know anything of `topic` by their names: `topic` itself, and what begins with it and a dot. */
export async function groupsOf(link: KafkaLink, topic: string): Promise<string[]> {
  const lists = await link.atEach((broker) => broker.listGroups());
  const ids = lists.flatMap(({ groups }) => groups.map(({ groupId }) => groupId));
  return ids.filter((id) => id === topic || id.startsWith(`${topic}.`));
}

import { Counter } from 'prom-client';
import type { Registry } from 'prom-client';
import type { MessageBus } from './bus/message-bus.js';
import { userStatusCode } from './entities/activation.js';
import type { WhiskActivation } from './entities/activation.js';
import { parameterValue } from './entities/parameters.js';
import type { Identity } from './entities/identity.js';
import { isJsonObject } from './json.js';
import type { JsonObject, JsonValue } from './json.js';
import type { Clock } from './system/clock.js';

/** OpenWhisk's topic of events that tell users, or their bills, of activations and limits. */
export const eventsTopic = 'events';

/** Events that no broker, or no consumer of an embedded bus, has taken: the next are dropped. */
const topicOptions = { durable: false, maxPendingMessages: 1000, maxPendingBytes: 1024 * 1024 };

/** What OpenWhisk's throttles tell of: activations in flight, and refusals. */
export type UserMetric = 'ConcurrentInvocations' | 'ConcurrentRateLimit' | 'TimedRateLimit';

/** The subject of an event. */
type Whose = Pick<Identity, 'subject' | 'namespace'>;

/** Where user events go. Sending never throws and never waits: what cannot be sent at once is dropped and counted. */
export interface UserEvents {
  /** An activation has ended. One whose record names neither path nor kind, as a trigger's, is no event. */
  activation(record: WhiskActivation, whose: Whose): void;
  metric(name: UserMetric, value: number, whose: Whose): void;
}

/** What user events need. `source` is `invoker<N>` or `controller<N>`. */
export interface UserEventsDependencies {
  bus: Pick<MessageBus, 'ensureTopic' | 'send'>;
  clock: Clock;
  registry: Registry;
  source: string;
}

/** Opens the topic of user events. */
export async function openUserEvents({ bus, clock, registry, source }: UserEventsDependencies): Promise<UserEvents> {
  await bus.ensureTopic(eventsTopic, topicOptions);
  const name = 'gpuwhisk_user_events_dropped_total';
  const help = 'User events that could not be sent at once';
  const dropped =
    (registry.getSingleMetric(name) as Counter | undefined) ?? new Counter({ name, help, registers: [registry] });

  function send(eventType: 'Activation' | 'Metric', body: JsonObject, { subject, namespace }: Whose): void {
    const { name: namespaceName, uuid: userId } = namespace;
    const message = { source, body, subject, namespace: namespaceName, userId, eventType, timestamp: clock.now() };
    try {
      bus.send(eventsTopic, message);
    } catch {
      dropped.inc();
    }
  }

  return {
    activation(record, whose) {
      const body = activationBody(record);
      if (body !== undefined) send('Activation', body, whose);
    },
    metric: (metricName, metricValue, whose) => send('Metric', { metricName, metricValue }, whose),
  };
}

/** The body of an activation's event; undefined where OpenWhisk makes none. */
function activationBody({ activationId, annotations, duration, response }: WhiskActivation): JsonObject | undefined {
  const noted = (key: string): JsonValue | undefined => parameterValue(annotations, key);
  const number = (value: JsonValue | undefined): number => (typeof value === 'number' ? value : 0);
  const name = noted('path');
  const kind = noted('kind');
  if (typeof name !== 'string' || typeof kind !== 'string') return undefined;
  const limits = noted('limits');
  const causedBy = noted('causedBy');
  const userDefinedStatusCode = userStatusCode(response.result);
  return {
    name,
    activationId,
    statusCode: response.statusCode,
    duration: duration ?? 0,
    waitTime: number(noted('waitTime')),
    initTime: number(noted('initTime')),
    kind,
    conductor: noted('conductor') === true,
    memory: isJsonObject(limits) ? number(limits.memory) : 0,
    ...(typeof causedBy === 'string' && { causedBy }),
    ...(response.size !== undefined && { size: response.size }),
    ...(userDefinedStatusCode !== undefined && { userDefinedStatusCode }),
  };
}

/** The message is more than a broker takes. */
export class MessageTooLargeError extends Error {
  override name = 'MessageTooLargeError';
  constructor(topic: string, bytes: number, allowedBytes: number) {
    super(`a message of ${bytes} bytes for topic '${topic}' is more than the ${allowedBytes} allowed`);
  }
}

/** Brokers do not take messages as fast as they are sent, or not at all, and no more can be kept here. */
export class SendBufferFullError extends Error {
  override name = 'SendBufferFullError';
  constructor(bufferedBytes: number, allowedBytes: number) {
    super(`Kafka does not take messages: ${bufferedBytes} bytes wait to be sent, ${allowedBytes} may`);
  }
}

/** No broker has acknowledged the message. It may have been stored all the same. */
export class NotAcknowledgedError extends Error {
  override name = 'NotAcknowledgedError';
}

/** Kafka could not be reached, or refused what the bus needs to begin. */
export class KafkaUnavailableError extends Error {
  override name = 'KafkaUnavailableError';
}

/** The broker does not know who asks, or is not trusted. */
export class KafkaRefusalError extends Error {
  override name = 'KafkaRefusalError';
}

/** Whether the broker does not know who asks, or is not trusted: asking again would change nothing. */
export function isRefusal(error: unknown): boolean {
  if (error instanceof KafkaRefusalError) return true;
  const { name, message } = error as Error;
  return name === 'KafkaJSSASLAuthenticationError' || /certificate/i.test(message);
}

/** What Kafka calls the reason of a failed request, for example `MESSAGE_TOO_LARGE`; undefined: it gave none. */
export function protocolErrorType(error: unknown): string | undefined {
  for (let at: unknown = error; at instanceof Error; at = at.cause) {
    const { type } = at as Error & { type?: unknown };
    if (typeof type === 'string') return type;
  }
  return undefined;
}

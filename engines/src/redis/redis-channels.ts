import type { Redis } from 'ioredis';
import type { JsonValue } from '@gpuwhisk/common/json';
import type { StateSubscription } from '@gpuwhisk/common/state/cluster-state';

type Listener = (message: JsonValue) => void;

/** Who listens to which channel, on a connection of its own; after a loss of Redis they listen again by themselves. */
export class RedisChannels {
  private readonly listeners = new Map<string, Set<Listener>>();

  constructor(
    private readonly redis: Redis,
    private readonly onWarning: (warning: Error) => void,
  ) {
    redis.on('message', (channel: string, text: string) => this.hear(channel, text));
    redis.on('ready', () => void this.listenAgain());
  }

  /** Resolves when no message is missed any more. */
  async listen(channel: string, listener: Listener): Promise<StateSubscription> {
    const listeners = this.listeners.get(channel) ?? new Set();
    this.listeners.set(channel, listeners);
    // Who listens twice with one function hears twice.
    const own: Listener = (message) => listener(message);
    listeners.add(own);
    try {
      await this.redis.subscribe(channel);
    } catch (error) {
      this.forget(channel, own);
      throw error;
    }
    return {
      close: () => {
        this.forget(channel, own);
        return Promise.resolve();
      },
    };
  }

  /** Subscribes to all channels on a new connection; where Redis does not confirm it, the connection is replaced. */
  private async listenAgain(): Promise<void> {
    const channels = [...this.listeners.keys()];
    if (channels.length === 0) return;
    try {
      await this.redis.subscribe(...channels);
    } catch (error) {
      this.onWarning(new Error(`channels of Redis are not listened to yet: ${(error as Error).message}`));
      if (this.redis.status === 'ready') this.redis.disconnect(true);
    }
  }

  private forget(channel: string, listener: Listener): void {
    const listeners = this.listeners.get(channel);
    if (listeners === undefined || !listeners.delete(listener) || listeners.size > 0) return;
    this.listeners.delete(channel);
    // Where it fails messages come that nobody hears.
    this.redis.unsubscribe(channel).catch((error: unknown) => this.onWarning(error as Error));
  }

  private hear(channel: string, text: string): void {
    const listeners = [...(this.listeners.get(channel) ?? [])];
    try {
      for (const listener of listeners) listener(JSON.parse(text) as JsonValue);
    } catch (error) {
      this.onWarning(new Error(`a message on ${channel} was left out: ${(error as Error).message}`));
    }
  }
}

import type { MessageBus } from '@gpuwhisk/common/bus/message-bus';
import type { JsonObject } from '@gpuwhisk/common/json';
import type { Logger } from '@gpuwhisk/common/logging';
import type { InvokerInstanceId, PingMessage } from '@gpuwhisk/common/messages';
import { sleep } from '@gpuwhisk/common/system/clock';
import type { Clock, Timer } from '@gpuwhisk/common/system/clock';

const topic = 'health';
/** Interval of pings, as in OpenWhisk, ms. */
const pingMs = 1000;
/** Time in which controllers usually receive a ping, ms. */
const heardMs = 500;
const maxPendingMessages = 10_000;

/** Sends the controllers a ping every second, with whether the invoker takes activations. */
export class HealthPings {
  private timer: Timer | undefined;
  private isEnabled = true;
  private closed = false;

  constructor(
    private readonly bus: MessageBus,
    private readonly clock: Clock,
    private readonly logger: Logger,
    private readonly instance: InvokerInstanceId,
  ) {}

  async open(): Promise<void> {
    await this.bus.ensureTopic(topic, { durable: false, maxPendingMessages, maxPendingBytes: Infinity });
    this.beat();
  }

  /** Sets whether the invoker takes activations, and pings at once. */
  enable(isEnabled: boolean): void {
    this.isEnabled = isEnabled;
    this.ping();
  }

  /**
   * Announces that the invoker stops. Resolves once the controllers should have received the ping and send no more
   * activations.
   */
  async leave(): Promise<void> {
    this.enable(false);
    await sleep(this.clock, heardMs);
  }

  get enabled(): boolean {
    return this.isEnabled;
  }

  close(): void {
    this.closed = true;
    this.timer?.cancel();
  }

  private beat(): void {
    if (this.closed) return;
    this.ping();
    this.timer = this.clock.setBackgroundTimer(pingMs, () => this.beat());
  }

  private ping(): void {
    const message: PingMessage = { name: this.instance, isEnabled: this.isEnabled };
    try {
      this.bus.send(topic, message as unknown as JsonObject);
    } catch (error) {
      this.logger.error({ error: String(error) }, 'a ping could not be sent');
    }
  }
}

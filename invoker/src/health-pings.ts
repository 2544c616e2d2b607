import type { MessageBus } from '@gpuwhisk/common/bus/message-bus';
import type { JsonObject } from '@gpuwhisk/common/json';
import type { Logger } from '@gpuwhisk/common/logging';
import type { InvokerInstanceId, PingMessage } from '@gpuwhisk/common/messages';
import { sleep } from '@gpuwhisk/common/system/clock';
import type { Clock, Timer } from '@gpuwhisk/common/system/clock';

const topic = 'health';
/** OpenWhisk's interval, ms. */
const pingMs = 1000;
/** Controllers have heard a ping by then, where all goes as it should, ms. */
const heardMs = 500;
const maxPendingMessages = 10_000;

/** Tells the controllers every second that an invoker is there, and whether it takes activations. */
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

  /** From now on it takes no activations, or takes them again; the controllers know at once. */
  enable(isEnabled: boolean): void {
    this.isEnabled = isEnabled;
    this.ping();
  }

  /** It is about to stop: resolves once the controllers should know, and send it nothing that would wait for its return. */
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

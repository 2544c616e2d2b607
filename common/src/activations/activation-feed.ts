import type { Delivery, MessageBus, Subscription } from '../bus/message-bus.js';
import type { ActivationMessage } from '../messages.js';
import { readActivationMessage } from '../messages.js';
import { ShortLivedMap, RecentIds } from '../short-lived-map.js';

/** Told of each activation once per life, however often its message comes. */
export interface FeedHandler {
  /** A message that was not delivered before. `done` is called once the activation's record is durable. */
  accept(message: ActivationMessage, done: () => void): void;
  /** A message that an earlier process of this consumer may have had. */
  recover(message: ActivationMessage, done: () => void): void;
  /** A message that is no activation, and is skipped. */
  malformed(offset: number, reason: string): void;
}

/** So many ids of finished activations, at least, are remembered, so that a doubled message is not run again. */
const rememberedIds = 10_000;

/** Takes activations from a topic within capacity, and filters messages that come twice. */
export class ActivationFeed {
  private readonly inFlight = new ShortLivedMap<string, Delivery[]>();
  private readonly finished = new RecentIds(rememberedIds);
  private subscription: Subscription | undefined;

  constructor(
    private readonly bus: MessageBus,
    private readonly topic: string,
    private readonly maxInFlight: number,
    private readonly handler: FeedHandler,
  ) {}

  async open(): Promise<void> {
    this.subscription = await this.bus.subscribe(
      this.topic,
      this.topic,
      { maxInFlight: this.maxInFlight },
      (delivery) => this.take(delivery),
    );
  }

  /** Stops taking messages; those in hand go on. */
  async close(): Promise<void> {
    await this.subscription?.close();
  }

  /** Activations taken whose records are not yet durable. */
  get pending(): number {
    return this.inFlight.size;
  }

  /**
   * Forgets an activation in hand that goes back to its sender, so that it may come again; the function returned ends
   * the messages that brought it. With `isOver` it has ended here after all, and is not taken again.
   */
  letGo(activationId: string): (isOver?: boolean) => void {
    const held = this.inFlight.get(activationId) ?? [];
    this.inFlight.delete(activationId);
    return (isOver = false) => {
      if (isOver) this.finished.add(activationId);
      for (const delivery of held) delivery.done();
    };
  }

  /** The messages of activations in hand, each once. */
  held(): ActivationMessage[] {
    return this.inFlight.values().map((deliveries) => deliveries[0]?.message as unknown as ActivationMessage);
  }

  /** The message that came last for an activation in hand, of those that no earlier process may have had. */
  latest(activationId: string): ActivationMessage | undefined {
    const fresh = this.inFlight.get(activationId)?.findLast(({ redelivered }) => !redelivered);
    return fresh?.message as unknown as ActivationMessage | undefined;
  }

  private take(delivery: Delivery): void {
    let message;
    try {
      message = readActivationMessage(delivery.message);
    } catch (error) {
      this.handler.malformed(delivery.offset, (error as Error).message);
      delivery.done();
      return;
    }
    const id = message.activationId;
    if (this.finished.has(id)) {
      delivery.done();
      return;
    }
    const held = this.inFlight.get(id);
    if (held !== undefined) {
      held.push(delivery);
      return;
    }
    this.inFlight.set(id, [delivery]);
    const done = (): void => this.finish(id);
    if (delivery.redelivered) this.handler.recover(message, done);
    else this.handler.accept(message, done);
  }

  private finish(id: string): void {
    const held = this.inFlight.get(id);
    if (held === undefined) return;
    this.inFlight.delete(id);
    this.finished.add(id);
    for (const delivery of held) delivery.done();
  }
}

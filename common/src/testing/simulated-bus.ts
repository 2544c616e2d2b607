import type { Clock, Timer } from '../system/clock.js';
import type { Random } from '../system/random.js';
import { randomFraction } from '../system/random.js';
import type { ConsumerOptions, Delivery, MessageBus, Subscription } from '../bus/message-bus.js';

/** How badly a simulated bus behaves. Shares are fractions of the messages. */
export interface BusFaults {
  /** Share that comes late, by up to `delayMs`; everything behind it in its group waits too. */
  delayShare: number;
  delayMs: number;
  /** Share that is held back, by up to `withholdMs`. */
  withholdShare: number;
  withholdMs: number;
  /** Share that comes a second time, marked redelivered, up to `delayMs` later, even if it was done meanwhile. */
  doubleShare: number;
}

/** A moderately unreliable bus. */
export const defaultBusFaults: BusFaults = {
  delayShare: 0.2,
  delayMs: 20,
  withholdShare: 0.02,
  withholdMs: 2000,
  doubleShare: 0.1,
};

/** `inner` with messages withheld, delayed and doubled, as its contract allows, under a seeded generator. */
export function simulatedBus(
  inner: MessageBus,
  { clock, random, faults = defaultBusFaults }: { clock: Clock; random: Random; faults?: BusFaults },
): MessageBus {
  return {
    ensureTopic: (topic, options) => inner.ensureTopic(topic, options),
    send: (topic, message) => inner.send(topic, message),
    lag: (topic, group) => inner.lag(topic, group),
    close: () => inner.close(),
    async subscribe(topic, group, options, handler) {
      const consumer = new FaultyConsumer(clock, random, faults, options, handler);
      const subscription = await inner.subscribe(topic, group, options, (delivery) => consumer.take(delivery));
      return consumer.over(subscription);
    },
  };
}

class FaultyConsumer {
  private readonly waiting: Delivery[] = [];
  /** Offsets of the messages with the handler and not done. A second copy takes no place of its own. */
  private readonly inHand = new Set<number>();
  private readonly timers = new Set<Timer>();
  private held = false;
  private open = true;
  private maxInFlight: number;

  constructor(
    private readonly clock: Clock,
    private readonly random: Random,
    private readonly faults: BusFaults,
    { maxInFlight }: ConsumerOptions,
    private readonly handler: (delivery: Delivery) => void,
  ) {
    this.maxInFlight = maxInFlight;
  }

  take(delivery: Delivery): void {
    this.waiting.push(delivery);
    if (this.waiting.length > 1 || this.held) return;
    this.holdOrHand();
  }

  over(subscription: Subscription): Subscription {
    return {
      setMaxInFlight: (count) => {
        this.maxInFlight = count;
        subscription.setMaxInFlight(count);
        this.hand();
      },
      close: () => {
        this.open = false;
        for (const timer of this.timers) timer.cancel();
        return subscription.close();
      },
    };
  }

  /** Decides the fate of the first message that waits. */
  private holdOrHand(): void {
    const { withholdShare, withholdMs, delayShare, delayMs } = this.faults;
    const fate = randomFraction(this.random);
    const waitMs = fate < withholdShare ? withholdMs : fate < withholdShare + delayShare ? delayMs : 0;
    if (waitMs === 0) {
      this.hand();
      return;
    }
    this.held = true;
    this.after(waitMs, () => {
      this.held = false;
      this.hand();
    });
  }

  private hand(): void {
    while (this.open && !this.held && this.inHand.size < this.maxInFlight) {
      const delivery = this.waiting.shift();
      if (!delivery) return;
      if (randomFraction(this.random) < this.faults.doubleShare) {
        this.after(this.faults.delayMs, () => this.handOver(delivery, true));
      }
      this.inHand.add(delivery.offset);
      this.handOver(delivery, delivery.redelivered);
      if (this.waiting.length > 0) {
        this.holdOrHand();
        return;
      }
    }
  }

  private handOver(delivery: Delivery, redelivered: boolean): void {
    if (!this.open) return;
    const { offset, message } = delivery;
    this.handler({
      offset,
      message,
      redelivered,
      get bytes() {
        return delivery.bytes;
      },
      done: () => {
        delivery.done();
        if (this.inHand.delete(offset)) this.hand();
      },
    });
  }

  private after(maxMs: number, run: () => void): void {
    const timer = this.clock.setTimer(randomFraction(this.random) * maxMs, () => {
      this.timers.delete(timer);
      run();
    });
    this.timers.add(timer);
  }
}

import type { InvokerInstanceId, PingMessage } from '@gpuwhisk/common/messages';

/** OpenWhisk's words. */
export type Health = 'up' | 'unhealthy' | 'unresponsive' | 'down';
/** How an activation went, as far as it tells of its invoker. */
export type Outcome = 'success' | 'system error' | 'time-out';

/** An invoker that sends no ping for so long is down, ms. */
const silentMs = 10_000;
/** The outcomes that count, and how many of them may be bad. */
const keptOutcomes = 10;
const toleratedFailures = 3;

/** What a controller knows of one invoker. */
export class InvokerState {
  private outcomes: Outcome[] = [];
  private current: Exclude<Health, 'down'> = 'unhealthy';
  private heardMs = -Infinity;
  private isEnabled = true;
  private id: InvokerInstanceId;

  constructor({ name }: PingMessage) {
    this.id = name;
  }

  get instance(): InvokerInstanceId {
    return this.id;
  }

  /** `invoker0/name`. */
  get name(): string {
    const { instance, uniqueName, displayedName } = this.id;
    return [`invoker${instance}`, uniqueName, displayedName].filter((part) => part !== undefined).join('/');
  }

  /** What it may give to containers, MiB. */
  get memoryMiB(): number {
    const match = /^(\d+) *(B|KB|MB|GB)?$/i.exec(this.id.userMemory);
    const unit = { B: 1 / (1024 * 1024), KB: 1 / 1024, MB: 1, GB: 1024 }[(match?.[2] ?? 'B').toUpperCase()];
    return Math.floor(Number(match?.[1] ?? 0) * (unit ?? 0));
  }

  health(nowMs: number): Health {
    return this.isEnabled && nowMs - this.heardMs < silentMs ? this.current : 'down';
  }

  /** Nothing could be heard for so long, ms: its silence was none. */
  excuse(ms: number): void {
    this.heardMs += ms;
  }

  /** How long it has said nothing, ms. */
  silenceMs(nowMs: number): number {
    return nowMs - this.heardMs;
  }

  /** It says that it is there; true if it was not. */
  heard({ name, isEnabled = true }: PingMessage, nowMs: number): boolean {
    const wasDown = this.health(nowMs) === 'down';
    this.id = name;
    this.isEnabled = isEnabled;
    this.heardMs = nowMs;
    if (!wasDown || !isEnabled) return false;
    this.current = 'unhealthy';
    this.outcomes = [];
    return true;
  }

  /** One of its activations has ended. */
  finished(outcome: Outcome, nowMs: number): void {
    if (this.health(nowMs) === 'down') return;
    this.outcomes = [...this.outcomes, outcome].slice(-keptOutcomes);
    const failures = (kind: Outcome): number => this.outcomes.filter((other) => other === kind).length;
    if (failures('system error') > toleratedFailures) this.current = 'unhealthy';
    else if (failures('time-out') > toleratedFailures) this.current = 'unresponsive';
    // One that has shown nothing good yet is not trusted.
    else if (this.current !== 'up' && !this.outcomes.includes('success')) return;
    else this.current = 'up';
  }
}

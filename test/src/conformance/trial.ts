import { expect } from '@jest/globals';
import type { ActionOptions, ApiActivation } from '../support/api-client.js';
import { actionBody } from '../support/api-client.js';
import { until } from '../support/running-platform.js';
import type { Caller, Reply } from './caller.js';
import { callerOf } from './host.js';
import type { Host } from './host.js';

/** An activation record with what only some have. */
export type Activation = ApiActivation & { subject: string; publish: boolean; cause?: string };

/** An entity as the API gives it, as far as cases look into it. */
export interface Entity {
  name: string;
  namespace: string;
  version: string;
  publish: boolean;
  annotations: { key: string; value: unknown }[];
  parameters: { key: string; value: unknown }[];
  updated: number;
}

const recordMs = 15_000;
let counter = 0;

/** One run of a case: names of its own, short forms of requests, and the removal of all that it made. */
export class Trial {
  readonly user: Caller;
  readonly other: Caller;
  private readonly made: { caller: Caller; path: string }[] = [];
  private readonly subjects: string[] = [];
  /** One object, as what it puts is told apart by its caller. */
  private encryptingUser: Promise<Caller> | undefined;
  private readonly endings: (() => Promise<unknown>)[] = [];

  constructor(readonly host: Host) {
    this.user = host.user;
    this.other = host.other;
  }

  /** The user's namespace. */
  get namespace(): string {
    return this.user.namespace;
  }

  /** A name that no other case has. */
  name(kind: string): string {
    counter += 1;
    return `${kind}-${process.pid}-${Date.now().toString(36)}-${counter}`;
  }

  /** Creates or replaces an entity, `actions/x` and the like, of the caller's; it is removed after the case. */
  async put<Body = Entity>(path: string, body: unknown = {}, caller = this.user): Promise<Reply<Body>> {
    const plain = path.split('?')[0] ?? '';
    const reply = await caller.api<Body>('PUT', `_/${path}`, body);
    if (reply.status === 200 && !this.made.some((one) => one.caller === caller && one.path === plain))
      this.made.push({ caller, path: plain });
    return reply;
  }

  /** As `put`, over what is there; throws where that is refused. */
  async replace<Body = Entity>(path: string, body: unknown = {}, caller = this.user): Promise<Body> {
    return accepted(await this.put<Body>(`${path}?overwrite=true`, body, caller));
  }

  get<Body = Entity>(path: string, caller = this.user): Promise<Reply<Body>> {
    return caller.api<Body>('GET', `_/${path}`);
  }

  post<Body = Activation>(path: string, body?: unknown, caller = this.user): Promise<Reply<Body>> {
    return caller.api<Body>('POST', `_/${path}`, body);
  }

  delete<Body = Entity>(path: string, caller = this.user): Promise<Reply<Body>> {
    return caller.api<Body>('DELETE', `_/${path}`);
  }

  /** Creates an action and returns its name, a new one unless given. */
  async action(code: string, options: ActionOptions = {}, name = this.name('action')): Promise<string> {
    await this.replace(`actions/${name}`, actionBody(code, options));
    return name;
  }

  async sequence(components: string[], options: Record<string, unknown> = {}): Promise<string> {
    const name = this.name('sequence');
    const exec = { kind: 'sequence', components: components.map((one) => (one.startsWith('/') ? one : `/_/${one}`)) };
    await this.replace(`actions/${name}`, { exec, ...options });
    return name;
  }

  async package(body: unknown = {}, caller = this.user): Promise<string> {
    const name = this.name('package');
    await this.replace(`packages/${name}`, body, caller);
    return name;
  }

  /** A trigger with a rule to the action. */
  async linked(action: string, trigger: unknown = {}): Promise<{ trigger: string; rule: string }> {
    const names = { trigger: this.name('trigger'), rule: this.name('rule') };
    await this.replace(`triggers/${names.trigger}`, trigger);
    await this.replace(`rules/${names.rule}`, { trigger: `/_/${names.trigger}`, action: `/_/${action}` });
    return names;
  }

  /** A blocking invocation. */
  invoke<Body = Activation>(name: string, payload: unknown = {}, query = 'blocking=true'): Promise<Reply<Body>> {
    return this.post<Body>(`actions/${name}?${query}`, payload);
  }

  /** Invokes without waiting, and resolves with the record once it is stored. */
  async run(name: string, payload?: unknown, caller = this.user): Promise<Activation> {
    const path = name.startsWith('/') ? name.slice(1).replace('/', '/actions/') : `_/actions/${name}`;
    const reply = await caller.api<{ activationId: string }>('POST', path, payload);
    expect(reply.status).toBe(202);
    return this.record(reply.body.activationId, caller);
  }

  /** Fires a trigger that has an active rule, and resolves with its record. */
  async fire(name: string, payload?: unknown): Promise<Activation> {
    const reply = await this.post<{ activationId: string }>(`triggers/${name}`, payload);
    expect(reply.status).toBe(202);
    return this.record(reply.body.activationId);
  }

  /** The stored record; answers precede it by a little. */
  async record(activationId: string, caller = this.user): Promise<Activation> {
    let reply: Reply<Activation> | undefined;
    const stored = async (): Promise<boolean> => {
      reply = await caller.api<Activation>('GET', `_/activations/${activationId}`);
      return reply.status === 200;
    };
    await until(`activation ${activationId} is stored`, stored, recordMs);
    return (reply as Reply<Activation>).body;
  }

  /** An identity with limits of its own, gone after the case; takes an operator. */
  async identity(limits: Record<string, unknown> = {}): Promise<Caller> {
    const operator = this.operator();
    const subject = this.name('subject');
    const created = await operator.send<{ uuid: string; key: string }>('PUT', `/api/v1/admin/subjects/${subject}`, {
      body: {},
    });
    const { uuid, key } = accepted(created);
    this.subjects.push(subject);
    const path = `/api/v1/admin/limits/${subject}`;
    if (Object.keys(limits).length > 0) accepted(await operator.send('PUT', path, { body: limits }));
    return callerOf(operator.url, `${uuid}:${key}`);
  }

  /** The user of a server that encrypts parameters. */
  encrypting(): Promise<Caller> {
    return (this.encryptingUser ??= this.host.encrypting());
  }

  /** Who administers others. */
  operator(): Caller {
    if (this.host.operator === undefined) throw new Error('There is no operator.');
    return this.host.operator;
  }

  /** Has an entity of the user's, `actions/x` and the like, removed after the case if it is there. */
  removes(path: string): void {
    this.made.push({ caller: this.user, path });
  }

  /** Has something done after the case, the last first, before what it put is removed. */
  atEnd(ending: () => Promise<unknown>): void {
    this.endings.push(ending);
  }

  /** Removes what the case made, the last first. */
  async clean(): Promise<void> {
    for (const ending of this.endings.reverse()) await ending();
    for (const { caller, path } of this.made.reverse()) {
      const { status, text } = await caller.api(
        'DELETE',
        `_/${path}${path.startsWith('packages/') ? '?force=true' : ''}`,
      );
      if (status !== 200 && status !== 404) throw new Error(`${path} could not be removed: ${status} ${text}`);
    }
    for (const subject of this.subjects) await this.operator().send('DELETE', `/api/v1/admin/subjects/${subject}`);
  }
}

/** The body of an answer of 200; throws at any other. */
export function accepted<Body>({ status, text, body }: Reply<Body>): Body {
  if (status !== 200) throw new Error(`answered ${status}: ${text}`);
  return body;
}

/** Expects OpenWhisk's error body, whose text is (or matches) `message`. */
export function refused(reply: Reply, status: number, message: string | RegExp): void {
  expect({ status: reply.status, body: reply.body }).toEqual({
    status,
    body: { error: typeof message === 'string' ? message : expect.stringMatching(message), code: expect.any(String) },
  });
}

/** The value of an annotation or a parameter. */
export function valueOf(pairs: readonly { key: string; value: unknown }[], key: string): unknown {
  return pairs.find((pair) => pair.key === key)?.value;
}

import { expect } from '@jest/globals';
import type { ActionOptions, ApiActivation } from '../support/api-client.js';
import { actionBody } from '../support/api-client.js';
import { until } from '../support/running-platform.js';
import type { Caller, Reply } from './caller.js';
import { callerOf } from './host.js';
import type { Host } from './host.js';

/** An activation record with fields that only some records have. */
export type Activation = ApiActivation & { subject: string; publish: boolean; cause?: string };

/** The fields of an entity that cases check. */
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

/** One run of a case: unique names, shortcuts for requests, and removal of the entities that it created. */
export class Trial {
  readonly user: Caller;
  readonly other: Caller;
  private readonly made: { caller: Caller; path: string }[] = [];
  private readonly subjects: string[] = [];
  /** One caller for all calls: `put` compares callers by identity. */
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

  /** Creates or replaces an entity of the caller, such as `actions/x`, and removes it after the case. */
  async put<Body = Entity>(path: string, body: unknown = {}, caller = this.user): Promise<Reply<Body>> {
    const plain = path.split('?')[0] ?? '';
    const reply = await caller.api<Body>('PUT', `_/${path}`, body);
    if (reply.status === 200 && !this.made.some((one) => one.caller === caller && one.path === plain))
      this.made.push({ caller, path: plain });
    return reply;
  }

  /** Like `put`, with overwrite; throws if the server refuses. */
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

  /** Creates an action and returns its name; by default a new name. */
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

  /** Creates a trigger with a rule to the action. */
  async linked(action: string, trigger: unknown = {}): Promise<{ trigger: string; rule: string }> {
    const names = { trigger: this.name('trigger'), rule: this.name('rule') };
    await this.replace(`triggers/${names.trigger}`, trigger);
    await this.replace(`rules/${names.rule}`, { trigger: `/_/${names.trigger}`, action: `/_/${action}` });
    return names;
  }

  /** Invokes an action and waits for its result. */
  invoke<Body = Activation>(name: string, payload: unknown = {}, query = 'blocking=true'): Promise<Reply<Body>> {
    return this.post<Body>(`actions/${name}?${query}`, payload);
  }

  /** Invokes an action without waiting; resolves with the record once it is stored. */
  async run(name: string, payload?: unknown, caller = this.user): Promise<Activation> {
    const path = name.startsWith('/') ? name.slice(1).replace('/', '/actions/') : `_/actions/${name}`;
    const reply = await caller.api<{ activationId: string }>('POST', path, payload);
    expect(reply.status).toBe(202);
    return this.record(reply.body.activationId, caller);
  }

  /** Fires a trigger that has an active rule; resolves with the trigger's record. */
  async fire(name: string, payload?: unknown): Promise<Activation> {
    const reply = await this.post<{ activationId: string }>(`triggers/${name}`, payload);
    expect(reply.status).toBe(202);
    return this.record(reply.body.activationId);
  }

  /** The stored record. Waits, because answers arrive shortly before records are stored. */
  async record(activationId: string, caller = this.user): Promise<Activation> {
    let reply: Reply<Activation> | undefined;
    const stored = async (): Promise<boolean> => {
      reply = await caller.api<Activation>('GET', `_/activations/${activationId}`);
      return reply.status === 200;
    };
    await until(`activation ${activationId} is stored`, stored, recordMs);
    return (reply as Reply<Activation>).body;
  }

  /** A new identity with its own limits, removed after the case. Requires an operator. */
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

  /** The identity that administers others; throws if there is none. */
  operator(): Caller {
    if (this.host.operator === undefined) throw new Error('There is no operator.');
    return this.host.operator;
  }

  /** Removes an entity of the user, such as `actions/x`, after the case if it exists. */
  removes(path: string): void {
    this.made.push({ caller: this.user, path });
  }

  /** Calls `ending` after the case, before its entities are removed. The last one registered is called first. */
  atEnd(ending: () => Promise<unknown>): void {
    this.endings.push(ending);
  }

  /** Removes everything that the case created, the last first. */
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

/** The body of an answer with status 200; throws for any other status. */
export function accepted<Body>({ status, text, body }: Reply<Body>): Body {
  if (status !== 200) throw new Error(`answered ${status}: ${text}`);
  return body;
}

/** Expects OpenWhisk's error body; its text equals or matches `message`. */
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

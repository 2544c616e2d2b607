import type { ServerResponse } from 'node:http';
import {
  malformedContent,
  malformedQuery,
  noSuchRoute,
  operatorsOnly,
  overloaded,
  tooManyStreams,
} from '@gpuwhisk/common/errors';
import type { JsonValue } from '@gpuwhisk/common/json';
import type { Logger } from '@gpuwhisk/common/logging';
import type { Clock, Timer } from '@gpuwhisk/common/system/clock';
import type { Authentication } from '../authentication/authentication.js';
import type { Answer } from '../http/answer.js';
import { knownError } from '../http/answer.js';
import { booleanParameter } from '../http/request.js';
import { apiRoot } from '../http/route.js';
import type { Route, ViewerCall } from '../http/route.js';
import { charactersOf, eventText, messageOf, snapshotOf } from './followed.js';
import type { Snapshot } from './followed.js';
import { LookAccounts } from './look-accounts.js';

/** Dependencies of LiveStreams. */
export interface LiveStreamsParts {
  /** All routes of the API. */
  routes: () => readonly Route[];
  authentication: Pick<Authentication, 'viewer' | 'namespace'>;
  clock: Clock;
  logger: Logger;
}

/** Time between two looks at what a client follows, ms. */
const everyMs = 1000;
/** Time after which a client that is told nothing gets a sign of life, ms. */
const beatMs = 5000;
/** A client that has not read for so long, ms, is cut off. */
const stalledMs = 30_000;
/** Streams of a controller, and of one namespace, at most. */
const mostStreams = 500;
const mostOfNamespace = 20;
/** Paths that one stream follows, at most. */
const mostFollowed = 16;
/** Parameters whose answers have content beyond the summaries that streams send. */
const contentParameters = ['docs', 'code'];
/** Characters of all answers that the streams of one caller follow together; a path beyond is answered 413. */
const mostCharacters = 32 * 1024 * 1024;

type Readable = Exclude<Route, { access: 'web' | 'outside' }>;

/** A path that is followed. */
interface Followed {
  /** As the client has named it. */
  of: string;
  route: Readable;
  params: Record<string, string>;
  query: URLSearchParams;
}

/** What a look has found: the answer, or why there is none. */
type Found = Snapshot | { status: number; error: string };

/** Bytes of one answer that comes as text: they are parsed in some 20 ms. */
const mostBytes = 2 * 1024 * 1024;

const tooLarge: Found = { status: 413, error: 'The answers that are followed are too large together.' };

/**
 * Streams of what GET routes of the API answer, as server-sent events. Each second a stream's routes are asked again for its
 * caller, once for all streams of that caller, and what has changed is sent. One path of a namespace is asked at a time, and
 * less often if that takes long (look-accounts.ts). A caller whose key is no longer valid, and all
 * when the controller stops, are told and cut off.
 */
export class LiveStreams {
  private readonly streams = new Set<Stream>();
  private readonly looks = new Map<string, { atMs: number; isDone: boolean; found: Promise<Found> }>();
  private readonly accounts: LookAccounts;
  /** Characters that the last looks of each caller have found. */
  private readonly characters = new Map<string, { atMs: number; found: number }>();
  private readonly events = new EventTexts();
  /** All streams look at the same times, so that one look and one text serve those of one caller. */
  private timer: Timer | undefined;

  constructor(private readonly parts: LiveStreamsParts) {
    this.accounts = new LookAccounts(parts.clock);
  }

  /** Begins a stream. Throws ApiError: 400 for too many paths and for whole documents, 403, 404 for a path that cannot be followed, 429, 503. */
  open(call: ViewerCall): Answer {
    const names = call.query.getAll('of');
    if (names.length === 0 || names.length > mostFollowed) {
      throw malformedContent(`'of' must name 1 to ${mostFollowed} paths`);
    }
    const followed = names.map((of) => this.followed(of, call));
    if (this.streams.size >= mostStreams) throw overloaded();
    const { uuid } = call.identity.namespace;
    let own = 0;
    for (const one of this.streams) if (one.call.identity.namespace.uuid === uuid) own += 1;
    if (own >= mostOfNamespace) throw tooManyStreams(mostOfNamespace);
    return {
      status: 200,
      body: '',
      contentType: 'text/event-stream',
      headers: ['Cache-Control', 'no-store'],
      stream: (response) => {
        const look = (one: Followed): Promise<Found> => this.look(call, one);
        const rests = (): boolean => this.accounts.rests(uuid);
        const stream = new Stream({ ...this.parts, look, rests, events: this.events }, call, followed, response);
        this.streams.add(stream);
        response.once('close', () => {
          stream.close();
          this.streams.delete(stream);
        });
        stream.run();
        this.timer ??= this.parts.clock.setBackgroundTimer(everyMs, () => this.runAll());
      },
    };
  }

  private runAll(): void {
    this.timer = undefined;
    for (const stream of this.streams) stream.run();
    for (const known of [this.looks, this.characters]) if (this.streams.size === 0) known.clear();
    if (this.streams.size > 0) this.timer = this.parts.clock.setBackgroundTimer(everyMs, () => this.runAll());
  }

  /** Ends all streams. */
  close(): void {
    for (const stream of this.streams) stream.end(503, 'The controller stops.');
  }

  private followed(of: string, { isOperator }: ViewerCall): Followed {
    const [path = '', query] = of.split('?');
    for (const route of this.parts.routes()) {
      if (route.method !== 'GET' || route.access === 'web' || route.access === 'outside') continue;
      const params = matched(route.path, `${apiRoot}/${path}`);
      if (params === undefined || route.streams === true) continue;
      if (route.access === 'operator' && !isOperator) throw operatorsOnly();
      return { of, route, params, query: summaryQuery(route, new URLSearchParams(query)) };
    }
    throw noSuchRoute();
  }

  /** Asks a route, unless the same was asked for the same caller a moment ago. */
  private look(call: ViewerCall, followed: Followed): Promise<Found> {
    const nowMs = this.parts.clock.monotonicMs();
    const { identity, isOperator } = call;
    const caller = JSON.stringify([identity.subject, identity.namespace.name, isOperator]);
    const key = `${caller} ${followed.of}`;
    const known = this.looks.get(key);
    if (known !== undefined && (!known.isDone || nowMs - known.atMs < everyMs / 2)) return known.found;
    for (const [other, { atMs, isDone }] of this.looks) {
      if (isDone && nowMs - atMs >= everyMs / 2) this.looks.delete(other);
    }
    for (const [other, { atMs }] of this.characters) if (nowMs - atMs >= everyMs / 2) this.characters.delete(other);
    const total = this.characters.get(caller) ?? { atMs: nowMs, found: 0 };
    this.characters.set(caller, total);
    const ask = async (): Promise<Found> => {
      if (total.found > mostCharacters) return tooLarge;
      const one = await this.ask(call, followed);
      if (!('error' in one)) total.found += charactersOf(one);
      return total.found > mostCharacters ? tooLarge : one;
    };
    const look = { atMs: nowMs, isDone: false, found: this.accounts.take(identity.namespace.uuid, ask) };
    // ask() does not reject: its errors are answers.
    void look.found.finally(() => {
      look.isDone = true;
      look.atMs = this.parts.clock.monotonicMs();
    });
    this.looks.set(key, look);
    return look.found;
  }

  private async ask(call: ViewerCall, { route, params, query }: Followed): Promise<Found> {
    try {
      const { authorization } = call.request.headers;
      // An operator's key is of no namespace.
      if (route.access === 'identified') await this.parts.authentication.namespace(authorization);
      const answer = await route.handle({ ...call, params, query });
      const { status } = answer;
      if (answer.pieces !== undefined) return await snapshotOfPieces(answer.pieces);
      if (answer.stream !== undefined) return { status: 404, error: noSuchRoute().message };
      if (status !== 200) return { status, error: `The answer has status ${status}.` };
      if (answer.value !== undefined) return snapshotOf(answer.value);
      return answer.body.length > mostBytes ? tooLarge : snapshotOf(JSON.parse(String(answer.body)) as JsonValue);
    } catch (error) {
      const { status, message } = knownError(error, call.transactionId, this.parts.logger);
      return { status, error: message };
    }
  }
}

/** The snapshot of an answer in pieces; tooLarge as soon as it has more bytes than it may. */
async function snapshotOfPieces(pieces: AsyncIterable<Uint8Array>): Promise<Found> {
  const all: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of pieces) {
    all.push(piece);
    bytes += piece.length;
    if (bytes > mostBytes) return tooLarge;
  }
  return snapshotOf(JSON.parse(Buffer.concat(all).toString('utf8')) as JsonValue);
}

/** Stands for the snapshot before the first one. */
const nothing: Snapshot = { text: '' };

/** Messages that several streams are told, each made once: from one snapshot to another. */
class EventTexts {
  /** By the snapshot after and the one before. Both are held weakly: each is after the one before it. */
  private readonly known = new WeakMap<Snapshot, WeakMap<Snapshot, { text: Buffer | undefined }>>();

  /** The event of a path whose answer was `before` when it was told last; undefined if nothing has changed. */
  of(path: string, before: Snapshot | undefined, after: Snapshot, at: number): Buffer | undefined {
    const made = this.known.get(after) ?? new WeakMap<Snapshot, { text: Buffer | undefined }>();
    this.known.set(after, made);
    const told = made.get(before ?? nothing);
    if (told !== undefined) return told.text;
    const message = messageOf(before, after);
    const text = message && Buffer.from(eventText(message.event, { of: path, at }, message.members));
    // A stream that lags has another snapshot before; there are no more of them than streams of the caller.
    made.set(before ?? nothing, { text });
    return text;
  }
}

/** Dependencies of Stream. */
interface StreamParts extends LiveStreamsParts {
  look: (followed: Followed) => Promise<Found>;
  /** Whether the caller's namespace has used so much time that it is not looked for now. */
  rests: () => boolean;
  events: EventTexts;
}

/** One client, and what it was told last. */
class Stream {
  private readonly told = new Map<string, Found>();
  private toldMs: number;
  private isClosed = false;
  private isRunning = false;

  constructor(
    private readonly parts: StreamParts,
    readonly call: ViewerCall,
    private readonly followed: readonly Followed[],
    private readonly response: ServerResponse,
  ) {
    this.toldMs = parts.clock.monotonicMs();
  }

  /** Looks, and tells what has changed, unless a look is under way. */
  run(): void {
    if (this.isClosed || this.isRunning) return;
    this.isRunning = true;
    this.turn()
      .catch((error: unknown) => {
        const known = knownError(error, this.call.transactionId, this.parts.logger);
        this.end(known.status, known.message);
      })
      .finally(() => (this.isRunning = false));
  }

  /** Tells the client why the stream ends, and ends it. */
  end(status: number, error: string): void {
    this.close();
    if (this.response.writable) this.response.end(eventText('end', { status, error }));
  }

  close(): void {
    this.isClosed = true;
  }

  private async turn(): Promise<void> {
    const { clock, authentication } = this.parts;
    await authentication.viewer(this.call.request.headers.authorization);
    const nowMs = clock.monotonicMs();
    if (this.response.writableNeedDrain) {
      if (nowMs - this.toldMs >= stalledMs) this.response.destroy();
      return;
    }
    const found = this.parts.rests() ? [] : await Promise.all(this.followed.map(this.parts.look));
    const at = clock.now();
    const events = found.flatMap((one, index) => this.news((this.followed[index] as Followed).of, one, at));
    if (this.isClosed) return;
    if (events.length === 0 && nowMs - this.toldMs >= beatMs) events.push(Buffer.from(eventText('beat', { at })));
    if (events.length === 0) return;
    this.toldMs = nowMs;
    for (const event of events) this.response.write(event);
  }

  private news(of: string, found: Found, at: number): Buffer[] {
    const before = this.told.get(of);
    this.told.set(of, found);
    if ('error' in found) {
      const isSame = before !== undefined && 'error' in before && before.error === found.error;
      const problem = { of, at, status: found.status, error: found.error };
      return isSame ? [] : [Buffer.from(eventText('problem', problem))];
    }
    const event = this.parts.events.of(of, before === undefined || 'error' in before ? undefined : before, found, at);
    return event === undefined ? [] : [event];
  }
}

/** The query of a path that is followed. Throws ApiError (400) if it wants whole documents or code. */
function summaryQuery({ parameters = [] }: Route, query: URLSearchParams): URLSearchParams {
  for (const name of contentParameters) {
    if (!parameters.some((one) => one.name === name)) continue;
    if (booleanParameter(query, name, false)) {
      throw malformedQuery(name, `Streams send summaries; '${name}' is answered without a stream.`);
    }
    query.set(name, 'false');
  }
  return query;
}

/** The parameters of a path that a route serves, decoded; undefined if it does not. */
function matched(pattern: string, path: string): Record<string, string> | undefined {
  const [wanted, given] = [pattern.split('/'), path.split('/')];
  if (wanted.length !== given.length) return undefined;
  const params: Record<string, string> = {};
  for (const [at, part] of wanted.entries()) {
    const value = given[at] ?? '';
    const [, name] = /^\{(\w+)\}$/.exec(part) ?? [];
    if (name === undefined) {
      if (part !== value) return undefined;
    } else {
      try {
        params[name] = decodeURIComponent(value);
      } catch {
        return undefined;
      }
    }
  }
  return params;
}

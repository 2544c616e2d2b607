import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join, dirname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { shareClasses, tokenStates, type Share, type ShareClass, type TokenState } from '@gpuwhisk/common/gpu';
import { columnNames, columnsBytes, columnsOver, type TokenColumns } from '@gpuwhisk/gpu/tokens/token-machine';
import type { ModuleSource } from '@gpuwhisk/gpu/policies/policy-modules';
import { builtPath } from '../../../host/native-programs.js';

/** Shape of native/token-server/addon.cpp. */
interface TokenAddon {
  /** Names of the board's columns in their order; `headerWords` precede them. */
  columns: string[];
  headerWords: number;
  /**
   * Waits, blocking the thread, until the tick differs from `last`, at most 1 s. Returns the present tick, or null after
   * close.
   */
  waitTick(board: Int32Array, last: number): number | null;
  TokenServer: new (
    options: { socketPath: string; periodMs: number; places: number; board: Int32Array },
    onEvent: (kind: 'hello' | 'gone', id: number, pid: number, uid: number, ticket: string) => void,
  ) => NativeTokenServer;
}

interface NativeTokenServer {
  take(place: number, terms: { memoryCapBytes: number; contextBytes: number; budget: number; device: Buffer }): void;
  /** Puts the process that waits for an answer into a place; whether that succeeded. */
  admit(connection: number, place: number): boolean;
  refuse(connection: number, isFull: boolean): void;
  release(place: number): void;
  setMemoryCap(place: number, bytes: number): void;
  place(place: number): { taken: number; waits: number; spins: number; opened: number; memoryUsedBytes: number };
  figures(): TickFigures;
  close(): void;
}

/** Timing of the periods. */
interface TickFigures {
  ticks: number;
  /** Periods that repeated the previous budgets, because the decision was late. */
  repeated: number;
  /** Number of silences that were long enough for clients to go on without the server. */
  silences: number;
  jitterMs: { p50: number; p99: number; max: number };
  scheduling: 'fifo' | 'nice' | 'usual';
}

/** Path of the library that is preloaded into programs. */
export const tokenLibraryPath = builtPath('tokens/libgpuwhisk-tokens.so');
const tokenAddonPath = builtPath('tokens.node');

/** The addon, or undefined if it is not built. */
export function loadTokenAddon(path = tokenAddonPath): TokenAddon | undefined {
  if (!existsSync(path) || !existsSync(tokenLibraryPath)) return undefined;
  return createRequire(import.meta.url)(path) as TokenAddon;
}

const bytesPerMiB = 2 ** 20;
const startTimeoutMs = 10_000;
const defaultPeriodMs = 5;
/** Periods without an answer of the deciding thread after which a module's token policy is given up: a second. */
const mostUnanswered = 200;
/** Time that the deciding thread has to end by itself, ms. */
const endMs = 1000;

export interface TokenServerOptions {
  /** The server's own folder, with its key and the folder of its socket, which containers see. */
  folder: string;
  /** Simultaneous clients; further ones run without tokens. Default 64. */
  places?: number;
  /** Default 5 (Dilu, section 3.4.1). */
  periodMs?: number;
  /** Device memory of a context, MiB; default 0. */
  contextMiB?: (device: string) => number;
  /** Called with a line for each event that an operator should know of; must not throw. */
  say?: (line: string) => void;
  addonPath?: string;
  /** Who issues the budgets: a token policy, and the policy modules that it may be in. Default: `dilu`. */
  policy?: { name: string; modules: readonly ModuleSource[] };
}

/** The holder of a share: one or more processes in a place of the board. */
export interface TokenClient {
  ticket: Ticket;
  place: number;
  pids: Set<number>;
  /** How often the client's processes went on without the server, as far as they reported it. */
  opened: number;
}

/** A client's counters and budget. */
export interface TokenClientFigures {
  /** Blocks launched or waiting. */
  taken: number;
  /** Launches that had to wait. */
  waits: number;
  /** Periods at whose end a waiting thread was awake (docs/gpu.md). */
  spins: number;
  opened: number;
  memoryUsedBytes: number;
  /** Budget of the present period, blocks. */
  budget: number;
  /** Blocks per period when alone; 0 while unknown. */
  soloRate: number;
  /** Of its device or slice. */
  state: TokenState;
  /** Launch cycles that the runtime has marked; `cycleBatch` and `cycleMs` are batch size and length of the last one. */
  cycles: number;
  cycleBatch: number;
  cycleMs: number;
}

/** The server of kernel tokens on a node. Gives processes with a ticket a place and issues budgets each period. */
export class TokenServer {
  readonly socketFolder: string;
  readonly socketPath: string;
  private readonly clients = new Map<string, TokenClient>();
  private readonly free: number[];
  private readonly gpus: string[] = [];
  private readonly native: NativeTokenServer;
  private worker: Worker;
  /** The tick that the deciding thread had answered last, and the number of periods when `problem` first saw that. */
  private answered = { tick: 0, ticks: 0 };
  /** Whether a token policy of a module decides. */
  private isForeign: boolean;
  private epoch = 0;
  private silences = 0;
  private workerProblem: string | undefined;
  private closing: Promise<void> | undefined;

  private constructor(
    private readonly options: TokenServerOptions,
    addon: TokenAddon,
    private readonly key: Buffer,
    private readonly board: TokenBoard,
    private readonly places: number,
  ) {
    this.socketFolder = join(options.folder, 'socket');
    this.socketPath = join(this.socketFolder, 'tokens.sock');
    this.free = Array.from({ length: places }, (_, i) => places - 1 - i);
    this.native = new addon.TokenServer(
      { socketPath: this.socketPath, periodMs: options.periodMs ?? defaultPeriodMs, places, board: board.words },
      (kind, id, pid, _uid, ticket) => this.onClientEvent(kind, id, pid, ticket),
    );
    this.isForeign = options.policy !== undefined;
    this.worker = this.startWorker(options.policy);
  }

  private startWorker(policy: TokenServerOptions['policy']): Worker {
    const { addonPath = tokenAddonPath, periodMs = defaultPeriodMs } = this.options;
    const worker = new Worker(new URL('./token-worker.js', import.meta.url), {
      workerData: { memory: this.board.words.buffer, places: this.places, addonPath, periodMs, policy },
    });
    worker.unref();
    worker.on('error', (error) => {
      this.workerProblem = error.message;
      this.say(`The thread that issues kernel tokens has ended: ${error.message}`);
    });
    worker.on('message', ({ fault }: { fault?: string }) => {
      if (fault === undefined) return;
      this.isForeign = false;
      this.say(`Token policy '${policy?.name}' failed, and dilu issues tokens instead: ${fault}`);
    });
    return worker;
  }

  /** Starts the server with its threads. Rejects if the addon is not built or the folder cannot be used. */
  static async start(options: TokenServerOptions): Promise<TokenServer> {
    const addon = loadTokenAddon(options.addonPath);
    if (addon === undefined) throw new Error('Kernel tokens need a C++ compiler when the platform is built.');
    checkLayout(addon);
    const key = await openTicketKey(join(options.folder, 'key'));
    await mkdir(join(options.folder, 'socket'), { recursive: true, mode: 0o755 });
    const places = options.places ?? 64;
    const server = new TokenServer(options, addon, key, boardOver(places), places);
    try {
      await once(server.worker, 'message', { signal: AbortSignal.timeout(startTimeoutMs) });
    } catch (error) {
      await server.close();
      throw new Error('The thread that issues kernel tokens does not start.', { cause: error });
    }
    return server;
  }

  /** A ticket for processes to be started. Throws RangeError if the names in the ticket are too long. */
  ticketFor(device: string, share: Share, slice?: string): string {
    return issueTicket(this.key, { device, share, ...(slice !== undefined && { slice }) });
  }

  /** The client that a process belongs to, or undefined if the process never showed a ticket. */
  clientOf(pid: number): TokenClient | undefined {
    return this.all().find(({ pids }) => pids.has(pid));
  }

  all(): TokenClient[] {
    return [...this.clients.values()];
  }

  /**
   * Changes a client's request, limit and cap; its class stays. With `forAnother`, or if `share.tokens` differs,
   * measurements of the client's rate and launch cycles are discarded.
   */
  adjust(client: TokenClient, share: Share, forAnother = false): void {
    const before = client.ticket.share.tokens;
    if (forAnother || before?.maxTokens !== share.tokens?.maxTokens || before?.violation !== share.tokens?.violation) {
      this.board.columns.epoch[client.place] = this.epoch += 1;
    }
    client.ticket = { ...client.ticket, share };
    this.writeTerms(client);
    this.native.setMemoryCap(client.place, share.memoryMiB * bytesPerMiB);
  }

  /** Ends a client: its processes can no longer launch or allocate. */
  end(client: TokenClient): void {
    this.clients.delete(client.ticket.id);
    this.board.columns.epoch[client.place] = 0;
    this.native.release(client.place);
    this.free.push(client.place);
  }

  figuresOf({ place }: TokenClient): TokenClientFigures {
    const { budget, soloRate, state, cycles, cycleBatch, cycleMs } = this.board.columns;
    return {
      ...this.native.place(place),
      budget: valueAt(budget, place),
      soloRate: valueAt(soloRate, place),
      state: tokenStates[valueAt(state, place)] ?? 'NONE',
      cycles: valueAt(cycles, place),
      cycleBatch: valueAt(cycleBatch, place),
      cycleMs: valueAt(cycleMs, place),
    };
  }

  figures(): TickFigures {
    return this.native.figures();
  }

  /** The server's problem; undefined if there is none. */
  problem(): string | undefined {
    if (this.closing !== undefined) return 'The server of kernel tokens is closed.';
    if (this.workerProblem !== undefined) return `Kernel tokens are no longer issued: ${this.workerProblem}`;
    this.replaceStuckWorker();
    // Clients count this themselves and may lie: their counts matter only if the server was silent.
    const { silences } = this.native.figures();
    const wasSilent = silences !== this.silences;
    this.silences = silences;
    for (const client of this.all()) {
      const { opened } = this.native.place(client.place);
      if (opened === client.opened) continue;
      client.opened = opened;
      if (!wasSilent) continue;
      return `Processes ${[...client.pids].join(', ')} went on without tokens: the server was silent for a second.`;
    }
    return undefined;
  }

  /** Has `dilu` decide if a token policy of a module has not ended a step for a second. */
  private replaceStuckWorker(): void {
    const { ticks } = this.native.figures();
    const tick = Atomics.load(this.board.words, decidedWord);
    const isStuck = tick === this.answered.tick && ticks - this.answered.ticks >= mostUnanswered;
    if (tick !== this.answered.tick) this.answered = { tick, ticks };
    if (!isStuck || !this.isForeign) return;
    this.isForeign = false;
    const stuck = this.worker;
    stuck.removeAllListeners();
    stuck.on('error', (error) => this.say(`The thread that was stuck has ended: ${error.message}`));
    void stuck.terminate();
    this.worker = this.startWorker(undefined);
    const { name = '' } = this.options.policy ?? {};
    this.say(`Token policy '${name}' did not end a step within a second, and dilu issues tokens instead.`);
  }

  /** Ends the threads and removes the socket; remaining clients go on without tokens. Idempotent. */
  close(): Promise<void> {
    this.closing ??= this.endThreads();
    return this.closing;
  }

  private async endThreads(): Promise<void> {
    const ended = this.workerProblem === undefined ? once(this.worker, 'exit') : undefined;
    this.native.close();
    this.worker.ref();
    // A module's policy that does not end its step does not see that the server closes.
    const stuck = this.isForeign ? setTimeout(() => void this.worker.terminate(), endMs) : undefined;
    await ended;
    clearTimeout(stuck);
    this.clients.clear();
  }

  private onClientEvent(kind: 'hello' | 'gone', id: number, pid: number, ticket: string): void {
    if (this.closing !== undefined) return;
    try {
      if (kind === 'hello') this.welcome(id, pid, ticket);
      else this.leave(id, pid);
    } catch (error) {
      // The system has no descriptors or memory for a page. The process runs without tokens and retries.
      this.say(`Process ${pid} gets no tokens: ${(error as Error).message}`);
    }
  }

  private welcome(connection: number, pid: number, text: string): void {
    const ticket = readTicket(this.key, text);
    if (ticket === undefined) {
      this.native.refuse(connection, false);
      this.say(`Process ${pid} showed an invalid ticket and runs without tokens.`);
      return;
    }
    const client = this.clients.get(ticket.id) ?? this.enter(ticket);
    if (client === undefined) {
      this.native.refuse(connection, true);
      this.say(`Process ${pid} runs without tokens: all places are taken.`);
      return;
    }
    if (this.native.admit(connection, client.place)) client.pids.add(pid);
    else if (client.pids.size === 0) this.end(client);
  }

  private enter(ticket: Ticket): TokenClient | undefined {
    const place = this.free.at(-1);
    if (place === undefined) return undefined;
    const client: TokenClient = { ticket, place, pids: new Set(), opened: 0 };
    this.writeTerms(client);
    const budget = this.firstBudget(client);
    this.native.take(place, {
      memoryCapBytes: ticket.share.memoryMiB * bytesPerMiB,
      contextBytes: (this.options.contextMiB?.(ticket.device) ?? 0) * bytesPerMiB,
      budget,
      device: uuidBytes(ticket.slice ?? ticket.device),
    });
    this.free.pop();
    this.board.columns.budget[place] = budget;
    this.board.columns.epoch[place] = this.epoch += 1;
    this.clients.set(ticket.id, client);
    return client;
  }

  /** The budget until the first decision: the request, or the whole device if the client is alone or its rate is unknown. */
  private firstBudget({ place }: TokenClient): number {
    const { epoch, gpu, request, limit, maxTokens } = this.board.columns;
    const isAlone = !gpu.some((other, i) => i !== place && epoch[i] !== 0 && other === gpu[place]);
    if (maxTokens[place] === 0 || (isAlone && valueAt(limit, place) >= 1)) return Infinity;
    return Math.max(1, valueAt(maxTokens, place) * valueAt(request, place));
  }

  private writeTerms({ place, ticket }: TokenClient): void {
    const { gpu, request, limit, maxTokens, violation } = this.board.columns;
    const { share } = ticket;
    gpu[place] = this.numberOf(ticket.slice ?? ticket.device);
    const smLimit = Math.min(1, share.smLimit);
    limit[place] = smLimit;
    request[place] = Math.min(smLimit, share.smRequest);
    maxTokens[place] = share.tokens?.maxTokens ?? 0;
    violation[place] = share.tokens?.violation ?? 0;
  }

  private leave(place: number, pid: number): void {
    const client = this.all().find((client) => client.place === place);
    // The client may have ended, and its place may belong to another.
    if (client?.pids.delete(pid) && client.pids.size === 0) this.end(client);
  }

  private numberOf(uuid: string): number {
    const known = this.gpus.indexOf(uuid);
    return known >= 0 ? known : this.gpus.push(uuid) - 1;
  }

  private say(line: string): void {
    this.options.say?.(line);
  }
}

/** The value of a column at a place of the board. Throws RangeError if there is no such place. */
function valueAt(column: Float64Array, place: number): number {
  const value = column[place];
  if (value === undefined) throw new RangeError(`The board has no place ${place}.`);
  return value;
}

/** A UUID `GPU-…` or `MIG-…` as the driver's 16 bytes. */
function uuidBytes(uuid: string): Buffer {
  const bytes = Buffer.alloc(16);
  Buffer.from(uuid.replace(/^[A-Z]+-/, '').replaceAll('-', ''), 'hex').copy(bytes);
  return bytes;
}

/** A proof that a process may have tokens; processes with the same ticket share their tokens. */
interface Ticket {
  id: string;
  device: string;
  slice?: string;
  share: Share;
}

const keyBytes = 32;
/** Length limit of native/tokens/page.h, without the final zero. */
const maxTicketBytes = 511;

/**
 * The key in the file `path`, made if there is no file. Tickets outlive an agent, and its successor finds the clients by
 * them. Rejects if the file is no key.
 */
async function openTicketKey(path: string): Promise<Buffer> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  try {
    await writeFile(path, randomBytes(keyBytes), { flag: 'wx', mode: 0o600 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  const key = await readFile(path);
  if (key.length !== keyBytes) throw new Error(`${path} is no key of ${keyBytes} bytes.`);
  return key;
}

const sign = (key: Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest();

/** A new ticket as text, without commas. Throws RangeError if the ticket is too long. */
function issueTicket(key: Buffer, { device, slice, share }: Omit<Ticket, 'id'>): string {
  const { shareClass, smRequest, smLimit, memoryMiB, tokens } = share;
  const fields = [
    randomBytes(12).toString('base64url'),
    device,
    slice ?? '',
    shareClass,
    smRequest,
    smLimit,
    memoryMiB,
    tokens?.maxTokens ?? 0,
    tokens?.violation ?? 0,
  ];
  const body = Buffer.from(JSON.stringify(fields)).toString('base64url');
  const ticket = `${body}.${sign(key, body).toString('base64url')}`;
  if (ticket.length > maxTicketBytes) throw new RangeError(`The ticket for ${device} is too long.`);
  return ticket;
}

/** The contents of a ticket, or undefined if the ticket was not issued with this key. */
function readTicket(key: Buffer, text: string): Ticket | undefined {
  const [body = '', signature = ''] = text.split('.');
  const expected = sign(key, body);
  const given = Buffer.from(signature, 'base64url');
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) return undefined;
  const [id, device, slice, shareClass, smRequest, smLimit, memoryMiB, maxTokens, violation] = JSON.parse(
    Buffer.from(body, 'base64url').toString(),
  ) as [string, string, string, ShareClass, number, number, number, number, number];
  if (!shareClasses.includes(shareClass)) return undefined;
  const tokens = { ...(maxTokens > 0 && { maxTokens }), ...(violation > 0 && { violation }) };
  return {
    id,
    device,
    ...(slice !== '' && { slice }),
    share: { shareClass, smRequest, smLimit, memoryMiB, ...(Object.keys(tokens).length > 0 && { tokens }) },
  };
}

/** Words of the header, as in native/token-server/board.h. */
const headerWords = 16;
export const decidedWord = 2;

/** Memory shared by the main thread, the deciding thread and the ticking thread. */
interface TokenBoard {
  words: Int32Array;
  columns: TokenColumns;
}

/** A board for `places` clients, new or over existing `memory`. */
export function boardOver(places: number, memory?: SharedArrayBuffer): TokenBoard {
  const headerBytes = headerWords * Int32Array.BYTES_PER_ELEMENT;
  const buffer = memory ?? new SharedArrayBuffer(headerBytes + columnsBytes(places));
  return { words: new Int32Array(buffer), columns: columnsOver(buffer, headerBytes, places) };
}

/** Throws Error if the addon was built for another layout. */
function checkLayout(addon: { columns: string[]; headerWords: number }): void {
  if (addon.headerWords !== headerWords || addon.columns.join() !== columnNames.join()) {
    throw new Error('The addon of kernel tokens was built for another version.');
  }
}

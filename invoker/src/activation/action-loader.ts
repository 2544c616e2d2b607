import type { ActionLimits, Exec } from '@gpuwhisk/common/entities/action';
import { readAction, readActionCode } from '@gpuwhisk/common/entities/action';
import { isReference } from '@gpuwhisk/common/entities/exec-codec';
import { LargeCode, mostSmallBytes } from '@gpuwhisk/common/entities/large-code';
import { MalformedError } from '@gpuwhisk/common/entities/malformed';
import { parameterValue } from '@gpuwhisk/common/entities/parameters';
import type { Parameter } from '@gpuwhisk/common/entities/parameters';
import { validateRequirements, readWarm } from '@gpuwhisk/common/entities/action-annotations';
import type { Warm } from '@gpuwhisk/common/entities/action-annotations';
import type { ActionReference } from '@gpuwhisk/common/messages';
import { NoDocumentError } from '@gpuwhisk/common/store/artifact-store';
import type { ArtifactStore, StoredDocument } from '@gpuwhisk/common/store/artifact-store';
import { sleep } from '@gpuwhisk/common/system/clock';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { fair } from '@gpuwhisk/common/concurrency';
import { kindOfImage } from '../runtimes/proxy-runtime.js';
import type { NpmFiles, NpmPackages } from '../containers/container-factory.js';
import { leadingImports } from './leading-imports.js';
import { leadingRequires } from './leading-requires.js';
import { npmFilesIn, npmKey } from './npm-packages.js';

/** An action's code. */
export interface ActionCode {
  /** Source text, or base64 when binary; absent where it is large. */
  code?: string;
  large?: LargeCode;
  binary: boolean;
  /**
   * SHA-256 of the text or the bytes as they were registered, hexadecimal; absent in documents that other programs wrote.
   */
  digest?: string;
}

/** One revision of an action, ready to be run: all but its code, which only a cold container needs. */
export interface RunnableAction {
  /** `ns` or `ns/pkg`. */
  namespace: string;
  name: string;
  version: string;
  revision: string;
  kind: string;
  /** The action's runtime: its kind, or `blackbox:` and the image (see kindOfImage). */
  runtime: string;
  main: string;
  limits: ActionLimits;
  annotations: readonly Parameter[];
  /** As ContainerSpec.requirements. */
  requirements: readonly string[];
  /** As ContainerSpec.npm. */
  npm?: NpmPackages;
  /** Annotation `warm`. */
  warm: Warm;
  /** As leadingImports and leadingRequires tell; absent also where that is not looked at. */
  leadingImports?: readonly string[] | undefined;
  /**
   * The action's code for a caller, whose namespace waits for its turn where the code is large. Rejects if the store cannot read
   * the code.
   */
  code(caller: string): Promise<ActionCode>;
  /** Whether the revision is the action's present one, as far as the store can tell. Never rejects. */
  isCurrent(): Promise<boolean>;
}

/** `/ns/pkg/name`. */
export function fullyQualifiedName(action: Pick<RunnableAction, 'namespace' | 'name'>): string {
  return `/${action.namespace}/${action.name}`;
}

/** Why an action cannot be run, in OpenWhisk's words. */
type LoadFailure =
  | 'Action could not be found or may have been deleted.'
  | 'Action version is not compatible and cannot be invoked.'
  | 'Action could not be fetched.';

type Loaded = { action: RunnableAction } | { failure: LoadFailure; reason: string };

/** Large codes that are read and passed on at once; further containers wait for their turn, by their callers' namespaces. */
const mostLarge = 4;

/** Readers of imports, by language. */
const importReaders: Readonly<Record<string, (source: string) => string[] | undefined>> = {
  python: leadingImports,
  nodejs: leadingRequires,
};

const cacheSize = 2000;
/** Largest source whose imports are looked at, bytes. */
const maxReadBytes = 64 * 1024;
/** Largest archive that is looked at for npm packages, bytes. */
const maxArchiveBytes = 8 * 1024 * 1024;
/** How long reads of an action from a failing store are retried, ms. */
const patienceMs = 60_000;
const firstRetryMs = 100;
const longestRetryMs = 2000;

/** Reads the actions that messages name, and remembers the revisions it has read (without their code). */
export class ActionLoader {
  private readonly cache = new Map<string, RunnableAction>();
  /** Each container of the pool waits at most once. */
  private readonly inTurn = fair(mostLarge, Infinity);

  constructor(
    private readonly store: ArtifactStore,
    private readonly clock: Clock,
    /** Whether the invoker is closing: retries end then. */
    private readonly isClosing: () => boolean,
    /** The kind that `<family>:default`, or a major version such as `python:3`, means on this invoker; undefined if none. */
    private readonly defaultKind: (kind: string) => string | undefined,
    /** Whether leading imports of source are looked at. */
    private readonly readsImports = false,
    /** Whether containers get the npm packages that archives name. */
    private readonly installsNpm = false,
  ) {}

  /** The revision that a message names, or undefined if that revision has not been read yet. */
  cached(reference: ActionReference, revision: string): RunnableAction | undefined {
    return this.cache.get(cacheKey(reference, revision));
  }

  /** Reads the revision that a message names; never rejects. */
  async load(reference: ActionReference, revision: string): Promise<Loaded> {
    const id = `${reference.path}/${reference.name}`;
    try {
      const document = await this.patiently(() => this.store.get('whisks', id));
      if (document._rev !== revision) {
        return {
          failure: 'Action version is not compatible and cannot be invoked.',
          reason: `revision is ${String(document._rev)}`,
        };
      }
      const read = readAction(document);
      const runnable = this.runnable(id, read);
      const npm = await this.npmPackages(document, runnable, read);
      const action = {
        ...runnable,
        ...(npm !== undefined && { npm, requirements: [npm.key] }),
        leadingImports: await this.leadingImports(document, read),
      };
      if (this.cache.size >= cacheSize) {
        const oldest = this.cache.keys().next();
        if (!oldest.done) this.cache.delete(oldest.value);
      }
      this.cache.set(cacheKey(reference, revision), action);
      return { action };
    } catch (error) {
      if (error instanceof NoDocumentError) {
        return { failure: 'Action could not be found or may have been deleted.', reason: error.message };
      }
      return { failure: 'Action could not be fetched.', reason: String(error) };
    }
  }

  /** Retries a failing read for `patienceMs`: a short failure of the store must not fail accepted activations. */
  private async patiently<Value>(read: () => Promise<Value>): Promise<Value> {
    const untilMs = this.clock.monotonicMs() + patienceMs;
    for (let retryMs = firstRetryMs; ; retryMs = Math.min(longestRetryMs, retryMs * 2)) {
      try {
        return await read();
      } catch (error) {
        const isFinal = error instanceof NoDocumentError || error instanceof MalformedError;
        if (isFinal || this.isClosing() || this.clock.monotonicMs() + retryMs > untilMs) throw error;
        await sleep(this.clock, retryMs);
      }
    }
  }

  /** The modules that source of at most 64 KiB imports before all else; undefined where that is not sure. */
  private async leadingImports(
    document: StoredDocument,
    { exec }: ReturnType<typeof readAction>,
  ): Promise<string[] | undefined> {
    const read = importReaders[exec.kind.split(':')[0] ?? ''];
    if (!this.readsImports || read === undefined || !('binary' in exec) || exec.binary) return undefined;
    if (isReference(exec.code) && (exec.code.length ?? Infinity) > maxReadBytes) return undefined;
    const { code } = await this.patiently(() => readActionCode(this.store, document));
    return typeof code === 'string' && code.length <= maxReadBytes ? read(code) : undefined;
  }

  /** The packages that an archive of at most 8 MiB names in its package.json and does not bring. */
  private async npmPackages(
    document: StoredDocument,
    runnable: RunnableAction,
    { exec, namespace }: ReturnType<typeof readAction>,
  ): Promise<NpmPackages | undefined> {
    const isArchive = 'binary' in exec && exec.binary && runnable.kind.startsWith('nodejs:');
    if (!this.installsNpm || !isArchive || !('code' in exec)) return undefined;
    if (isReference(exec.code) && (exec.code.length ?? Infinity) > maxArchiveBytes) return undefined;
    const { code } = await this.patiently(() => readActionCode(this.store, document));
    const found = npmFilesIn(typeof code === 'string' ? Buffer.from(code, 'base64') : code);
    if (found === undefined) return undefined;
    // Not kept: a lock file may be large.
    const files = async (): Promise<NpmFiles> => {
      const { code: again = '', large } = await runnable.code(namespace);
      try {
        const bytes = large?.bytes ?? Buffer.from(again, 'base64');
        return npmFilesIn(bytes) ?? { problem: 'the action was changed meanwhile' };
      } finally {
        large?.passed();
      }
    };
    return { key: npmKey(found), files };
  }

  /** Reads code, and has the next wait until it has been passed on. */
  private readInTurn(caller: string, read: (onPassed: () => void) => Promise<ActionCode>): Promise<ActionCode> {
    return new Promise((resolve, reject) => {
      const turn = (): Promise<void> =>
        new Promise((end) => {
          read(end).then(
            (code) => {
              if (code.large === undefined) end();
              resolve(code);
            },
            (error: Error) => {
              end();
              reject(error);
            },
          );
        });
      this.inTurn(caller, turn).catch(reject);
    });
  }

  private runnable(id: string, action: ReturnType<typeof readAction>): RunnableAction {
    const { exec, annotations } = action;
    if (exec.kind === 'sequence') throw new Error('a sequence is not run by an invoker');
    const kind = this.defaultKind(exec.kind) ?? exec.kind;
    const requirements = parameterValue(annotations, 'requirements');
    const warm = parameterValue(annotations, 'warm');
    const read = async (onPassed: () => void = () => undefined): Promise<ActionCode> => {
      const document = await this.patiently(() => this.store.get('whisks', id));
      if (document._rev !== action.revision) throw new Error('the action was changed meanwhile');
      const { code, binary } = await this.patiently(() => readActionCode(this.store, document));
      const given = typeof code === 'string' ? { code } : { large: new LargeCode(code, onPassed) };
      return { ...given, binary, ...registeredDigest(exec) };
    };
    const isCurrent = (): Promise<boolean> =>
      this.store.get('whisks', id).then(
        (document) => document._rev === action.revision,
        (error: unknown) => !(error instanceof NoDocumentError),
      );
    const stored = 'code' in exec ? exec.code : undefined;
    const isLarge = isReference(stored) && (stored.length ?? Infinity) > mostSmallBytes;
    const code = isLarge ? (caller: string) => this.readInTurn(caller, read) : () => read();
    return {
      namespace: action.namespace,
      name: action.name,
      version: action.version,
      revision: action.revision,
      kind,
      runtime: 'image' in exec ? kindOfImage(exec.image) : kind,
      main: ('main' in exec ? exec.main : undefined) ?? 'main',
      limits: action.limits,
      annotations,
      requirements: kind.startsWith('python:') && requirements !== undefined ? validateRequirements(requirements) : [],
      warm: readWarm(warm ?? {}),
      code,
      isCurrent,
    };
  }
}

const sha256Prefix = 'sha256-';

function registeredDigest(exec: Exec): Pick<ActionCode, 'digest'> {
  const code = 'code' in exec ? exec.code : undefined;
  const digest = isReference(code) ? code.digest : undefined;
  return digest?.startsWith(sha256Prefix) ? { digest: digest.slice(sha256Prefix.length) } : {};
}

function cacheKey(reference: ActionReference, revision: string): string {
  return `${reference.path}/${reference.name} ${revision}`;
}

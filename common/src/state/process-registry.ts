import type { JsonObject } from '../json.js';
import { DocumentConflictError, NoDocumentError } from '../store/artifact-store.js';
import type { ArtifactStore, StoredDocument } from '../store/artifact-store.js';

/** Sorts of processes; each has numbers of its own. */
export type ProcessSort = 'invokers' | 'controllers';

/** A process that has, or had, a number in the cluster. */
export interface RegisteredProcess {
  number: number;
  name: string;
  /** The id of the data folder that the number belongs to. */
  holder: string;
  /** Absent: it may come back. */
  retired?: Retirement;
}

/** The end of a process that never comes back. */
export interface Retirement {
  /** Epoch ms: it began nothing later. */
  silentSinceMs: number;
  /** What it left is taken over by the controller with this number. */
  takenOverBy: number;
  /** All that it left is settled. */
  isSettled: boolean;
}

/** Numbers have up to five digits, so that documents are in their order. */
const digits = 5;
const maxProcesses = 10_000;

const prefixOf = (sort: ProcessSort): string => `process/${sort}/`;
const idOf = (sort: ProcessSort, number: number): string => prefixOf(sort) + String(number).padStart(digits, '0');

/** Which data folder each number belongs to, for good: in the store, as the cluster's state may forget. */
export class ProcessRegistry {
  constructor(
    private readonly store: Pick<ArtifactStore, 'get' | 'put' | 'list'>,
    readonly sort: ProcessSort,
  ) {}

  /** All that have ever had a number. */
  async all(): Promise<RegisteredProcess[]> {
    const prefix = prefixOf(this.sort);
    const documents = await this.store.list('gpu', { after: prefix, limit: maxProcesses });
    return documents.filter(({ _id }) => _id.startsWith(prefix)).map(read);
  }

  /** The process with this number; undefined: there was none. */
  async get(number: number): Promise<RegisteredProcess | undefined> {
    try {
      return read(await this.store.get('gpu', idOf(this.sort, number)));
    } catch (error) {
      if (!(error instanceof NoDocumentError)) throw error;
      return undefined;
    }
  }

  /** Gives the number to a data folder; false if it belongs to one. */
  async add(process: RegisteredProcess): Promise<boolean> {
    try {
      await this.store.put('gpu', { _id: idOf(this.sort, process.number), ...write(process) });
      return true;
    } catch (error) {
      if (!(error instanceof DocumentConflictError)) throw error;
      return false;
    }
  }

  /** Notes the retirement of a process, or how far it is. Throws DocumentConflictError if another does so. */
  async retire(number: number, retired: Retirement): Promise<void> {
    const document = await this.store.get('gpu', idOf(this.sort, number));
    await this.store.put('gpu', { ...document, retired: { ...retired } });
  }
}

const write = ({ retired, ...process }: RegisteredProcess): JsonObject => ({
  ...process,
  ...(retired && { retired: { ...retired } }),
});

function read(document: StoredDocument): RegisteredProcess {
  const { number, name, holder, retired } = document as unknown as RegisteredProcess;
  return { number, name, holder, ...(retired && { retired }) };
}

// The machines that the platform has rented, each a document, so that no machine is forgotten while it is paid for.
import { withoutUndefined } from '@gpuwhisk/common/collections';
import type { ArtifactStore, StoredDocument } from '@gpuwhisk/common/store/artifact-store';
import { NoDocumentError } from '@gpuwhisk/common/store/artifact-store';
import type { Market } from '@gpuwhisk/gpu/view/decision';
import { gpuDocuments } from '../state/gpu-documents.js';

/** A machine from the request for it until its provider and the platform have forgotten it. */
export interface Machine {
  /** Id of the request, and label `machine` of its node. */
  id: string;
  market: Market;
  /** Epoch ms. */
  askedAt: number;
  /**
   * `asked`: the provider has not answered. `rented`: it is there, or starts. `leaving`: it is given back once nothing runs
   * there. `ending`: the provider is to end it. `ended`: the provider has, and its invoker is retired.
   */
  state: 'asked' | 'rented' | 'leaving' | 'ending' | 'ended';
  /** The provider's name; absent before its answer. */
  machine?: string;
  pricePerHour?: number;
  /** Topic of its invoker; absent before its first report. */
  node?: string;
  /** When its provider takes it away, epoch ms; absent: nothing was announced. */
  leavesAt?: number;
}

const prefix = 'machine/';

/** All machines. Rejects if the store fails. */
export async function storedMachines(store: ArtifactStore): Promise<Machine[]> {
  return (await gpuDocuments(store, prefix)).map(machineOf);
}

function machineOf(document: StoredDocument): Machine {
  const { id, market, askedAt, state, machine, pricePerHour, node, leavesAt } = document as unknown as Machine;
  return withoutUndefined({ id, market, askedAt, state, machine, pricePerHour, node, leavesAt });
}

/** Reads and writes the documents of machines. Every method rejects if the store fails. */
export class MachineDocuments {
  private readonly revisions = new Map<string, string>();

  constructor(private readonly store: ArtifactStore) {}

  /** All machines. */
  async read(): Promise<Machine[]> {
    this.revisions.clear();
    const documents = await gpuDocuments(this.store, prefix);
    for (const { _id: id, _rev: revision } of documents) this.revisions.set(id.slice(prefix.length), String(revision));
    return documents.map(machineOf);
  }

  async write(machine: Machine): Promise<void> {
    const { id } = machine;
    const known = this.revisions.get(id);
    const document = { ...machine, _id: prefix + id, ...(known !== undefined && { _rev: known }) };
    this.revisions.set(id, await this.store.put('gpu', document as unknown as StoredDocument));
  }

  async remove(id: string): Promise<void> {
    const known = this.revisions.get(id);
    if (known === undefined) return;
    try {
      await this.store.delete('gpu', prefix + id, known);
    } catch (error) {
      if (!(error instanceof NoDocumentError)) throw error;
    }
    this.revisions.delete(id);
  }
}

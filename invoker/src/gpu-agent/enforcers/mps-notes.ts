import { mkdir, open, readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { ShareError } from './share-enforcer.js';

/** What was changed on a machine for MPS, kept on disk: a later life is to put back what this one did not come to. */
export interface MpsNotes {
  /** UUIDs of the devices whose compute mode was set. */
  exclusive: readonly string[];
  /** UUIDs of the devices of each daemon that serves several. */
  gangs: readonly (readonly string[])[];
}

export const noNotes: MpsNotes = { exclusive: [], gangs: [] };

const fileName = 'changed.json';

const isTexts = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((one) => typeof one === 'string');

/** The notes of earlier lives in a folder; none where there is no such folder. Rejects with ShareError. */
export async function readMpsNotes(folder: string): Promise<MpsNotes> {
  const path = join(folder, fileName);
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return noNotes;
    throw new ShareError(`${path} cannot be read: ${(error as Error).message}`);
  }
  try {
    const { exclusive, gangs } = JSON.parse(text) as Partial<Record<keyof MpsNotes, unknown>>;
    if (isTexts(exclusive) && Array.isArray(gangs) && gangs.every(isTexts)) return { exclusive, gangs };
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  throw new ShareError(
    `${path} is not what was written there: set the compute modes of the GPUs by hand, and remove it.`,
  );
}

/** Keeps notes; they are on the disk when it resolves. Rejects with ShareError. */
export async function writeMpsNotes(folder: string, notes: MpsNotes): Promise<void> {
  const path = join(folder, fileName);
  try {
    await mkdir(folder, { recursive: true });
    const file = await open(`${path}.new`, 'w', 0o600);
    try {
      await file.writeFile(JSON.stringify(notes));
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(`${path}.new`, path);
  } catch (error) {
    throw new ShareError(`${path} cannot be written: ${(error as Error).message}`);
  }
}

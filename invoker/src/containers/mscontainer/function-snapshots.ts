// Snapshots of loaded functions: templates of pairs (native/inject/template.h) with a function's code loaded, in memory only. They
// are made by a pair of their own, which loads the code once more, and of which nothing else becomes.
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chmod, mkdir, open, realpath, rm, stat, statfs, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { JsonObject } from '@gpuwhisk/common/json';
import { jsonWithCode } from '@gpuwhisk/common/entities/large-code';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { systemRandom } from '@gpuwhisk/common/system/random';
import type { Random } from '@gpuwhisk/common/system/random';
import { makingTimes } from '../container-factory.js';
import type { FunctionSnapshot, InitRequest, SnapshotWanted } from '../container-factory.js';
import type { ProcessContainerFactory } from '../process/process-factory.js';
import { bindsFor } from '../runtime-launch.js';
import type { Bind, RuntimeLaunch } from '../runtime-launch.js';
import { hasRestorer, restorerPath } from '../../host/native-programs.js';
import { removeTree } from '../../host/trees.js';

const MiB = 1024 * 1024;
/** The file system type of memory (statfs). */
const memoryType = 0x01021994;
const memoryFolder = '/dev/shm';
/** The files in a sandbox. */
const [inside, initInside] = ['/run/template', '/run/init'];

interface FunctionSnapshotsOptions {
  processes: Pick<ProcessContainerFactory, 'launchContainer'>;
  /** The platform's data folder, after which the folder of the snapshots is named. */
  dataDir: string;
  clock: Clock;
  random?: Random;
  logger?: { info(message: string): void };
}

/** Makes the snapshots of one platform. */
export class FunctionSnapshots {
  /** Absent while none are made. */
  private folder: string | undefined;

  constructor(private readonly options: FunctionSnapshotsOptions) {}

  /** Makes the folder, which is emptied. After the start of the factory; `weaknesses`: as that reported them. */
  async start(weaknesses: readonly string[]): Promise<void> {
    const { dataDir, logger } = this.options;
    const name = createHash('sha256')
      .update(await realpath(resolve(dataDir)))
      .digest('hex')
      .slice(0, 12);
    const folder = join(memoryFolder, `gpuwhisk-${name}`);
    await removeTree(folder);
    // Without a user, a root and processes of its own, one sandbox could change another's snapshot.
    if (!hasRestorer() || weaknesses.length > 0 || !existsSync(memoryFolder)) return;
    if ((await statfs(memoryFolder)).type !== memoryType) {
      logger?.info(`There are no snapshots of functions, as ${memoryFolder} is no file system in memory.`);
      return;
    }
    await mkdir(folder, { mode: 0o700 });
    this.folder = folder;
  }

  /** As ContainerFactory.snapshot; `launch`: of the function's pair. */
  async make({ spec, namespace, init }: SnapshotWanted, launch: RuntimeLaunch): Promise<FunctionSnapshot> {
    const { processes, random = systemRandom } = this.options;
    const { folder } = this;
    if (folder === undefined) throw new Error('Sandboxes are not isolated in full here.');
    const memoryMiB = spec.memoryMiB * makingTimes;
    const { bavail, bsize } = await statfs(folder);
    if (bavail * bsize < spec.memoryMiB * MiB)
      throw new Error(`${memoryFolder} has less than ${spec.memoryMiB} MiB left.`);
    const file = join(folder, random.hex(8));
    const given = `${file}.init`;
    try {
      await writeFile(file, '');
      await chmod(file, 0o666); // Sandboxes other than this one have no way to it.
      await this.writeInit(given, init);
      const bounds = { GPUWHISK_TEMPLATE_BYTES: String(spec.memoryMiB * MiB) };
      const env = { ...launch.env, GPUWHISK_SAVE_TEMPLATE: inside, GPUWHISK_LOAD: initInside, ...bounds };
      const binds: Bind[] = [
        { source: file, target: inside, mode: 'rw' },
        { source: given, target: initInside },
      ];
      const making = { ...launch, env, binds: [...launch.binds, ...binds] };
      const options = { ahead: true, forNamespace: namespace };
      const pair = await processes.launchContainer({ ...spec, memoryMiB }, making, options);
      await pair.destroy(); // From here on no process can write the file.
      if (pair.unfit !== undefined) throw new Error(pair.unfit);
      await chmod(file, 0o444);
      const { size } = await stat(file);
      return this.snapshotOf(file, size, { spec, namespace }, launch);
    } catch (error) {
      await rm(file, { force: true });
      throw error;
    } finally {
      await rm(given, { force: true });
    }
  }

  /** Removes all snapshots. After the close of the factory. */
  async close(): Promise<void> {
    const { folder } = this;
    this.folder = undefined;
    if (folder !== undefined) await removeTree(folder);
  }

  private snapshotOf(
    file: string,
    bytes: number,
    { spec, namespace }: Pick<SnapshotWanted, 'spec' | 'namespace'>,
    launch: RuntimeLaunch,
  ): FunctionSnapshot {
    const env = { ...launch.env, GPUWHISK_FROM_TEMPLATE: inside, GPUWHISK_RESTORER: restorerPath };
    const binds = [...launch.binds, { source: file, target: inside }, ...bindsFor([restorerPath])];
    const copying = { ...launch, env, binds };
    return {
      memoryMiB: Math.ceil(bytes / MiB),
      copy: (ahead) => this.options.processes.launchContainer(spec, copying, { ahead, forNamespace: namespace }),
      remove: () => rm(file, { force: true }),
    };
  }

  /** Writes an init as the runtime reads it. */
  private async writeInit(path: string, { large, ...init }: InitRequest): Promise<void> {
    const { main, binary, env, entry } = init;
    const value: JsonObject = { main, binary, env, ...(entry !== undefined && { entry }), code: init.code ?? '' };
    const file = await open(path, 'wx', 0o444);
    try {
      if (large === undefined) return await file.writeFile(JSON.stringify(value));
      const code = { code: large.bytes, binary };
      for await (const piece of jsonWithCode(this.options.clock, value, ['code'], code)) await file.writeFile(piece);
    } finally {
      await file.close();
    }
  }
}

import { deferred } from '../protocol/connection.js';
import type { Holder } from '../sandbox/holder.js';
import type { Engine } from './engine.js';
import { holdCommand } from './images.js';

/** The engine's least. */
const memoryBytes = 16 * 1024 * 1024;
const user = '65534:65534';
const holderPids = 16;

/** Settings of the container of a holder. */
export interface HolderPlan {
  engine: Engine;
  /** Of the container. */
  name: string;
  /** Id of one of our images. */
  image: string;
  labels: Readonly<Record<string, string>>;
  /** Removes a container from the engine; never rejects. */
  remove(engineId: string): Promise<void>;
}

/**
 * Starts a container that does nothing but reap, whose PID namespace others join. When it ends, for whatever reason, so
 * does all that is in the namespace. Rejects with EngineError, or an Error that says why it does not run.
 */
export async function startDockerHolder({ engine, name, image, labels, remove }: HolderPlan): Promise<Holder> {
  const engineId = await engine.create(name, {
    Image: image,
    Cmd: holdCommand,
    Labels: labels,
    User: user,
    AttachStdout: true,
    AttachStderr: true,
    HostConfig: {
      Memory: memoryBytes,
      MemorySwap: memoryBytes,
      NetworkMode: 'none',
      ReadonlyRootfs: true,
      IpcMode: 'private',
      PidsLimit: holderPids,
      CapDrop: ['ALL'],
      SecurityOpt: ['no-new-privileges'],
    },
  });
  const exited = deferred<void>();
  try {
    // Its output, of which there is none, ends when it does.
    const { stream } = await engine.attach(engineId);
    stream.on('error', () => undefined).on('close', () => exited.resolve());
    stream.resume();
    await engine.start(engineId);
    const state = await engine.inspect(engineId);
    if (!state?.running) throw new Error(`Its holder ended at once with status ${state?.exitCode ?? 'unknown'}`);
    const end = async (): Promise<void> => {
      await remove(engineId);
      stream.destroy();
      await exited.promise;
    };
    // Without the holder's output its end would not be noticed.
    void exited.promise.then(() => remove(engineId));
    return { pidNamespace: `container:${engineId}`, exited: exited.promise, end };
  } catch (error) {
    await remove(engineId);
    throw error;
  }
}

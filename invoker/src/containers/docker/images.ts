import type { Clock } from '@gpuwhisk/common/system/clock';
import { SharedWork } from '../../runtimes/shared-work.js';
import { ProvisioningError } from '../container-factory.js';
import { bounded } from './bounded.js';
import type { Engine, ImageFacts } from './engine.js';
import { EngineError } from './engine-client.js';

/** Images that are fetched at once. */
const maxPulls = 3;
const maxWaitingPulls = 100;
/** How long an image that was fetched is not asked for again, ms. */
const freshMs = 300_000;
/** How long a registry's refusal is remembered, ms. */
const refusalKeptMs = 10_000;

/** What the engine is asked for of images. */
export type ImageEngine = Pick<Engine, 'image' | 'pull'>;

/**
 * The images that containers are made of. As OpenWhisk does: images of the manifest, and local ones, are fetched only if
 * the engine lacks them; others are fetched before their use, and where that fails one with a fixed tag that the engine
 * has will do, one with none or `latest` will not.
 */
export class Images {
  private readonly pulls: SharedWork<void>;
  private readonly inTurn = bounded(maxPulls, maxWaitingPulls);

  constructor(
    private readonly engine: ImageEngine,
    private readonly clock: Clock,
    /** Whether it is taken as the engine has it. */
    private readonly isLocal: (image: string) => boolean,
  ) {
    this.pulls = new SharedWork(clock, refusalKeptMs);
  }

  /** Has the image there. Rejects with ProvisioningError. */
  async ready(image: string): Promise<ImageFacts> {
    const name = withTag(image);
    if (this.isLocal(image)) {
      const facts = await this.find(name);
      if (facts) return facts;
    }
    const refusal = await this.pull(name);
    const facts = refusal === undefined || !name.endsWith(':latest') ? await this.find(name) : undefined;
    if (facts) return facts;
    throw new ProvisioningError(
      `The image '${image}' cannot be had: ${refusal ?? 'its registry gave another one'}.`,
      `Failed to pull container image '${image}'.`,
      true,
    );
  }

  private async find(name: string): Promise<ImageFacts | undefined> {
    try {
      return await this.engine.image(name);
    } catch (error) {
      throw new ProvisioningError((error as Error).message);
    }
  }

  /** Why it could not be fetched; undefined once it was. */
  private async pull(name: string): Promise<string | undefined> {
    const pulled = this.pulls.do(name, async () => {
      await this.inTurn(() => this.engine.pull(name));
      this.clock.setBackgroundTimer(freshMs, () => this.pulls.forget(name));
    });
    try {
      await pulled;
      return undefined;
    } catch (error) {
      if (error instanceof EngineError && !error.isUnreachable) return error.message;
      throw new ProvisioningError((error as Error).message);
    }
  }
}

/** The name with its tag: `latest` if it has neither a tag nor a digest. */
export function withTag(image: string): string {
  return /[:@][^/]*$/.test(image) ? image : `${image}:latest`;
}

import type { Share } from '@gpuwhisk/common/gpu';
import type { Logger } from '@gpuwhisk/common/logging';
import type { ContainerClients } from './container-clients.js';
import type { ShareEnforcer } from './enforcers/share-enforcer.js';
import type { GpuContainer, Residents } from './residents.js';

/** What a ShareMoves works with. */
export interface ShareMovesParts {
  enforcer: ShareEnforcer;
  residents: Residents;
  clients: ContainerClients;
  logger: Logger;
}

/** What the enforcer holds a container to, and for which action. */
interface Held {
  share: Share;
  action: string | undefined;
}

/**
 * Holds warm processes to what the function in them was placed with. A process keeps the terms that it was started with, and
 * the class and the memory are just those; what it requests and its limit below the class are the function's.
 */
export class ShareMoves {
  private readonly held = new WeakMap<GpuContainer, Held>();
  private readonly failed = new WeakSet<GpuContainer>();
  private moving: Promise<void> = Promise.resolve();

  constructor(private readonly parts: ShareMovesParts) {}

  /**
   * Moves the shares of all containers whose function is another, or was placed with another share, than what they are held
   * to. A process that has made no call of CUDA yet is moved at a later look. Never rejects.
   */
  look(): Promise<void> {
    if (!this.parts.enforcer.adjusts) return this.moving;
    this.moving = this.moving.then(async () => {
      for (const one of this.parts.residents.all()) if (this.isOther(one)) await this.move(one);
    });
    return this.moving;
  }

  private isOther(one: GpuContainer): boolean {
    const { lastUser, share, grant, ending } = one;
    // Several devices are held by MPS alone.
    if (lastUser === undefined || ending || grant.devices.length > 1) return false;
    const held = this.held.get(one) ?? { share: grant.share, action: undefined };
    const isSame = haveSameTerms(held.share, share) && (held.action ?? lastUser.action) === lastUser.action;
    if (isSame && held.action === undefined) this.held.set(one, { share, action: lastUser.action });
    return !isSame;
  }

  private async move(one: GpuContainer): Promise<void> {
    const { enforcer, clients, logger } = this.parts;
    const { share, lastUser } = one;
    const before = this.held.get(one)?.action;
    try {
      const client = await clients.of(one);
      if (client === undefined) return;
      await enforcer.adjust(client, share, before !== undefined && before !== lastUser?.action);
      this.held.set(one, { share, action: lastUser?.action });
      this.failed.delete(one);
    } catch (error) {
      // Its process may just have ended; otherwise the next look tries again.
      if (this.failed.has(one)) return;
      this.failed.add(one);
      logger.warn({ container: one.container.id, error: String(error) }, 'the share of a process could not be moved');
    }
  }
}

function haveSameTerms(one: Share, other: Share): boolean {
  return (
    one.smRequest === other.smRequest &&
    one.smLimit === other.smLimit &&
    one.tokens?.maxTokens === other.tokens?.maxTokens &&
    one.tokens?.violation === other.tokens?.violation
  );
}

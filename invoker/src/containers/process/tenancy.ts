import type { Call, Outcome } from '../container-factory.js';

/** The namespace whose functions a sandbox runs, and the rules of the network that hold for it because of that. */
export class Tenancy {
  private admitted: { namespace: string; done: Promise<void> } | undefined;
  private unbind: (() => Promise<void>) | undefined;

  constructor(
    /** Has a namespace's rules hold; resolves with the way to end that, or undefined if it has none. */
    private readonly bind: (namespace: string) => Promise<(() => Promise<void>) | undefined>,
    /** Namespaces with rules; of others nothing is waited for. */
    private readonly hasRules: (namespace: string) => boolean,
  ) {}

  /** Loads a function once the rules of its namespace hold; the call is lost if they cannot be had. */
  admit(namespace: string | undefined, load: () => Call): Call {
    if (namespace === undefined || (!this.admitted && !this.hasRules(namespace))) return load();
    this.admitted ??= { namespace, done: this.hold(namespace) };
    const { admitted } = this;
    const call = admitted.done.then(() => {
      if (admitted.namespace !== namespace) throw new Error(`The sandbox is one of namespace '${admitted.namespace}'.`);
      return load();
    });
    const lost: Outcome = { type: 'lost', oomKilled: false };
    return {
      outcome: call.then(
        ({ outcome }) => outcome,
        () => lost,
      ),
      logs: call.then(
        ({ logs }) => logs,
        (error: unknown) => [`The rules of the network for '${namespace}' do not hold: ${String(error)}`],
      ),
    };
  }

  /** Ends the rules; the sandbox has ended. */
  async end(): Promise<void> {
    await this.admitted?.done.catch(() => undefined);
    await this.unbind?.();
  }

  private async hold(namespace: string): Promise<void> {
    this.unbind = await this.bind(namespace);
  }
}

import type { MessageBus } from '@gpuwhisk/common/bus/message-bus';
import { unplacedTopic } from '@gpuwhisk/common/messages';
import type { ActivationMessage, UnplacedMessage } from '@gpuwhisk/common/messages';
import type { ArtifactStore, StoredDocument } from '@gpuwhisk/common/store/artifact-store';
import { sleep } from '@gpuwhisk/common/system/clock';
import type { Clock } from '@gpuwhisk/common/system/clock';
import type { Random } from '@gpuwhisk/common/system/random';
import { randomFraction } from '@gpuwhisk/common/system/random';
import { outcomesOf } from '@gpuwhisk/invoker/containers/protocol/call-outcome';
import type { StartJournal } from '@gpuwhisk/invoker/activation/invoker-context';
import type { Container, ContainerFactory, ContainerSpec } from '@gpuwhisk/invoker/containers/container-factory';
import { busLike, containerLike, storeLike } from './delegates.js';
import type { Ledger } from './ledger.js';

/** `inner`, with every activation message noted and the topic's bound checked. */
export function observedBus(inner: MessageBus, ledger: Ledger, topic: string, maxPending: number): MessageBus {
  return busLike(inner, {
    send(name, message) {
      const receipt = inner.send(name, message);
      if (name === unplacedTopic(0)) ledger.sent((message as unknown as UnplacedMessage).activation);
      if (name === topic) {
        ledger.sent(message as unknown as ActivationMessage);
        ledger.check(inner.lag(topic, topic) <= maxPending, `more than ${maxPending} activations are queued`);
      }
      return receipt;
    },
  });
}

/** `inner`, with every mark noted. */
export function observedMarks(inner: StartJournal, ledger: Ledger): StartJournal {
  return {
    startedBefore: (activationId) => inner.startedBefore(activationId),
    mark(activationId) {
      const synced = inner.mark(activationId);
      ledger.markedStart(activationId);
      return synced;
    },
  };
}

/** `inner`, with every incoming activation record compared to the earlier one. */
export function observedStore(inner: ArtifactStore, ledger: Ledger): ArtifactStore {
  return storeLike(inner, {
    async put(database, document) {
      const revision = await inner.put(database, document);
      if (database === 'activations') ledger.recorded(withoutRevision(document));
      return revision;
    },
    async createMany(database, documents) {
      const created = await inner.createMany(database, documents);
      if (database !== 'activations') return created;
      documents.forEach((document, index) => {
        if (created[index]) ledger.recorded(withoutRevision(document));
      });
      return created;
    },
  });
}

/** A stored record as the writer passed it to the store. */
export function withoutRevision(document: StoredDocument): StoredDocument {
  const copy = JSON.parse(JSON.stringify(document)) as StoredDocument;
  delete copy._rev;
  return copy;
}

/** A factory with observed containers, and the memory that they claim. */
export interface ObservedFactory extends ContainerFactory {
  /** Memory of all containers that are starting, running or being removed, MiB. */
  claimedMiB(): number;
  /** Memory of a GPU that the containers claim, MiB. */
  claimedDeviceMiB(device: string): number;
  /** The number of these containers. */
  count(): number;
}

/** `inner` with slow removal, in which memory and concurrency are checked and every run is noted in the ledger. */
export function observedFactory(
  inner: ContainerFactory,
  ledger: Ledger,
  clock: Clock,
  random: Random,
): ObservedFactory {
  const claims = new Set<ContainerSpec>();

  async function make(spec: ContainerSpec, start: () => Promise<Container>): Promise<Container> {
    const claim = { ...spec };
    claims.add(claim);
    try {
      const container = await start();
      return observedContainer(container, ledger, clock, random, () => claims.delete(claim));
    } catch (error) {
      claims.delete(claim);
      throw error;
    }
  }

  return {
    start: () => inner.start(),
    supports: (kind) => inner.supports(kind),
    match: (prewarmed, wanted) => inner.match(prewarmed, wanted),
    create: (spec) => make(spec, () => inner.create(spec)),
    prewarm: (spec) => make(spec, () => inner.prewarm(spec)),
    close: () => inner.close(),
    count: () => claims.size,
    claimedDeviceMiB: (device) =>
      [...claims].reduce((sum, { gpu }) => sum + (gpu?.devices.includes(device) === true ? gpu.share.memoryMiB : 0), 0),
    claimedMiB: () => [...claims].reduce((sum, { memoryMiB }) => sum + memoryMiB, 0),
  };
}

function observedContainer(
  inner: Container,
  ledger: Ledger,
  clock: Clock,
  random: Random,
  release: () => void,
): Container {
  let active = 0;
  let beingDestroyed = false;
  void inner.exited.then(() => {
    if (!beingDestroyed) release();
  });
  let changing = 0;
  const enter = (): void => {
    active++;
    ledger.check(active <= inner.spec.concurrency, `container ${inner.id} runs ${active} at once`);
  };
  const leave = (): void => {
    active--;
  };
  /** Freezing and thawing take a moment, and the result of both at once is undefined. */
  const change = async (inEffect: () => Promise<void>): Promise<void> => {
    changing++;
    ledger.check(changing === 1, `container ${inner.id} is frozen and thawed at once`);
    await sleep(clock, randomFraction(random) * 60);
    changing--;
    await inEffect();
  };
  return containerLike(inner, {
    pause: () => change(() => inner.pause()),
    resume: () => change(() => inner.resume()),
    async destroy() {
      beingDestroyed = true;
      await inner.destroy();
      await sleep(clock, randomFraction(random) * 20);
      release();
    },
    init(request, limits) {
      enter();
      const call = inner.init(request, limits);
      return { ...call, outcome: call.outcome.finally(leave) };
    },
    run(request, limits) {
      enter();
      const call = inner.run(request, limits);
      const ids = ledger.activationsOf(request);
      for (const id of ids) ledger.runLimited(id, limits.timeoutMs);
      const outcome = call.outcome.finally(leave).then((reached) => {
        const each = request.batch === undefined ? [reached] : outcomesOf(reached, ids.length, limits);
        ids.forEach((id, at) => ledger.runEnded(id, each[at] ?? reached, beingDestroyed));
        return reached;
      });
      return { ...call, outcome };
    },
  });
}

import type { MessageBus } from '@gpuwhisk/common/bus/message-bus';
import type { ArtifactStore } from '@gpuwhisk/common/store/artifact-store';
import type { Container } from '@gpuwhisk/invoker/containers/container-factory';

/** A bus like `bus`, with the members of `changes` replaced. */
export function busLike(bus: MessageBus, changes: Partial<MessageBus>): MessageBus {
  return {
    ensureTopic: (topic, options) => bus.ensureTopic(topic, options),
    send: (topic, message) => bus.send(topic, message),
    subscribe: (topic, group, options, handler) => bus.subscribe(topic, group, options, handler),
    lag: (topic, group) => bus.lag(topic, group),
    close: () => bus.close(),
    ...changes,
  };
}

/** A container like `container`, with the members of `changes` replaced. */
export function containerLike(
  container: Container,
  changes: Partial<Omit<Container, 'canBatch' | 'canUnload' | 'endsLate' | 'sinceMs' | 'msContainer' | 'hostPid'>>,
): Container {
  return {
    id: container.id,
    spec: container.spec,
    sinceMs: container.sinceMs,
    msContainer: container.msContainer,
    hostPid: container.hostPid,
    pid: container.pid,
    exited: container.exited,
    get busyMs() {
      return container.busyMs;
    },
    init: (request, limits) => container.init(request, limits),
    run: (request, limits) => container.run(request, limits),
    canBatch: container.canBatch,
    endsLate: container.endsLate,
    canUnload: container.canUnload,
    printedSince: (from) => container.printedSince(from),
    unload: (thorough, limits) => container.unload(thorough, limits),
    check: (limits) => container.check(limits),
    pause: () => container.pause(),
    resume: () => container.resume(),
    giveWay: (gives) => container.giveWay(gives),
    processorMs: () => container.processorMs(),
    destroy: () => container.destroy(),
    ...changes,
  };
}

/** A store like `store`, with the members of `changes` replaced. */
export function storeLike(store: ArtifactStore, changes: Partial<ArtifactStore>): ArtifactStore {
  return {
    get: (database, id, mostBytes) => store.get(database, id, mostBytes),
    put: (database, document, attachments) => store.put(database, document, attachments),
    createMany: (database, documents) => store.createMany(database, documents),
    delete: (database, id, revision) => store.delete(database, id, revision),
    list: (database, options) => store.list(database, options),
    query: (database, query) => store.query(database, query),
    texts: (database, query) => store.texts(database, query),
    text: (...asked) => store.text(...asked),
    count: (database, query) => store.count(database, query),
    expire: (beforeMs) => store.expire(beforeMs),
    getAttachment: (database, id, name) => store.getAttachment(database, id, name),
    storedBytes: (namespace) => store.storedBytes(namespace),
    storedNamespaces: () => store.storedNamespaces(),
    close: () => store.close(),
    ...changes,
  };
}

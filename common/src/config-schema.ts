import { z } from 'zod';
import { shareClasses } from './gpu.js';
import { keyBytesOf } from './entities/parameter-encryption.js';
import type { ParameterCipher } from './entities/parameter-encryption.js';
import { hasPublishedSecret } from './entities/identity.js';
import { procureSchema } from './procure-schema.js';
import { tokenIssuerSchema } from './token-issuer.js';

const MiB = 1024 * 1024;
const count = z.number().int().nonnegative();

/** Keys of a cipher, newest first. */
function cipherKeys(cipher: ParameterCipher) {
  const bytes = keyBytesOf(cipher);
  const key = z.string().refine((text) => Buffer.from(text, 'base64').length === bytes, {
    error: `a key for ${cipher} is ${bytes} bytes in base64`,
  });
  return z.array(key).min(1).optional();
}
/** An address, or a block such as `10.0.0.0/8`. */
const addresses = z.array(z.union([z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()])).default([]);
const egressRules = { deny: addresses, allow: addresses };
const storeLevel = z
  .enum(['STORE_ALWAYS', 'STORE_FAILURES', 'STORE_FAILURES_NOT_APPLICATION_ERRORS'])
  .default('STORE_ALWAYS');

/** Every setting of the platform, with its default. Units are in the names. */
export const configSchema = z.strictObject({
  /** Address that the API listens on. */
  host: z.string().default('127.0.0.1'),
  /** Port of the API; 0 picks a free one. */
  port: z.number().int().min(0).max(65535).default(3233),
  /** Port of the API gateway; 0 picks a free one, false: no gateway. Absent: one above the API's, or a free one. */
  gatewayPort: z.union([z.number().int().min(0).max(65535), z.literal(false)]).optional(),
  /** Where the gateway is reached from outside, `https://apis.example`; absent: the address that it listens on. */
  gatewayUrl: z.url().optional(),
  /** Port of the console and the documentation; 0 picks a free one, false: none. Absent: two above the API's, or a free one. */
  consolePort: z.union([z.number().int().min(0).max(65535), z.literal(false)]).optional(),
  /** Origin at which browsers reach the console's port, `https://console.example`, which is not the API's; absent: the address that it listens on. */
  consoleUrl: z
    .url({ protocol: /^https?$/ })
    .refine((url) => URL.canParse(url) && new URL(url).href === `${new URL(url).origin}/`, {
      error: 'takes an origin, such as https://console.example',
    })
    .optional(),
  /** Who signs the JSON web tokens of APIs' callers, by the name of the security definition. */
  gatewayIssuers: z.record(z.string(), tokenIssuerSchema).default({}),
  /** What actions get as __OW_API_HOST; absent: the address that the API listens on. */
  apiHost: z.string().optional(),
  /** Requests for `<namespace>.<vanityDomain>` lead to that namespace's web actions; absent: none do. */
  vanityDomain: z.string().min(1).optional(),
  /** How long what runs may go on after the first signal to stop, ms. */
  drainMs: count.default(10_000),
  /** Folder of all state; one server at a time. */
  dataDir: z.string().min(1).default('.gpuwhisk'),
  /** Entities, identities and records in a CouchDB, as OpenWhisk has them; absent: in the data folder. */
  couchdb: z
    .strictObject({
      /** `http://user:password@host:5984`. */
      url: z.url({ protocol: /^https?$/ }),
      /** Of the databases' names: `<prefix>subjects`, `<prefix>whisks`, `<prefix>activations`, `<prefix>gpu`. */
      prefix: z
        .string()
        .regex(/^[a-z][a-z0-9_$()+-]*$/)
        .default('whisk_local_'),
      /** After which a request to it is given up, ms. */
      timeoutMs: count.default(30_000),
    })
    .optional(),
  /** Messages in Kafka, under OpenWhisk's topics; absent: in the data folder. */
  kafka: z
    .strictObject({
      /** `host:port` of some of its brokers, with commas between. */
      brokers: z.string().regex(/^[^\s,:]+:\d+(,[^\s,:]+:\d+)*$/),
      /** The library that speaks with brokers. */
      client: z.enum(['platformatic', 'kafkajs']).default('platformatic'),
      /** Put before the names of topics and groups, as OpenWhisk's `whisk.kafka.topics.prefix`. */
      topicPrefix: z
        .string()
        .regex(/^[\w.-]*$/)
        .default(''),
      /** Copies of each message, in topics that do not exist yet. */
      replicationFactor: count.default(1),
      /** Brokers have what was accepted on their disk when they acknowledge it; false: in their memory, from where it is written some seconds later. */
      flush: z.boolean().default(true),
      /** Connections are encrypted. Paths of PEM files: who brokers' certificates are trusted from (default: those Node.js has), and ours. */
      tls: z
        .strictObject({ ca: z.string().optional(), cert: z.string().optional(), key: z.string().optional() })
        .refine(({ cert, key }) => (cert === undefined) === (key === undefined), 'cert and key go together')
        .optional(),
      /** How this process says to brokers who it is. */
      sasl: z
        .strictObject({
          mechanism: z.enum(['plain', 'scram-sha-256', 'scram-sha-512']),
          username: z.string(),
          password: z.string(),
        })
        .optional(),
    })
    .optional(),
  /** What the processes of a cluster know together, in a Redis; absent: they are one process. */
  redis: z
    .strictObject({
      /** `redis://user:password@host:6379/0`; `rediss:` for TLS. */
      url: z.url({ protocol: /^rediss?$/ }),
      /** Before the names of all keys and channels. */
      prefix: z.string().default('gpuwhisk:'),
      /** After which a call to it is given up, ms. */
      timeoutMs: count.default(2000),
      /** The library that keeps queues of jobs in it. */
      jobs: z.enum(['bull', 'bullmq']).default('bull'),
    })
    .optional(),
  /** The name of this process among those of its sort in the cluster, whose number it keeps; absent: the host's. */
  name: z.string().min(1).optional(),
  /** `user:password` of the caller that may disable an invoker (POST /disable, /enable); absent: no caller may. */
  invokerAuth: z
    .string()
    .regex(/^[^:]+:.+$/)
    .optional(),
  /** Runtimes manifest in OpenWhisk's shape; absent: runtimes/runtimes.json of the installation. */
  runtimesManifest: z.string().optional(),
  /**
   * Where versions of a language are that are not on the PATH, by kind: of nodejs and python the program, of java the JDK's
   * folder.
   */
  runtimePaths: z
    .record(
      z.string().regex(/^(nodejs|python|java):[\d.]+$/, 'must be a kind such as python:3.12'),
      z.string().startsWith('/'),
    )
    .default({}),
  /** pino level: trace, debug, info, warn, error, silent. */
  logLevel: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'silent']).default('warn'),
  /**
   * Start where the host forbids a measure of isolation. Absent: only a server of its own (no cluster) that listens on
   * loopback does; false: none does.
   */
  allowWeakIsolation: z.boolean().optional(),
  /**
   * How containers that are made ahead start functions: by injection into warm processes (mscontainer), or as those that
   * are made when an activation waits (process). Or containers are those of a Docker engine on this host (docker).
   */
  containers: z.enum(['mscontainer', 'process', 'docker']).default('mscontainer'),
  /** With `containers: docker`. */
  docker: z
    .strictObject({
      /** Path of the engine's Unix socket. */
      socket: z.string().startsWith('/').default('/var/run/docker.sock'),
      /** A network of the engine's that containers are in; absent: one that the invoker makes, in which none reaches another. */
      network: z.string().min(1).optional(),
      /** Folders in memory that images write to, besides /tmp, by the beginning of the images' names: their root is read-only. */
      writable: z.record(z.string(), z.array(z.string().startsWith('/'))).default({ 'openwhisk/': ['/action'] }),
      /** Name servers of containers; none: the engine's. */
      dns: z.array(z.string()).default([]),
      /** Beginnings of names of images that are never asked a registry for, unless the engine lacks them. */
      localImages: z.array(z.string().min(1)).default([]),
      /** How long the engine may take for a call other than a pause (10 s) or a pull (10 minutes). */
      callTimeoutMs: count.default(60_000),
    })
    .prefault({}),
  /** The GPUs: those that the driver finds, none, or simulated ones, such as `sim:a100-40x4,h100`. */
  gpus: z
    .string()
    .regex(/^(auto|none|sim:.+)$/, { error: "takes auto, none or sim:MODELxN[,MODELxN], such as 'sim:a100-40x4'" })
    .default('auto'),
  /** Sandboxes reach the network through NAT where the host allows it. */
  actionNetwork: z.boolean().default(true),
  /**
   * Where functions may not connect to, besides link-local addresses, the metadata of clouds and the platform's own nodes
   * and engines; and what of all that they may. Of two rules about an address the namespace's come first, and `allow`
   * before `deny`.
   */
  network: z
    .strictObject({
      ...egressRules,
      namespaces: z.record(z.string(), z.strictObject(egressRules)).default({}),
      /** TCP connections of a sandbox at a time, and eight times as many other flows; beyond it new ones are dropped. */
      connections: z.number().int().positive().default(1024),
    })
    .prefault({}),
  /** A PEM file with certificates that functions trust besides the host's, as of a proxy that looks into TLS connections. */
  functionCertificates: z.string().min(1).optional(),
  /** Memory that containers may claim together, MiB; absent: 60 % of the host's. */
  poolMemoryMiB: count.optional(),
  /** Stem cells as runtimes.json configures them; false starts none. */
  stemCells: z.boolean().default(true),
  /** What Python packages of actions may take on the disk, MiB; beyond it those unused longest go. */
  requirementsMiB: count.default(10_240),
  /** What takes long at the first use of a language is done ahead, in the background. */
  prepareRuntimes: z.boolean().default(true),
  /** So are releases of Node.js fetched that are listed and not there; the default one is in any case. */
  fetchRuntimes: z.boolean().default(true),
  limits: z
    .strictObject({
      minTimeoutMs: count.default(100),
      defaultTimeoutMs: count.default(60_000),
      maxTimeoutMs: count.default(300_000),
      minMemoryMiB: count.default(128),
      defaultMemoryMiB: count.default(256),
      maxMemoryMiB: count.default(512),
      /** Of actions with annotation `gpu`, in place of the values above: frameworks need more memory and time to load. */
      gpuDefaultTimeoutMs: count.default(300_000),
      gpuDefaultMemoryMiB: count.default(2048),
      gpuMaxTimeoutMs: count.default(24 * 3_600_000),
      gpuMaxMemoryMiB: count.default(32_768),
      minLogsMiB: count.default(0),
      defaultLogsMiB: count.default(10),
      maxLogsMiB: count.default(10),
      minConcurrency: count.default(1),
      defaultConcurrency: count.default(1),
      maxConcurrency: count.default(1),
      maxCodeBytes: count.default(48 * MiB),
      maxParametersBytes: count.default(MiB),
      maxPayloadBytes: count.default(MiB),
      maxResultBytes: count.default(MiB),
      /** What is kept of a result over the limit. */
      truncationBytes: count.default(MiB),
      maxSequenceLength: count.default(50),
      invocationsPerMinute: count.default(60),
      concurrentInvocations: count.default(30),
      firesPerMinute: count.default(60),
      /** Of a namespace's activations in flight: those with a GPU, the devices and the device memory that they ask for; absent: any. */
      concurrentGpuInvocations: count.optional(),
      concurrentGpus: count.optional(),
      concurrentGpuMemoryMiB: count.optional(),
      /** Seconds of whole GPUs that a namespace's functions may have in a calendar minute; absent: any. */
      gpuSecondsPerMinute: count.optional(),
      /** Percent of a GPU that one run of a namespace may have; absent: all of it. */
      maxGpuShare: z.number().int().min(shareClasses[0]).max(100).optional(),
      /** Idle containers with a GPU that each invoker keeps for a namespace; absent: any. */
      warmGpuContainers: count.optional(),
      /** What may be stored of a namespace, MiB: entities with code, earlier versions, records, APIs and training jobs. */
      storedMiB: count.default(10_240),
    })
    .prefault({}),
  /** How parameters of actions and packages are stored: as they are, or encrypted as OpenWhisk does. */
  parameterStorage: z
    .strictObject({
      /** What new values are encrypted with. */
      current: z.enum(['off', 'noop', 'aes-128', 'aes-256']).default('off'),
      /** Keys in base64, the newest first: that one encrypts, all of them decrypt. */
      keys: z.strictObject({ 'aes-128': cipherKeys('aes-128'), 'aes-256': cipherKeys('aes-256') }).prefault({}),
      /** A new value is readable in its own action or package only. false: as OpenWhisk does, for its invokers in a mixed cluster. */
      bound: z.boolean().default(true),
    })
    .refine(({ current, keys }) => current === 'off' || current === 'noop' || keys[current] !== undefined, {
      error: 'the current cipher has no key',
    })
    .prefault({}),
  /** Shared packages of other namespaces and their actions may be invoked and bound, but not read. */
  sharedPackagesExecuteOnly: z.boolean().default(false),
  /** Traces of invocations, for a collector that speaks OTLP over HTTP: docs/operations.md. */
  tracing: z
    .strictObject({
      /** Where spans are sent, `http://host:4318/v1/traces`; absent: none are, unless OTEL_EXPORTER_OTLP_ENDPOINT is set. */
      url: z.url({ protocol: /^https?$/ }).optional(),
      /** Headers of these requests, such as a collector's key. */
      headers: z.record(z.string(), z.string()).default({}),
      /** Part of the invocations whose callers send no trace context that is traced; absent: OTEL_TRACES_SAMPLER, or all. */
      sampleRatio: z.number().min(0).max(1).optional(),
      /** Name of the platform in traces; absent: OTEL_SERVICE_NAME, or gpuwhisk. */
      serviceName: z.string().min(1).optional(),
    })
    .prefault({}),
  /** Tells of activations and limits in topic `events`, as OpenWhisk's `whisk.user-events.enabled`. */
  userEvents: z.boolean().default(false),
  /** `uuid:secret` of the operator, which is in no database; absent: standalone makes one in its data folder, a cluster has none. */
  operatorKey: z
    .string()
    .regex(/^[^\s:]+:[^\s:]{64}$/, { error: 'takes a uuid, a colon and a secret of 64 characters' })
    .refine((key) => !hasPublishedSecret(key), { error: "its secret is one that OpenWhisk's sources publish" })
    .optional(),
  /** Subjects of the database that are operators too; a key that OpenWhisk's sources publish makes none. */
  operators: z.array(z.string()).default([]),
  /** Which records of blocking invocations are stored. */
  storeBlockingResultLevel: storeLevel,
  /** Which records of other invocations are stored. */
  storeNonBlockingResultLevel: storeLevel,
  /** From its end until an activation's record may be removed, hours; 0: it is kept for ever. */
  recordTtlHours: count.default(7 * 24),
  /** How long a blocking invocation waits, ms. */
  blockingWaitMs: count.default(60_000),
  /** Sequences and compositions that may run at once; more are answered 429. */
  maxCompositions: count.default(1000),
  /** Activations that may wait for an invoker; more are answered 429. */
  maxQueuedActivations: count.default(10_000),
  /** Bytes of messages that may wait for an invoker; more are answered 429. */
  maxQueuedBytes: count.default(256 * MiB),
  /** Bytes of records that may wait in an invoker, or a controller, for the store; no run begins beyond it. */
  maxUnstoredBytes: count.default(64 * MiB),
  gpu: z
    .strictObject({
      /** What may be changed on the machine's GPUs. Simulated ones may always be cut. */
      manage: z
        .strictObject({
          /**
           * Start and end an MPS daemon for each device, and set its compute mode. `auto`: start daemons on idle devices where a
           * test client confirms them, and leave the compute mode. Absent: `auto` for simulated devices, false for real ones.
           */
          mps: z.union([z.boolean(), z.literal('auto')]).optional(),
          /** Turn MIG on and off, and cut devices into instances. */
          mig: z.boolean().default(false),
        })
        .prefault({}),
      /**
       * What decides which activation runs where and with which share: a name in gpu/src/policies, or an object that starts
       * from one (`base`) and replaces stages or sets their settings: docs/policies.md. `auto` is faashare, with a rule for
       * functions of which nothing is measured.
       */
      policy: z
        .union([
          z.string(),
          // Which stages there are is checked where a controller is assembled.
          z.object({ base: z.string(), settings: z.record(z.string(), z.number()).optional() }).catchall(z.string()),
        ])
        .default('auto'),
      /**
       * How pairs keep a CUDA context from function to function: by checkpoints of the driver (570 and newer), or for functions
       * of one owner; absent: not with NVIDIA's driver. docs/mscontainer.md.
       */
      keepContext: z.enum(['checkpoint', 'owner']).optional(),
      /** What the invoker tells of its machine, for policies that choose between nodes: docs/gpu.md. */
      node: z
        .strictObject({
          /** Names and values that the operator describes it by: `{"zone": "a"}`. */
          labels: z.record(z.string(), z.string()).default({}),
          /** How it is paid for: at a lower price until it is taken away, or for as long as it is wanted. */
          market: z.enum(['spot', 'on-demand']).optional(),
          /** In the operator's currency. */
          pricePerHour: z.number().min(0).optional(),
        })
        .prefault({}),
      /** By numeric user id of an invoker's machine, the namespace that may register this user's processes as workloads. */
      workloadUsers: z
        .record(z.string().regex(/^[0-9]+$/, { error: 'must be a numeric user id' }), z.string().min(1))
        .default({}),
      /** Machines that the platform rents and gives back: docs/protean.md. */
      procure: procureSchema.prefault({}),
      /**
       * Paths of modules with policies, stages and token policies of the operator's own, for controllers and invokers: absolute,
       * or in a configuration file relative to it. docs/policy-modules.md.
       */
      policyModules: z
        .array(
          z
            .string()
            .startsWith('/', { error: 'takes absolute paths, or in a configuration file paths relative to it' }),
        )
        .max(32)
        .default([]),
      /**
       * Kernel tokens below MPS, or alone where there is no MPS: shares can be moved while functions run. A name: by this token
       * policy of a policy module; true: by `dilu`.
       */
      tokens: z.union([z.boolean(), z.string().min(1)]).default(false),
      /** Containers that are kept ready on each device for functions that had to wait for one; 0: none. */
      prewarm: count.default(2),
      /** What becomes of an activation whose SLO cannot be met any more: it runs as best effort, or is refused (429). */
      admission: z.enum(['best-effort', 'refuse']).default('best-effort'),
      /** What is learned of functions and GPUs: docs/faashare.md. */
      learning: z
        .strictObject({
          /** From a change until it is in the store, ms: what changes in between is written once. */
          saveMs: count.default(2000),
          /** Predictors are trained again, in threads of their own, once enough was measured. */
          retrain: z.boolean().default(true),
        })
        .prefault({}),
      /** Shares that serve sets of functions best are searched for on idle GPUs: docs/faashare.md. */
      search: z
        .strictObject({
          enabled: z.boolean().default(true),
          /** How long nothing has run on a GPU, and no activation has waited, before it is used for that, ms. */
          idleMs: count.default(10_000),
          /** How often a set must have been formed. */
          minAsked: count.default(3),
          /** A sample's longest run, ms: for so long a search may keep a GPU after work has come for it. */
          maxSampleMs: count.default(5000),
          /** Part of the pairs of functions that is measured together for the models of degradation; 0: none. */
          pairPart: z.number().min(0).max(1).default(0.2),
          /** Time of GPUs that the measurement of pairs may take in an hour, s; 0: none is measured. */
          pairSecondsPerHour: count.default(360),
        })
        .prefault({}),
      /** Activations that may wait for a GPU; more are answered 429. */
      maxWaiting: count.default(1000),
      /** How long an activation may wait for a GPU before it is refused, ms. */
      maxWaitMs: count.default(600_000),
    })
    .prefault({}),
  warm: z
    .strictObject({
      /** Whether imports of functions are learned, and loaded ahead of their next starts: docs/mscontainer.md. */
      learn: z.boolean().default(true),
      /**
       * Real memory of containers that are ready with learned modules, and of snapshots of functions, MiB; default: an eighth of
       * the pool's memory.
       */
      memoryMiB: count.optional(),
      /** Whether an idle container with learned modules passes to another function of its namespace before a new one is made. */
      reuse: z.boolean().default(true),
      /**
       * Whether pairs with modules of one namespace are copies of a template, instead of importing them, and functions may have
       * snapshots: docs/mscontainer.md.
       */
      templates: z.boolean().default(true),
    })
    .prefault({}),
  pool: z
    .strictObject({
      /** Idle time after which a container is frozen, and may serve another action of its namespace, ms. */
      pauseGraceMs: count.default(10_000),
      /** Idle time after which a container is removed, or unloaded for another action of its namespace and then removed, ms. */
      idleContainerMs: count.default(600_000),
      /** Containers that are started at once, at most. */
      maxStarting: count.default(8),
    })
    .prefault({}),
});

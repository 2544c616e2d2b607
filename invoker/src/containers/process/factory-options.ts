import type { Clock } from '@gpuwhisk/common/system/clock';
import type { Random } from '@gpuwhisk/common/system/random';
import type { Container, ContainerFactory, ContainerSpec, GpuGrant } from '../container-factory.js';
import type { RuntimeCatalog, RuntimeLaunch, GpuAccess } from '../runtime-launch.js';
import type { Cgroups } from '../sandbox/cgroups.js';
import type { EgressPolicy } from '../sandbox/egress.js';
import type { Holder, SharedNamespace } from '../sandbox/holder.js';

/** Dependencies and settings of the process factory. */
export interface ProcessFactoryOptions {
  catalog: RuntimeCatalog;
  clock: Clock;
  /** The platform's data folder; sandboxes lie in `sandboxes` below it. */
  dataDir: string;
  /** Whether sandboxes may reach the network. */
  actionNetwork: boolean;
  /** Environment of every runtime, such as `__OW_API_HOST`. */
  runtimeEnv?: Readonly<Record<string, string>>;
  /** Processes of a sandbox, threads included. Default 1024, as OpenWhisk's `--pids-limit`. */
  pidsLimit?: number;
  /**
   * Listens on an address of the host that only sandboxes and the host itself are let through to, and resolves with
   * the port. Called once, by start(), and only where sandboxes have a network.
   */
  serveSandboxes?: (address: string) => Promise<number>;
  /** Where functions may connect to; default: defaultEgress. */
  egress?: EgressPolicy;
  /** Which of nft and iptables may set the rules; default: both, the first that is there. */
  firewallTools?: readonly string[];
  /** IPv4 range that sandboxes' addresses are taken from. */
  networkRange?: string;
  /** Path of the sandbox launcher; default: the one that native/build.mjs builds. */
  launcherPath?: string;
  /** Default: those that the host lets us have. */
  cgroups?: Cgroups;
  /** What a container needs for its GPU; absent: none gets one. Rejects with ProvisioningError. */
  gpuAccess?: (grant: GpuGrant) => Promise<GpuAccess>;
  random?: Random;
}

/** What a container is besides its spec. */
export interface LaunchOptions {
  shared?: SharedNamespace;
  /** As create's. */
  ahead?: boolean;
}

/** A factory of containers that are processes of this machine. */
export interface ProcessContainerFactory extends ContainerFactory {
  /** As create, of a launch of the caller's. */
  launchContainer(spec: ContainerSpec, launch: RuntimeLaunch, options?: LaunchOptions): Promise<Container>;
  /** Keeps a PID namespace that containers can share. Rejects with an Error that says why there is none. After start(). */
  hold(): Promise<Holder>;
  /** Where sandboxes reach what `serveSandboxes` serves, as `address:port`; undefined if they cannot. After start(). */
  readonly sandboxService: string | undefined;
  /** As Firewall.denyNodes; does nothing where sandboxes have no network. After start(). */
  denyNodes(addresses: readonly string[]): Promise<void>;
}

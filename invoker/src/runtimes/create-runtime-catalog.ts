import { readFile, realpath } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Registry } from 'prom-client';
import { ConfigError } from '@gpuwhisk/common/config';
import { compareKinds, parseManifest, withDefaultThere } from '@gpuwhisk/common/runtimes';
import type { RuntimeEntry, RuntimeManifest } from '@gpuwhisk/common/runtimes';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { ProvisioningError } from '../containers/container-factory.js';
import type { NpmPackages } from '../containers/container-factory.js';
import type { RuntimeCatalog, RuntimeLaunch, RunJob } from '../containers/runtime-launch.js';
import { SharedWork } from '@gpuwhisk/common/concurrency';
import { isComing, whenReady } from '../host/behind.js';
import { removeAbandoned } from '../host/partial-folders.js';
import { findOnPath, ProgramError } from '../host/programs.js';
import { findPythons, minorOf, findGo, findJdks } from './find-toolchains.js';
import type { Python, Go, Jdk } from './find-toolchains.js';
import { GoPackages, goMinor, goLaunch } from './go-runtime.js';
import { builtPackages, compilePackages, findPackages } from './image-packages.js';
import { installPackages, nodePackages, pythonPackages } from './image-packages.js';
import type { PackageSet } from './image-packages.js';
import { canHaveGson, javaLaunch, prepareJava, withJavaPair } from './java-runtime.js';
import { hasNative, nativeBuilt, nativeLaunch, nativeVersion } from './native-runtime.js';
import type { NativeCompilers } from './native-runtime.js';
import { nodeLaunch, withNodePair, fetchNodeRelease, findNodes, ownMajor } from './node-runtime.js';
import type { InstalledPackages } from './node-runtime.js';
import {
  commandLaunch,
  executableKind,
  executableLaunch,
  imageOfKind,
  isExecutableKind,
  findInterpreter,
  interpreterFamilies,
  interpreterLaunch,
} from './proxy-runtime.js';
import { Compilations, archiveCompiler } from './python-compiler.js';
import { compilePythonRuntime, hasPythonPairs, pythonLaunch, pythonPairLaunch } from './python-runtime.js';
import { RequirementsCache } from './requirements-cache.js';
import type { Interpreter } from './proxy-runtime.js';

const MiB = 1024 * 1024;
const failureKeptMs = 30_000;
const defaultMemoryMiB = 256;
const knownFamilies = ['nodejs', 'python', 'java', 'go', 'native', ...interpreterFamilies] as readonly string[];

/** Settings of createRuntimeCatalog. */
interface RuntimeCatalogOptions {
  /** Folder `runtimes` of the repository: guest code and runtimes.json. */
  runtimesDir: string;
  /** Manifest to use instead of the repository's. */
  manifestFile?: string;
  /** Programs of nodejs and python, and JDKs' folders, by kind: in place of those that would be found. */
  runtimePaths?: Readonly<Record<string, string>>;
  /** Folder of fetched releases and packages, in its folders `runtimes/` and `requirements/`. */
  dataDir: string;
  /** Bound on the disk space of Python actions' packages, MiB; absent: none. */
  requirementsMiB?: number;
  clock: Clock;
  logger?: { info(message: string): void; warn(message: string): void };
  /** Environment for the search of toolchains; default: that of this process. */
  env?: NodeJS.ProcessEnv;
  /** The npm that fetches releases of Node.js; default: that of this Node.js. */
  npm?: string;
  /** Whether prepare() fetches releases of Node.js; default true. */
  fetchesAll?: boolean;
}

/** The toolchains of a machine. */
interface Toolchains {
  /** Programs by major version, without this server's own. */
  nodes: ReadonlyMap<number, string>;
  /** The first is the machine's `python3`. */
  pythons: readonly Python[];
  jdks: readonly Jdk[];
  go: Go | undefined;
  interpreters: Interpreter[];
  /** Compilers of native functions; undefined if source cannot be compiled. */
  compilers: NativeCompilers | undefined;
  /** Families that the machine lacks, with the reasons. */
  missing: string[];
}

async function findToolchains(
  releasesDir: string,
  { runtimes }: RuntimeManifest,
  runtimePaths: Readonly<Record<string, string>>,
  env: NodeJS.ProcessEnv,
): Promise<Toolchains> {
  const path = env.PATH ?? '';
  const versionsOf = (family: string): string[] =>
    (runtimes[family] ?? []).map(({ kind }) => kind.slice(family.length + 1));
  const pathsOf = (family: string): Record<string, string> =>
    Object.fromEntries(
      Object.entries(runtimePaths).flatMap(([kind, value]) =>
        kind.startsWith(`${family}:`) ? [[kind.slice(family.length + 1), value]] : [],
      ),
    );
  const minors = versionsOf('python').filter((version) => version.includes('.'));
  const [nodes, pythons, foundJdks, go, found, [c], [cpp]] = await Promise.all([
    findNodes(versionsOf('nodejs').map(Number), pathsOf('nodejs'), path),
    findPythons(releasesDir, minors, pathsOf('python'), env),
    findJdks(path, pathsOf('java')),
    findGo(path),
    Promise.all(interpreterFamilies.map((family) => findInterpreter(family, path))),
    findOnPath('cc', path),
    findOnPath('c++', path),
  ]);
  const hasJdk = foundJdks.length > 0;
  const jdks = hasJdk && (await canHaveGson(path)) ? foundJdks : [];
  const missing = [
    ...(pythons.length > 0 ? [] : ['python (no Python 3.8 or newer)']),
    ...(hasJdk ? [] : ['java (no JDK 17 or newer)']),
    ...(hasJdk && jdks.length === 0 ? ['java (neither gson, package libgoogle-gson-java, nor Maven)'] : []),
    ...(go ? [] : ['go']),
    ...interpreterFamilies.filter((_, at) => found[at] === undefined),
    ...(hasNative() ? [] : ['native (the proxy was not built)']),
  ];
  const compilers = c === undefined ? undefined : { c, ...(cpp !== undefined && { cpp }) };
  return { nodes, pythons, jdks, go, interpreters: found.filter((each) => each !== undefined), compilers, missing };
}

async function readManifest(file: string): Promise<RuntimeManifest> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    throw new ConfigError(`The runtimes manifest '${file}' cannot be read: ${(error as Error).message}`);
  }
  return parseManifest(text, file);
}

/** Lines of text about missing languages and kinds, for the start-up. */
function notesOn(missing: readonly string[], listed: RuntimeManifest, offered: RuntimeManifest): string[] {
  // Missing versions of an offered family are not worth a note.
  const strange = Object.keys(listed.runtimes).filter((family) => !knownFamilies.includes(family));
  const dropped = strange.filter((family) => !(family in offered.runtimes));
  const kinds = dropped.flatMap((family) => (listed.runtimes[family] ?? []).map((entry) => entry.kind));
  const ended = Object.values(offered.runtimes).flatMap((entries) =>
    entries.filter((entry) => entry.default && entry.ended !== undefined),
  );
  return [
    ...(missing.length > 0 ? [`Actions in these languages are not available: ${missing.join(', ')}.`] : []),
    ...ended.map(
      (entry) =>
        `${entry.kind}, a default kind, has got no fixes since ${entry.ended}: start the server with a newer release, or name the path of one in setting 'runtimePaths'.`,
    ),
    ...('python' in offered.runtimes && !hasPythonPairs() && !isComing('injection')
      ? ['Python functions are not injected, and start in plain processes: the proxy was not built.']
      : []),
    ...(kinds.length > 0 ? [`Kinds of the manifest that cannot be run here: ${kinds.join(', ')}.`] : []),
  ];
}

/** The runtimes of this machine. */
interface MachineCatalog extends RuntimeCatalog {
  /** Shows how many modules of packages were compiled. */
  showMetrics(registry: Registry): void;
  /** Sets the sandboxes for installations of actions' packages, which fail before this call. */
  useSandboxes(run: RunJob): void;
  /**
   * Fetches missing releases of Node.js that are defaults or have stem cells, so that no first call waits for them. Resolves
   * when this is done or has failed, which is logged. Never rejects.
   */
  fetchDefaults(): Promise<void>;
  /**
   * Prepares slow first uses in the background, at low priority: fetches the other listed releases of Node.js, and compiles
   * Go's packages. Never rejects.
   */
  prepare(): Promise<void>;
  /** Ends work in the background and fetches of Node.js, without leftovers. */
  close(): Promise<void>;
}

/** Finds the runtimes of this machine, without fetches, builds or installations. Rejects with ConfigError. */
export async function createRuntimeCatalog(options: RuntimeCatalogOptions): Promise<MachineCatalog> {
  const runtimesDir = resolve(options.runtimesDir);
  const dataDir = resolve(options.dataDir);
  const releasesDir = join(dataDir, 'runtimes');
  const requirementsDir = join(dataDir, 'requirements');
  const manifestFile = options.manifestFile ?? join(runtimesDir, 'runtimes.json');
  const listed = await readManifest(manifestFile);
  const [{ nodes, pythons, jdks, go, interpreters, compilers, missing }] = await Promise.all([
    findToolchains(releasesDir, listed, options.runtimePaths ?? {}, options.env ?? process.env),
    removeAbandoned(releasesDir, options.clock),
    removeAbandoned(requirementsDir, options.clock),
  ]);
  const fitted = fitManifest(listed, {
    versions: {
      python: pythons.map((python) => `3.${minorOf(python)}`),
      java: jdks.map((jdk) => String(jdk.major)),
      go: go ? [goMinor(go)] : [],
      native: hasNative() ? [nativeVersion] : [],
      ...Object.fromEntries(interpreters.map((each) => [each.family, [each.version]])),
    },
  });
  const majors = [ownMajor, ...nodes.keys()].map(String);
  // The operator's own defaults stand: they are fetched.
  const manifest = options.manifestFile === undefined ? withDefaultThere(fitted, 'nodejs', majors) : fitted;
  const entries = new Map(Object.values(manifest.runtimes).flatMap((each) => each.map((entry) => [entry.kind, entry])));
  const launches = new SharedWork<RuntimeLaunch>(options.clock, failureKeptMs);
  const nodeReleases = new SharedWork<string>(options.clock, failureKeptMs);
  const packageFolders = new SharedWork<string | undefined>(options.clock, failureKeptMs);
  const pythonsReady = new SharedWork<Python>(options.clock, failureKeptMs);
  const stop = new AbortController();
  let runJob: RunJob = () =>
    Promise.reject(new ProvisioningError('There are no sandboxes yet to install packages in.'));
  const compilations = new Compilations(options.logger);
  const packageSets = new RequirementsCache({
    compilations,
    dataDir,
    runtimesDir,
    run: (job) => runJob(job),
    root: requirementsDir,
    maxBytes: (options.requirementsMiB ?? Infinity) * MiB,
    maxSetBytes: (options.requirementsMiB ?? Infinity) * MiB,
    clock: options.clock,
    logger: options.logger,
  });
  const goPackages = go && new GoPackages(releasesDir, join(runtimesDir, 'go'), go);
  const info = (message: string): void => options.logger?.info(message);

  /** The folder with the packages of OpenWhisk's image; undefined if they cannot be installed, which is logged. */
  function imagePackages(set: PackageSet): Promise<string | undefined> {
    return packageFolders.do(set.name, async () => {
      // After a failure, which was printed, they are installed here.
      await whenReady(set.language).catch(() => undefined);
      const found = await findPackages([builtPackages(runtimesDir), releasesDir], set);
      if (found !== undefined) return compiled(found, set);
      info(`The packages ${set.name} are installed for actions, once.`);
      try {
        return await compiled(await installPackages(releasesDir, set, stop.signal), set);
      } catch (error) {
        if (!(error instanceof ProgramError)) throw error;
        options.logger?.warn(`Actions do not find the packages of OpenWhisk's image (${set.name}): ${error.lastLine}`);
        return undefined;
      }
    });
  }

  async function compiled(folder: string, set: PackageSet): Promise<string> {
    try {
      const report = await compilePackages(folder, set, stop.signal);
      if (report !== undefined) compilations.add(set.name, report);
    } catch (error) {
      if (!(error instanceof ProgramError)) throw error;
      compilations.addFailure(set.name, error);
    }
    return folder;
  }

  async function nodeProgram(major: number): Promise<string> {
    const named = nodes.get(major);
    if (named !== undefined) return named;
    if (major === ownMajor) return realpath(process.execPath);
    info(`Node.js ${major} is fetched for actions, once, if it is not there.`);
    const { npm } = options;
    const fetch = (): Promise<string> =>
      fetchNodeRelease(releasesDir, major, { stop: stop.signal, ...(npm && { npm }) });
    return nodeReleases.do(String(major), fetch);
  }

  async function launchNode(major: number, installed: InstalledPackages = {}): Promise<RuntimeLaunch> {
    const [program, packages] = await Promise.all([nodeProgram(major), nodePackages(runtimesDir).then(imagePackages)]);
    return withNodePair(nodeLaunch(runtimesDir, program, { packages, ...installed }));
  }

  /** The npm packages of an archive, or why they cannot be installed. */
  async function npmPackages(npm: NpmPackages, namespace: string | undefined): Promise<InstalledPackages> {
    try {
      return { installed: join(await packageSets.npmFolder(npm, namespace), 'node_modules') };
    } catch (error) {
      if (!(error instanceof ProvisioningError)) throw error;
      info(`The dependencies of an archive were not installed. ${error.message}`);
      return { notInstalled: error.message };
    }
  }

  /** The interpreter with the packages of OpenWhisk's image after its own. */
  const withImagePackages = (interpreter: Python): Promise<Python> =>
    pythonsReady.do(interpreter.executable, async () => {
      await compilePythonRuntime(runtimesDir, interpreter, stop.signal).catch((error: unknown) => {
        if (!(error instanceof ProgramError)) throw error;
        info(`Python functions start more slowly, since their runtime cannot be compiled: ${error.lastLine}`);
      });
      const folder = await imagePackages(await pythonPackages(runtimesDir, interpreter));
      const folders = folder === undefined ? [] : [folder];
      return { ...interpreter, packageFolders: [...interpreter.packageFolders, ...folders] };
    });

  async function launchPython(
    interpreter: Python,
    requirements: readonly string[],
    namespace: string | undefined,
  ): Promise<RuntimeLaunch> {
    const found = await withImagePackages(interpreter);
    const packages = requirements.length === 0 ? undefined : await packageSets.folder(found, requirements, namespace);
    const launch = pythonLaunch(runtimesDir, dataDir, found, packages);
    const quicken = archiveCompiler(runtimesDir, found, launch, compilations);
    const pair = hasPythonPairs() && { ...pythonPairLaunch(runtimesDir, dataDir, found, packages), quicken };
    return { ...launch, quicken, ...(pair && { pair }) };
  }

  async function launchJava(found: Jdk, memoryMiB: number): Promise<RuntimeLaunch> {
    info('The Java runtime is compiled for actions, once, if it is not there.');
    const folder = await prepareJava(releasesDir, join(runtimesDir, 'java'), found);
    return withJavaPair(javaLaunch(folder, found, memoryMiB));
  }

  async function launchGo(found: Go, packages: GoPackages): Promise<RuntimeLaunch> {
    info("Go's packages are compiled for actions, once, if they are not there.");
    return goLaunch(runtimesDir, await realpath(process.execPath), await packages.ready(), found);
  }

  async function fetchNode(isWanted: (entry: RuntimeEntry) => boolean): Promise<void> {
    const listed = (manifest.runtimes.nodejs ?? []).filter((entry) => entry.command === undefined && isWanted(entry));
    for (const entry of listed) {
      if (stop.signal.aborted) return;
      await launchOf(entry, [], defaultMemoryMiB).catch((error: Error) => {
        // A fetch that the stop has ended goes on after the next start.
        if (!stop.signal.aborted) options.logger?.warn(error.message);
      });
    }
  }

  const isDefault = (entry: RuntimeEntry): boolean => entry.default || entry.stemCells.length > 0;

  async function prepare(): Promise<void> {
    if (options.fetchesAll !== false) await fetchNode((entry) => !isDefault(entry) && !entry.deprecated);
    const startMs = options.clock.monotonicMs();
    try {
      if (!(await goPackages?.prebuild())) return;
      const seconds = Math.round((options.clock.monotonicMs() - startMs) / 1000);
      info(`Go's packages were compiled for actions ahead of their first use, in ${seconds} s.`);
    } catch (error) {
      options.logger?.warn((error as Error).message);
    }
  }

  function launchOf(
    entry: RuntimeEntry,
    requirements: readonly string[],
    memoryMiB: number,
    namespace?: string,
    npm?: NpmPackages,
  ): Promise<RuntimeLaunch> {
    const { kind } = entry;
    if (entry.command) return launches.do(kind, () => commandLaunch(entry));
    const [family, version] = kind.split(':');
    if (family === 'nodejs' && npm !== undefined) {
      return npmPackages(npm, namespace).then((installed) => launchNode(Number(version), installed));
    }
    if (family === 'nodejs') return launches.do(kind, () => launchNode(Number(version)));
    const python = family === 'python' && pythons.find((each) => `3.${minorOf(each)}` === version);
    if (python) return launchPython(python, requirements, namespace);
    const jdk = family === 'java' && jdks.find((each) => String(each.major) === version);
    if (jdk) return launches.do(`${kind} ${memoryMiB}`, () => launchJava(jdk, memoryMiB));
    if (family === 'native') {
      return launches.do(kind, async () => {
        await nativeBuilt();
        return nativeLaunch(runtimesDir, await realpath(process.execPath), compilers);
      });
    }
    const interpreter = interpreters.find((each) => each.family === family);
    if (interpreter) {
      return launches.do(kind, async () =>
        interpreterLaunch(runtimesDir, await realpath(process.execPath), interpreter),
      );
    }
    if (family === 'go' && go && goPackages) return launches.do(kind, () => launchGo(go, goPackages));
    return Promise.reject(new ProvisioningError(`There is no runtime for '${kind}'.`));
  }

  return {
    manifest,
    notes: notesOn(missing, listed, manifest),
    fetchDefaults: () => fetchNode(isDefault),
    prepare,
    async close() {
      stop.abort();
      await Promise.all([
        goPackages?.close(),
        nodeReleases.settled(),
        packageFolders.settled(),
        pythonsReady.settled(),
      ]);
    },
    showMetrics: (registry) => compilations.show(registry),
    useSandboxes(run) {
      runJob = run;
    },
    supports: (kind) => isExecutableKind(kind) || entries.has(kind),
    launch(kind, requirements, memoryMiB = defaultMemoryMiB, namespace, npm) {
      if (isExecutableKind(kind)) {
        return launches.do(executableKind, async () => executableLaunch(runtimesDir, await realpath(process.execPath)));
      }
      const entry = entries.get(kind);
      if (entry) return launchOf(entry, requirements, memoryMiB, namespace, npm);
      const image = imageOfKind(kind);
      if (image !== undefined) return Promise.reject(noImage(image));
      const remedy = /^(nodejs|python|java):/.test(kind)
        ? " Install it, or name its path in setting 'runtimePaths'."
        : '';
      return Promise.reject(new ProvisioningError(`The runtime '${kind}' is not available here.${remedy}`));
    },
  };
}

function noImage(image: string): ProvisioningError {
  const reason = `The image '${image}' cannot be run: of images only openwhisk/dockerskeleton is served without Docker.`;
  return new ProvisioningError(reason, `Failed to pull container image '${image}'.`, true);
}

/** The runtimes that were found on the machine. */
interface MachineRuntimes {
  /** Versions of the other families that the machine has, such as `{python: ['3.11', '3.13'], java: ['17']}`. */
  versions: Readonly<Record<string, readonly string[]>>;
}

/**
 * The manifest for this machine. Node.js entries are unchanged, since any release can be fetched. An entry such as
 * `python:3` becomes the machine's first minor version. Entries of missing versions and families are left out, unless they have
 * their own command. A default that is left out is followed by the newest that is there, which gets its stem cells.
 */
export function fitManifest(manifest: RuntimeManifest, machine: MachineRuntimes): RuntimeManifest {
  const families = Object.entries(manifest.runtimes)
    .map(([family, entries]) => [family, fitFamily(family, entries, machine)] as const)
    .filter(([, entries]) => entries.length > 0);
  return { ...manifest, runtimes: Object.fromEntries(families) };
}

function fitFamily(family: string, entries: RuntimeEntry[], machine: MachineRuntimes): RuntimeEntry[] {
  if (family === 'nodejs') return entries;
  const versions = machine.versions[family] ?? [];
  const fitted = entries.flatMap((entry) => {
    if (entry.command) return [entry];
    const listed = entry.kind.slice(family.length + 1);
    if (versions.includes(listed)) return [entry];
    const version = versions.find((each) => each.startsWith(`${listed}.`));
    return version === undefined ? [] : [withVersion(entry, family, listed, version)];
  });
  const kept = fitted.filter((entry, at) => fitted.findIndex((other) => other.kind === entry.kind) === at);
  if (kept.some((entry) => entry.default)) return kept;
  const stemCells = entries.find((entry) => entry.default)?.stemCells ?? [];
  const newest = kept.toSorted((a, b) => compareKinds(a.kind, b.kind)).at(-1);
  return kept.map((entry) =>
    entry === newest ? { ...entry, default: true, stemCells } : { ...entry, default: false },
  );
}

function withVersion(entry: RuntimeEntry, family: string, listed: string, version: string): RuntimeEntry {
  const { image } = entry;
  const name = image.name.endsWith(`v${listed}`) ? image.name.slice(0, -listed.length) + version : image.name;
  return { ...entry, kind: `${family}:${version}`, image: { ...image, name } };
}

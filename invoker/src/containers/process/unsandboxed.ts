import type { RuntimeLaunch } from '../../runtimes/runtime-catalog.js';

/** The launch as it is without a private root: paths inside the sandbox become those of the host. */
export function unsandboxed(launch: RuntimeLaunch): RuntimeLaunch {
  const moved = launch.binds.filter((bind) => bind.source !== bind.target);
  const toHost = (text: string): string => {
    const bind = moved.find(({ target }) => text === target || text.startsWith(`${target}/`));
    return bind ? bind.source + text.slice(bind.target.length) : text;
  };
  const env = Object.entries(launch.env).map(([name, value]) => [name, value.split(':').map(toHost).join(':')]);
  return { ...launch, command: launch.command.map(toHost), env: Object.fromEntries(env) as Record<string, string> };
}

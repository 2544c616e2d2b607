import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { JsonObject } from '@gpuwhisk/common/json';
import { bareSpec } from '@gpuwhisk/invoker/containers/container-factory';
import type { Container, ContainerFactory, ContainerSpec } from '@gpuwhisk/invoker/containers/container-factory';
import { limits, runRequest } from '../contract/container-calls.js';
import { textOf } from '../contract/containers/cases.js';
import { compileJar } from '../native/compile-jar.js';
import { findLanguage } from '../native/prewarmer-harness.js';
import { buildImages, images } from './built-images.js';
import { canCompose, composeCases } from './compose-cases.js';
import { hasDocker, startDocker } from './docker-engine.js';
import type { DockerEngine } from './docker-engine.js';
import { openDockerFactory } from './docker-harness.js';

/** Java, where the machine has a JDK. */
const java = hasDocker ? await findLanguage('java') : undefined;
const families = ['nodejs', 'python', 'native', ...(java ? (['java'] as const) : [])] as const;
const startTimeoutMs = 360_000;
const testTimeoutMs = 120_000;
/** Time limit of an init, which may compile. */
const initTimeoutMs = 60_000;

/** Tries to signal, trace and read another process of the same user. */
const hunter = `
import os

def main(args):
    pid = args["pid"]

    def attempt(act):
        try:
            act()
        except Exception as error:
            return type(error).__name__
        return "done"

    return {
        "seen": os.path.exists(f"/proc/{pid}"),
        "kill": attempt(lambda: os.kill(pid, 9)),
        "environ": attempt(lambda: open(f"/proc/{pid}/environ").read()),
        "mem": attempt(lambda: open(f"/proc/{pid}/mem", "rb")),
        "root": attempt(lambda: os.listdir(f"/proc/{pid}/root")),
    }
`;

const javaHello = `import com.google.gson.JsonObject;
import java.nio.file.*;
public class Hello {
  public static JsonObject main(JsonObject args) throws Exception {
    System.out.println("hi");
    JsonObject result = new JsonObject();
    result.add("hello", args.get("name"));
    result.addProperty("user", (Number) Files.getAttribute(Path.of("/proc/self"), "unix:uid"));
    return result;
  }
}`;

(hasDocker ? describe : describe.skip)('images of docker/Dockerfile', () => {
  let engine: DockerEngine;
  beforeAll(async () => {
    engine = await startDocker();
    const launch = await java?.launch();
    if (launch) codes.java = compileJar(launch, 'Hello', javaHello).toString('base64');
    await buildImages(engine, canCompose(java !== undefined) ? [...families, 'server'] : families, launch);
  }, startTimeoutMs);
  afterAll(async () => {
    await engine?.stop();
    java?.remove();
  }, startTimeoutMs);

  const codes = {
    nodejs: 'function main(args) { console.log("hi"); return { hello: args.name, user: process.getuid() }; }',
    python: `import os
def main(args):
    print("hi")
    return {"hello": args["name"], "user": os.getuid(), "runs": os.path.exists("/proc/self/fd/500")}
`,
    native: `#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
static char result[100];
const char *gpuwhisk_main(const char *json) {
  puts("hi");
  fflush(stdout);
  const char *runs = fcntl(500, F_GETFD) < 0 ? "false" : "true";
  sprintf(result, "{\\"hello\\":\\"%c\\",\\"user\\":%d,\\"runs\\":%s}", strstr(json, "name")[7], (int)getuid(), runs);
  return result;
}`,
    java: '', // The images were compiled when they were made.
  };
  const mains = { nodejs: 'main', python: 'main', native: '', java: 'Hello' };
  const init = async (container: Container, family: keyof typeof codes, code = codes[family]): Promise<void> => {
    const env = { __OW_NAMESPACE: 'guest' };
    const request = { name: 'f', main: mains[family], code, binary: family === 'java', env };
    const call = container.init(request, { ...limits, timeoutMs: initTimeoutMs });
    expect(await call.outcome).toMatchObject({ type: 'ok' });
  };
  const call = async (container: Container, value: JsonObject) => {
    const made = container.run({ ...runRequest(value), deadline: String(Date.now() + 20_000) }, limits);
    const outcome = await made.outcome;
    if (outcome.type !== 'result') throw new Error(JSON.stringify(outcome));
    return { result: outcome.result as JsonObject, logs: (await made.logs).map(textOf) };
  };
  test('a nodejs function finds the packages that OpenWhisk has in its image', () =>
    using(async (factory) => {
      const container = await factory.create(kindOf('nodejs'));
      await init(container, 'nodejs', 'exports.main = () => ({ found: typeof require("openwhisk") });');
      expect((await call(container, {})).result).toEqual({ found: 'function' });
    }));

  const kindOf = (family: keyof typeof codes): ContainerSpec => bareSpec(`blackbox:${images[family]}`, 256);
  const using = async (use: (factory: ContainerFactory) => Promise<void>): Promise<void> => {
    const { factory, close } = await openDockerFactory(engine, { network: 'none' });
    try {
      await use(factory);
    } finally {
      await close();
    }
  };

  test.each(families.flatMap((family) => [[family, 'create'] as const, [family, 'prewarm'] as const]))(
    'a %s function runs in a container that %s made; one made ahead takes the next function',
    (family, how) =>
      using(async (factory) => {
        const container = await factory[how](kindOf(family));
        expect(container.canUnload).toBe(how === 'prewarm' || family === 'native');
        expect(container.msContainer !== undefined).toBe(how === 'prewarm');
        for (const name of how === 'prewarm' ? ['a', 'b'] : ['a']) {
          await init(container, family);
          const { result, logs } = await call(container, { name });
          expect(result.hello).toBe(name);
          const isProxied = family === 'native' || (family === 'python' && how === 'prewarm');
          expect(result.runs ?? false).toBe(isProxied); // The function has the socket for runs.
          if (how === 'create') expect(result.user).toBe(1000);
          else expect(result.user).toBeGreaterThan(10_000);
          expect(logs).toEqual(['hi']);
          if (how === 'prewarm') expect(await container.unload(true, limits).outcome).toEqual({ type: 'ok' });
        }
      }),
    testTimeoutMs,
  );

  test(
    'pairs share the PID namespace of an MSContainer and no more; they end with it',
    () =>
      using(async (factory) => {
        const pairs = await Promise.all(
          (['python', 'python', 'native'] as const).map((family) => factory.prewarm(kindOf(family))),
        );
        const [first, second, native] = pairs as [Container, Container, Container];
        expect(new Set(pairs.map(({ msContainer }) => msContainer)).size).toBe(1);
        expect(first.msContainer).toBeDefined();
        expect(new Set(pairs.map(({ pid }) => pid)).size).toBe(3);
        await init(first, 'python', hunter);
        await init(second, 'python');
        await init(native, 'native');
        await call(second, { name: 'a' });
        // Each process sees the other one as that of another user.
        const refused = 'PermissionError';
        expect((await call(first, { pid: second.pid ?? 0 })).result).toEqual({
          seen: true,
          kill: refused,
          environ: refused,
          mem: refused,
          root: refused,
        });
        expect((await call(second, { name: 'b' })).result.hello).toBe('b');

        // A container that compiled may still be ending.
        const named = ['--filter', 'name=_mscontainer_', '--filter', 'name=_prewarm_'];
        const ids = (await engine.docker(['ps', '-q', '--no-trunc', ...named])).trim().split('\n');
        const all = JSON.parse(await engine.docker(['inspect', ...ids])) as {
          Id: string;
          Name: string;
          Config: { User: string };
          HostConfig: { PidMode: string; Privileged: boolean; CapAdd: unknown; SecurityOpt: string[]; Memory: number };
        }[];
        const holder = all.find(({ Name }) => Name.includes('_mscontainer_'));
        const ofPairs = all.filter((one) => one !== holder);
        expect(ofPairs).toHaveLength(3);
        expect(new Set(ofPairs.map(({ Config }) => Config.User)).size).toBe(3);
        for (const { HostConfig } of ofPairs) {
          expect(HostConfig).toMatchObject({
            PidMode: `container:${holder?.Id}`,
            Privileged: false,
            CapAdd: null,
            SecurityOpt: ['no-new-privileges'],
            Memory: 256 * 1024 * 1024,
          });
        }

        await engine.docker(['kill', holder?.Id ?? '']);
        await Promise.all(pairs.map(({ exited }) => exited));
        const next = await factory.prewarm(kindOf('native'));
        expect(next.msContainer).not.toBe(first.msContainer);
        await init(next, 'native');
        expect((await call(next, { name: 'c' })).result.hello).toBe('c');
      }),
    testTimeoutMs,
  );

  test(
    'source that does not compile is refused with what the compiler says',
    () =>
      using(async (factory) => {
        const container = await factory.prewarm(kindOf('native'));
        const request = { name: 'f', main: '', code: 'int main( {', binary: false, env: {} };
        const refused = container.init(request, limits);
        expect(await refused.outcome).toMatchObject({ type: 'error', error: expect.stringContaining('binary') });
        expect((await refused.logs).join('\n')).toContain('error:');
      }),
    testTimeoutMs,
  );

  composeCases(() => engine, java?.launch);
});

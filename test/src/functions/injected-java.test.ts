import AdmZip from 'adm-zip';
import { fileURLToPath } from 'node:url';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { createRuntimeCatalog } from '@gpuwhisk/invoker/runtimes/create-runtime-catalog';
import { compileJar } from '../native/compile-jar.js';
import { marker, padding, testBadFunctions } from './injected-cases.js';
import type { BadCase } from './injected-cases.js';
import { newDataDir } from '../support/running-platform.js';

const runtimesDir = fileURLToPath(new URL('../../../runtimes', import.meta.url));
/** Data folder of the platform: the runtime is compiled once. */
const dataDir = newDataDir();
const catalog = await createRuntimeCatalog({ runtimesDir, dataDir, clock: systemClock });
const kind = catalog.manifest.runtimes.java?.[0]?.kind;

const methods: Record<string, string> = {
  exits: 'System.exit(3);',
  halts: 'Runtime.getRuntime().halt(3);',
  exitsUnseen: 'System.class.getMethod("exit", int.class).invoke(null, 3);',
  startsDaemons:
    'for (int i = 0; i < 4; i++) start(() -> { try { Thread.sleep(600000); } catch (InterruptedException end) { } });',
  eats: 'while (args != null) kept.add(new byte[8 << 20]);',
  changes:
    'System.setProperty("user.dir", "/nowhere"); System.setOut(null); System.setErr(null); Locale.setDefault(Locale.GERMANY);',
  pid: 'done.addProperty("pid", ProcessHandle.current().pid());',
};
const source = `
import com.google.gson.*;
import java.util.*;
public class Bad {
  static List<Object> kept = new ArrayList<>();
  static void start(Runnable work) { Thread thread = new Thread(work); thread.setDaemon(true); thread.start(); }
${Object.entries(methods)
  .map(
    ([name, code]) => `  public static JsonObject ${name}(JsonObject args) throws Exception {
    JsonObject done = new JsonObject();
    done.addProperty("done", 1);
    ${code}
    return done;
  }`,
  )
  .join('\n')}
}`;

let jar: Buffer;
const upload = (main: string) => () => ({ code: jar, main });
const done = { status: 'success', says: /done/ } as const;

function paddedJar(): Buffer {
  const zip = new AdmZip(jar);
  zip.addFile('padding', Buffer.from(padding));
  // The entries are stored without compression, so that the text is found in the store.
  for (const entry of zip.getEntries()) entry.header.method = 0;
  return zip.toBuffer();
}

const cases: BadCase[] = [
  { name: 'a JAR without the class', upload: upload('None'), says: /ClassNotFoundException: None/ },
  { name: 'no JAR', upload: () => ({ code: Buffer.from('this is certainly no JAR'), main: 'Bad' }), says: /error/ },
  { name: 'System.exit', upload: upload('Bad#exits'), says: /exited unexpectedly/ },
  { name: 'halt', upload: upload('Bad#halts'), says: /exited unexpectedly/ },
  { name: 'an exit by reflection', upload: upload('Bad#exitsUnseen'), says: /exited unexpectedly/, isReplaced: true },
  { name: 'daemon threads', upload: upload('Bad#startsDaemons'), ...done },
  { name: 'all the memory', upload: upload('Bad#eats'), says: /OutOfMemoryError/ },
  { name: 'shared settings, changed', upload: upload('Bad#changes'), ...done },
  {
    name: 'not what was registered',
    upload: () => ({ code: paddedJar(), main: 'Bad#changes' }),
    damaged: marker,
    says: /SHA-256/,
  },
];

testBadFunctions({
  name: 'java',
  ...(kind === undefined ? { lack: 'no JDK' } : {}),
  dataDir,
  good: async () => {
    jar = compileJar(await catalog.launch(kind ?? '', []), 'Bad', source);
    return { code: jar, main: 'Bad#pid' };
  },
  cases,
});

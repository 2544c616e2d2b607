import type { RuntimeLaunch } from '@gpuwhisk/invoker/containers/runtime-launch';
import { compileJar } from './compile-jar.js';

/** Functions that leave data or threads behind which an unload can remove. */
export const harmless: Record<string, string> = {
  exits: 'System.exit(3);',
  exitsQuietly: 'try { Runtime.getRuntime().halt(3); } catch (Throwable caught) { }',
  leavesThreads:
    'for (int i = 0; i < 5; i++) start(() -> { try { Thread.sleep(1000000); } catch (InterruptedException end) { } });',
  leavesHooks: 'Runtime.getRuntime().addShutdownHook(new Thread(() -> System.out.println("late")));',
  changesProperties:
    'System.setProperty("left", "x"); System.getProperties().remove("java.io.tmpdir"); System.setProperties(new java.util.Properties());',
  changesDefaults:
    'java.util.Locale.setDefault(java.util.Locale.GERMANY); java.util.TimeZone.setDefault(java.util.TimeZone.getTimeZone("Asia/Tokyo")); Thread.setDefaultUncaughtExceptionHandler((t, e) -> { }); java.net.CookieHandler.setDefault(new java.net.CookieManager()); java.security.Security.setProperty("networkaddress.cache.ttl", "7"); java.security.Security.removeProvider("SunEC"); java.util.logging.Logger.getLogger("").setLevel(java.util.logging.Level.ALL);',
  replacesStreams:
    'System.setOut(new java.io.PrintStream(java.io.OutputStream.nullOutputStream())); System.err.close(); System.setIn(null);',
  closesStreams: 'System.out.close(); System.err.close();',
  hasNoStreams:
    'System.setOut(null); System.setErr(null); if (args != null) throw new IllegalStateException("unseen");',
  hasFailingStreams:
    'java.io.PrintStream fails = new java.io.PrintStream(System.out) { public void flush() { throw new IllegalStateException("stream"); } }; System.setOut(fails); System.setErr(fails);',
  throwsWhenNamed:
    'if (args != null) throw new RuntimeException() { public String toString() { throw new IllegalStateException("name"); } };',
  setsUrlHandlers: 'java.net.URL.setURLStreamHandlerFactory(protocol -> null);',
  leavesFiles:
    'new java.io.File("a/b").mkdirs(); Files.writeString(java.nio.file.Path.of("a/b/left.txt"), "x"); Files.createSymbolicLink(java.nio.file.Path.of("link"), java.nio.file.Path.of("/etc"));',
  keepsDescriptors: 'for (int i = 0; i < 9; i++) kept.add(new java.io.FileInputStream("/dev/null"));',
  keepsMuch: 'kept.add(new byte[16 << 20]);',
  fillsTheHeap: 'try { while (true) kept.add(new byte[8 << 20]); } catch (OutOfMemoryError full) { }',
  overflows: 'overflows(args);',
  throwsErrors: 'if (args != null) throw new AssertionError("no");',
};

/** Functions after which the JVM must be replaced, with its error. */
export const fatal: Record<string, [code: string, error: RegExp]> = {
  staysAlive: [
    'start(() -> { while (true) { try { Thread.sleep(1000000); } catch (InterruptedException no) { } } });',
    /thread 'Thread-/,
  ],
  keepsWorkers: [
    'Object lock = new Object(); start(() -> { while (true) synchronized (lock) { Thread.yield(); } });',
    /thread 'Thread-/,
  ],
  leavesTimers: [
    'new java.util.Timer(true).schedule(new java.util.TimerTask() { public void run() { System.out.println("late"); } }, 1, 1);',
    /thread 'Timer-0'/,
  ],
  registersBean: [
    'java.lang.management.ManagementFactory.getPlatformMBeanServer().registerMBean(new javax.management.StandardMBean(new Left(), Runnable.class), new javax.management.ObjectName("left:type=Left"));',
    /objects of an action that is gone/,
  ],
  leavesProcess: ['new ProcessBuilder("sleep", "1000").start();', /a process/],
};

const body = (name: string, code: string): string =>
  `  public static JsonObject ${name}(JsonObject args) throws Exception { ${code} return args; }`;

const source = `
import com.google.gson.*;
import java.nio.file.Files;
import java.util.*;

public class Functions {
  static List<Object> kept = new ArrayList<>();
  static int runs = 0;
  static class Left implements Runnable { public void run() { } }
  static void start(Runnable work) { Thread thread = new Thread(work); thread.setDaemon(true); thread.start(); }
${Object.entries(harmless)
  .map(([name, code]) => body(name, code))
  .join('\n')}
${Object.entries(fatal)
  .map(([name, [code]]) => body(name, code))
  .join('\n')}
  public static JsonObject fillsFolders(JsonObject args) throws Exception {
    String a = args.get("a").getAsString(), b = args.get("b").getAsString();
    new java.io.File(b + "/deep/er").mkdirs();
    Files.writeString(java.nio.file.Path.of(b + "/deep/er/x"), "");
    Files.createSymbolicLink(java.nio.file.Path.of(b + "/deep/link"), java.nio.file.Path.of(a));
    Files.createSymbolicLink(java.nio.file.Path.of(a + "/link"), java.nio.file.Path.of("../outside"));
    Files.setPosixFilePermissions(java.nio.file.Path.of(b + "/deep/er"), Set.of());
    args.addProperty("seen", System.getenv("GPUWHISK_SCRATCH"));
    return args;
  }
  public static JsonObject echo(JsonObject args) { return args; }
  public static JsonObject plant(JsonObject args) throws Exception {
    String secret = args.get("secret").getAsString();
    kept.add(secret);
    System.setProperty("left", secret);
    Files.writeString(java.nio.file.Path.of("left"), secret);
    java.security.Security.setProperty("left", secret);
    Thread.currentThread().setName(secret);
    new InheritableThreadLocal<String>().set(secret);
    Runtime.getRuntime().addShutdownHook(new Thread(() -> { }, secret));
    return args;
  }
  public static JsonObject probe(JsonObject args) throws Exception {
    JsonObject found = new JsonObject();
    String all = System.getProperties() + " " + System.getenv() + " " + Thread.getAllStackTraces().keySet()
      + " " + java.security.Security.getProperty("left");
    found.addProperty("secret", args.has("secret") && all.contains(args.get("secret").getAsString()));
    found.addProperty("runs", ++runs);
    found.addProperty("kept", kept.size());
    found.addProperty("property", String.valueOf(System.getProperty("left")));
    found.addProperty("folder", System.getProperty("java.io.tmpdir"));
    found.addProperty("locale", String.format("%.1f", 1.5) + Locale.getDefault());
    found.addProperty("zone", TimeZone.getDefault().getID());
    found.addProperty("handler", String.valueOf(Thread.getDefaultUncaughtExceptionHandler()));
    found.addProperty("cookies", String.valueOf(java.net.CookieHandler.getDefault()));
    found.addProperty("ttl", String.valueOf(java.security.Security.getProperty("networkaddress.cache.ttl")));
    found.addProperty("providers", Arrays.toString(java.security.Security.getProviders()));
    found.addProperty("level", String.valueOf(java.util.logging.Logger.getLogger("").getLevel()));
    found.addProperty("files", Arrays.toString(new java.io.File(".").list()));
    found.addProperty("url", new java.net.URI("http://h/").toURL().getProtocol());
    System.out.println("probe \\u2603");
    return found;
  }
}
`;

/** The functions as a JAR, in base64, compiled with the JDK of `launch`. */
export function makeJar(launch: RuntimeLaunch): string {
  return compileJar(launch, 'Functions', source).toString('base64');
}

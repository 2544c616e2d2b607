package gpuwhisk;

import java.lang.reflect.Field;
import java.net.Authenticator;
import java.net.CookieHandler;
import java.net.HttpURLConnection;
import java.net.ProxySelector;
import java.net.ResponseCache;
import java.net.URL;
import java.security.Provider;
import java.security.Security;
import java.util.Arrays;
import java.util.IdentityHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;
import java.util.TimeZone;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.Logger;

/** The JVM-wide settings that an action can change, for a Baseline. */
final class Settings {
    private Settings() {}

    /** Throws ReflectiveOperationException where the JDK is not built as those that this was written for (17 to 25). */
    static void addTo(Baseline baseline, Environment environment) throws ReflectiveOperationException {
        addTables(baseline, environment);
        baseline.add("the default locale", Locale::getDefault, Locale::setDefault);
        for (Locale.Category category : Locale.Category.values()) {
            baseline.add(
                    "the locale for " + category,
                    () -> Locale.getDefault(category),
                    locale -> Locale.setDefault(category, locale));
        }
        baseline.add("the default time zone", TimeZone::getDefault, TimeZone::setDefault);
        baseline.add(
                "the handler of uncaught exceptions",
                Thread::getDefaultUncaughtExceptionHandler,
                Thread::setDefaultUncaughtExceptionHandler);
        baseline.add("the standard input", () -> System.in, System::setIn);
        baseline.add("the authenticator", Authenticator::getDefault, Authenticator::setDefault);
        baseline.add("the proxy selector", ProxySelector::getDefault, ProxySelector::setDefault);
        baseline.add("the cookie handler", CookieHandler::getDefault, CookieHandler::setDefault);
        baseline.add("the response cache", ResponseCache::getDefault, ResponseCache::setDefault);
        baseline.add("the following of redirects", HttpURLConnection::getFollowRedirects, HttpURLConnection::setFollowRedirects);
        addStatic(baseline, "the factory of URL handlers", URL.class, "factory");
        addLogging(baseline);
    }

    private static void addTables(Baseline baseline, Environment environment) throws ReflectiveOperationException {
        Properties properties = System.getProperties();
        Table saved = new Table(properties);
        baseline.add(
                "the system properties",
                () -> {
                    System.setProperties(properties);
                    saved.restore();
                },
                () -> System.getProperties() == properties && saved.isBack());
        environment.keep();
        baseline.add("the environment", environment::restore, environment::isBack);
        addShutdownHooks(baseline);
        addProviders(baseline);
    }

    private static void addShutdownHooks(Baseline baseline) throws ReflectiveOperationException {
        Field field = Class.forName("java.lang.ApplicationShutdownHooks").getDeclaredField("hooks");
        field.setAccessible(true);
        @SuppressWarnings("unchecked")
        Map<Thread, Thread> hooks = (IdentityHashMap<Thread, Thread>) field.get(null);
        Map<Thread, Thread> saved = new IdentityHashMap<>(hooks);
        baseline.add(
                "the shutdown hooks",
                () -> hooks.keySet().retainAll(saved.keySet()),
                () -> hooks.size() == saved.size() && hooks.equals(saved));
    }

    private static void addProviders(Baseline baseline) throws ReflectiveOperationException {
        Provider[] saved = Security.getProviders();
        baseline.add(
                "the security providers",
                () -> {
                    for (Provider provider : Security.getProviders()) Security.removeProvider(provider.getName());
                    for (Provider provider : saved) Security.addProvider(provider);
                },
                () -> Arrays.equals(Security.getProviders(), saved));
        Field field = Security.class.getDeclaredField("props");
        field.setAccessible(true);
        Properties properties = (Properties) field.get(null);
        Table values = new Table(properties);
        baseline.add("the security properties", values::restore, values::isBack);
    }

    private static void addStatic(Baseline baseline, String name, Class<?> holder, String fieldName)
            throws ReflectiveOperationException {
        Field field = holder.getDeclaredField(fieldName);
        field.setAccessible(true);
        baseline.add(name, () -> get(field), value -> set(field, value));
    }

    private static Object get(Field field) {
        try {
            return field.get(null);
        } catch (IllegalAccessException never) {
            throw new IllegalStateException(never); // It was made accessible.
        }
    }

    private static void set(Field field, Object value) {
        try {
            field.set(null, value);
        } catch (IllegalAccessException never) {
            throw new IllegalStateException(never);
        }
    }

    private static void addLogging(Baseline baseline) {
        Logger root = Logger.getLogger("");
        baseline.add("the level of the root logger", root::getLevel, root::setLevel);
        Handler[] handlers = root.getHandlers();
        baseline.add(
                "the handlers of the root logger",
                () -> {
                    for (Handler handler : root.getHandlers()) root.removeHandler(handler);
                    for (Handler handler : handlers) root.addHandler(handler);
                },
                () -> Arrays.equals(root.getHandlers(), handlers));
        for (Handler handler : handlers) {
            Level level = handler.getLevel();
            baseline.add("the level of a log handler", () -> handler.setLevel(level), () -> handler.getLevel().equals(level));
            baseline.add("the formatter of a log handler", handler::getFormatter, handler::setFormatter);
        }
    }
}

package gpuwhisk;

import java.util.Map;

/** The entries of a map as they were, to be compared with what they are in as few steps as can be. */
final class Table {
    private final Map<?, ?> map;
    private final Object[] keys;
    private final Object[] values;

    Table(Map<?, ?> map) {
        this.map = map;
        keys = map.keySet().toArray();
        values = new Object[keys.length];
        for (int at = 0; at < keys.length; at++) values[at] = map.get(keys[at]);
    }

    /** Whether `map` has these entries and no others. */
    boolean isBack() {
        if (map.size() != keys.length) return false;
        for (int at = 0; at < keys.length; at++) {
            Object now = map.get(keys[at]);
            if (now != values[at] && !values[at].equals(now)) return false;
        }
        return true;
    }

    void restore() {
        @SuppressWarnings("unchecked")
        Map<Object, Object> target = (Map<Object, Object>) map;
        target.clear();
        for (int at = 0; at < keys.length; at++) target.put(keys[at], values[at]);
    }
}

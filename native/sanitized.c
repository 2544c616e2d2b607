// Only in builds with sanitizers: options of programs that are started with an environment of their own, as the platform
// starts all. A look for leaks would trace the process, which the filter of a sandbox forbids; a fault is the tracer's.
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "detect_leaks=0:handle_segv=0"; }

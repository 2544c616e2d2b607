// NVML as a Node addon. Every function returns a promise at once; the work is done by a thread of Node's pool, one call
// of a session at a time, so that the event loop never waits for the driver.
#include "conversion.h"
#include "geometry.h"

#include <utility>

namespace gpuwhisk::nvml {
namespace {

/** What JavaScript holds of a loaded library. */
struct Session {
  std::mutex lock;
  std::shared_ptr<const Library> library; // Empty once it is closed.
  std::unique_ptr<Sampler> sampler;

  const Library &require() const {
    if (!library) throw Failure(NVML_ERROR_UNINITIALIZED, "The driver has been closed.");
    return *library;
  }
};

using Convert = std::function<Napi::Value(Napi::Env)>;

/** A call on the pool; what `work` returns makes the promise's value, on Node's thread. */
class Job : public Napi::AsyncWorker {
public:
  using Work = std::function<Convert(Session &)>;

  static Napi::Promise start(Napi::Env env, std::shared_ptr<Session> session, Work work) {
    Job *job = new Job(env, std::move(session), std::move(work)); // Frees itself.
    job->Queue();
    return job->deferred_.Promise();
  }

protected:
  void Execute() override {
    std::lock_guard guard(session_->lock);
    try {
      convert_ = work_(*session_);
    } catch (const Failure &failure) {
      code_ = failure.code;
      SetError(failure.what());
    }
  }
  void OnOK() override { deferred_.Resolve(convert_(Env())); }
  void OnError(const Napi::Error &error) override {
    if (code_ != NVML_SUCCESS) error.Value().Set("code", Napi::Number::New(Env(), code_));
    deferred_.Reject(error.Value());
  }

private:
  Job(Napi::Env env, std::shared_ptr<Session> session, Work work)
      : Napi::AsyncWorker(env), deferred_(env), session_(std::move(session)), work_(std::move(work)) {}
  Napi::Promise::Deferred deferred_;
  std::shared_ptr<Session> session_;
  Work work_;
  Convert convert_;
  int code_ = NVML_SUCCESS;
};

using Handle = Napi::External<std::shared_ptr<Session>>;

const std::shared_ptr<Session> &session_of(const Napi::CallbackInfo &info) {
  if (!info[0].IsExternal()) throw Napi::TypeError::New(info.Env(), "session must be what open gave");
  return *info[0].As<Handle>().Data();
}

std::string text_at(const Napi::CallbackInfo &info, size_t index, const char *name) {
  if (!info[index].IsString()) throw Napi::TypeError::New(info.Env(), std::string(name) + " must be a string");
  return info[index].As<Napi::String>();
}

bool flag_at(const Napi::CallbackInfo &info, size_t index, const char *name) {
  if (!info[index].IsBoolean()) throw Napi::TypeError::New(info.Env(), std::string(name) + " must be true or false");
  return info[index].As<Napi::Boolean>();
}

Convert nothing() {
  return [](Napi::Env env) { return env.Undefined(); };
}

template <typename Value> Convert answer(Value value) {
  return [value = std::move(value)](Napi::Env env) { return to_javascript(env, value); };
}

// open(path, simulator): {session, driver, cuda}
Napi::Value open(const Napi::CallbackInfo &info) {
  std::string path = text_at(info, 0, "path"), simulator = text_at(info, 1, "simulator");
  auto session = std::make_shared<Session>();
  return Job::start(info.Env(), session, [=](Session &) -> Convert {
    auto library = std::make_shared<const Library>(path, simulator);
    char driver[NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE] = "";
    int cuda = 0;
    library->check(library->calls().driver_version(driver, sizeof driver), "driver version");
    library->check(library->calls().cuda_version(&cuda), "CUDA version");
    session->library = library;
    session->sampler = std::make_unique<Sampler>(*library);
    return [=, driver = std::string(driver)](Napi::Env env) -> Napi::Value {
      Napi::Object result = Napi::Object::New(env);
      auto *kept = new std::shared_ptr<Session>(session);
      result.Set("session", Handle::New(env, kept, [](Napi::Env, std::shared_ptr<Session> *old) { delete old; }));
      result.Set("driver", driver);
      result.Set("cuda", std::to_string(cuda / 1000) + "." + std::to_string(cuda % 1000 / 10));
      return result;
    };
  });
}

// devices(session): Device[]
Napi::Value devices(const Napi::CallbackInfo &info) {
  return Job::start(info.Env(), session_of(info),
                    [](Session &session) { return answer(list_devices(session.require())); });
}

// sample(session): Sample[]
Napi::Value sample(const Napi::CallbackInfo &info) {
  return Job::start(info.Env(), session_of(info), [](Session &session) {
    session.require();
    return answer(session.sampler->sample());
  });
}

// profiles(session, uuid): Profile[]
Napi::Value profiles(const Napi::CallbackInfo &info) {
  std::string uuid = text_at(info, 1, "uuid");
  return Job::start(info.Env(), session_of(info), [=](Session &session) {
    const Library &library = session.require();
    return answer(list_profiles(library, find_device(library, uuid)));
  });
}

/** A function `name(session, uuid, value)` that changes a device. */
template <void (*change)(const Library &, nvmlDevice_t, bool)> Napi::Value set_flag(const Napi::CallbackInfo &info) {
  std::string uuid = text_at(info, 1, "uuid");
  bool value = flag_at(info, 2, "value");
  return Job::start(info.Env(), session_of(info), [=](Session &session) {
    const Library &library = session.require();
    change(library, find_device(library, uuid), value);
    return nothing();
  });
}

// createSlice(session, uuid, profile, startSlot | undefined): Slice
Napi::Value create(const Napi::CallbackInfo &info) {
  std::string uuid = text_at(info, 1, "uuid"), profile = text_at(info, 2, "profile");
  std::optional<unsigned> start;
  if (info[3].IsNumber()) start = info[3].As<Napi::Number>().Uint32Value();
  return Job::start(info.Env(), session_of(info), [=](Session &session) {
    const Library &library = session.require();
    return answer(create_slice(library, find_device(library, uuid), profile, start));
  });
}

// destroySlice(session, uuid, slice)
Napi::Value destroy(const Napi::CallbackInfo &info) {
  std::string uuid = text_at(info, 1, "uuid"), slice = text_at(info, 2, "slice");
  return Job::start(info.Env(), session_of(info), [=](Session &session) {
    const Library &library = session.require();
    destroy_slice(library, find_device(library, uuid), slice);
    return nothing();
  });
}

/** A watcher and its way to JavaScript, until it is stopped or Node ends. */
struct Watch {
  napi_env env;
  Napi::ThreadSafeFunction queue;
  std::unique_ptr<Watcher> watcher;
  bool hooked = false; // Node's thread only.

  /** When Node ends, which frees the queue itself. Waits for the watcher's thread. */
  static void end(void *data) {
    auto *watch = static_cast<Watch *>(data);
    watch->hooked = false;
    watch->watcher.reset();
  }
  /** Whether it was still to be ended. */
  bool unhook() {
    if (!std::exchange(hooked, false)) return false;
    napi_remove_env_cleanup_hook(env, end, this);
    return true;
  }
};

using WatchHandle = Napi::External<std::shared_ptr<Watch>>;

/** At most as many events wait for JavaScript; more are dropped: a storm of Xids tells nothing more than its begin. */
constexpr size_t most_waiting = 1024;

// watch(session, listener): watch
Napi::Value watch(const Napi::CallbackInfo &info) {
  if (!info[1].IsFunction()) throw Napi::TypeError::New(info.Env(), "listener must be a function");
  const std::shared_ptr<Session> &session = session_of(info);
  auto watch = std::make_shared<Watch>();
  watch->env = info.Env();
  watch->queue =
      Napi::ThreadSafeFunction::New(info.Env(), info[1].As<Napi::Function>(), "gpuwhisk NVML events", most_waiting, 1);
  watch->queue.Unref(info.Env());
  return Job::start(info.Env(), session, [watch](Session &session) -> Convert {
    auto tell = [queue = watch->queue](const Event &event) {
      queue.NonBlockingCall([event](Napi::Env env, Napi::Function listener) { listener.Call({to_javascript(env, event)}); });
    };
    try {
      session.require();
      watch->watcher = std::make_unique<Watcher>(session.library, tell);
    } catch (...) {
      watch->queue.Release();
      throw;
    }
    return [watch](Napi::Env env) -> Napi::Value {
      // Hooks run in reverse order: this one before the queue's own.
      napi_add_env_cleanup_hook(env, Watch::end, watch.get());
      watch->hooked = true;
      auto *kept = new std::shared_ptr<Watch>(watch);
      return WatchHandle::New(env, kept, [](Napi::Env, std::shared_ptr<Watch> *old) {
        if ((*old)->unhook()) { // No caller has stopped it, nor can any more.
          (*old)->watcher.reset();
          (*old)->queue.Release();
        }
        delete old;
      });
    };
  });
}

// unwatch(session, watch)
Napi::Value unwatch(const Napi::CallbackInfo &info) {
  if (!info[1].IsExternal()) throw Napi::TypeError::New(info.Env(), "watch must be what watch gave");
  std::shared_ptr<Watch> watch = *info[1].As<WatchHandle>().Data();
  if (!watch->unhook()) return Job::start(info.Env(), session_of(info), [](Session &) { return nothing(); });
  return Job::start(info.Env(), session_of(info), [watch](Session &) -> Convert {
    watch->watcher.reset();
    return [watch](Napi::Env env) -> Napi::Value {
      watch->queue.Release();
      return env.Undefined();
    };
  });
}

// close(session)
Napi::Value close(const Napi::CallbackInfo &info) {
  return Job::start(info.Env(), session_of(info), [](Session &session) {
    session.sampler.reset();
    session.library.reset();
    return nothing();
  });
}

Napi::Object initialize(Napi::Env env, Napi::Object exports) {
  exports.Set("open", Napi::Function::New(env, open));
  exports.Set("devices", Napi::Function::New(env, devices));
  exports.Set("sample", Napi::Function::New(env, sample));
  exports.Set("profiles", Napi::Function::New(env, profiles));
  exports.Set("setMig", Napi::Function::New(env, set_flag<set_mig>));
  exports.Set("setExclusive", Napi::Function::New(env, set_flag<set_exclusive>));
  exports.Set("createSlice", Napi::Function::New(env, create));
  exports.Set("destroySlice", Napi::Function::New(env, destroy));
  exports.Set("watch", Napi::Function::New(env, watch));
  exports.Set("unwatch", Napi::Function::New(env, unwatch));
  exports.Set("close", Napi::Function::New(env, close));
  return exports;
}

} // namespace
} // namespace gpuwhisk::nvml

static Napi::Object initialize_addon(Napi::Env env, Napi::Object exports) {
  return gpuwhisk::nvml::initialize(env, exports);
}
NODE_API_MODULE(gpuwhisk_nvml, initialize_addon)

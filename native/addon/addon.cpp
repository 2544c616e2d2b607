// The Proxy as a Node addon: launch, inject, call, unload, end. Every function returns a promise at once; the work
// is done by the tracer thread of its pre-warmer, so that the event loop never waits.
#include "../inject/failure.h"
#include "conversion.h"
#include "tracer_thread.h"

#include <mutex>
#include <napi.h>
#include <utility>

namespace gpuwhisk::addon {
namespace {

/** The way back to Node's thread. Node may be ending while the tracer works: then there is none any more. */
struct WayBack {
  std::mutex lock;
  bool closed = false;
  Napi::ThreadSafeFunction queue;

  static void close(void *data) {
    auto *way = static_cast<WayBack *>(data);
    std::lock_guard guard(way->lock);
    way->closed = true;
  }
};

/** What JavaScript holds of a pre-warmer. */
class Target : public Napi::ObjectWrap<Target> {
public:
  explicit Target(const Napi::CallbackInfo &info) : Napi::ObjectWrap<Target>(info), env_(info.Env()) {
    way_->queue = Napi::ThreadSafeFunction::New(info.Env(), Napi::Function(), "gpuwhisk tracer", 0, 1);
    way_->queue.Unref(info.Env()); // It keeps the process alive only while something is awaited.
    // Hooks run in reverse order: this one before the queue's own.
    napi_add_env_cleanup_hook(env_, WayBack::close, way_.get());
  }
  ~Target() override {
    napi_remove_env_cleanup_hook(env_, WayBack::close, way_.get());
    std::lock_guard guard(way_->lock);
    if (!std::exchange(way_->closed, true)) way_->queue.Release();
  }

  using Convert = std::function<Napi::Value(Napi::Env)>;
  using Work = std::function<Convert(std::unique_ptr<inject::Prewarmer> &)>;

  /** Has the tracer thread do `work`; what it returns makes the promise's value, on Node's thread. */
  Napi::Promise run(Napi::Env env, Work work) {
    auto deferred = std::make_shared<Napi::Promise::Deferred>(env);
    if (pending_++ == 0) {
      Ref(); // Nor is the target collected meanwhile.
      way_->queue.Ref(env);
    }
    thread_.add([this, way = way_, deferred, work = std::move(work)](std::unique_ptr<inject::Prewarmer> &prewarmer) {
      Convert convert = attempt(work, prewarmer);
      std::lock_guard guard(way->lock);
      if (way->closed) return;
      napi_status sent = way->queue.NonBlockingCall([this, deferred, convert](Napi::Env env, Napi::Function) {
        settle(env, *deferred, convert);
        if (--pending_ > 0) return;
        way_->queue.Unref(env);
        Unref();
      });
      if (sent != napi_ok && sent != napi_closing) std::abort(); // Only out of memory is left.
    });
    return deferred->Promise();
  }

private:
  /** A failure as an Error with a `code`. */
  static Convert failed(std::string code, std::string message) {
    return [code, message](Napi::Env env) -> Napi::Value {
      Napi::Error error = Napi::Error::New(env, message);
      error.Set("code", Napi::String::New(env, code));
      throw error;
    };
  }

  static Convert attempt(const Work &work, std::unique_ptr<inject::Prewarmer> &prewarmer) {
    try {
      return work(prewarmer);
    } catch (const inject::Failure &failure) {
      return failed(failure.code, failure.what());
    } catch (const std::exception &error) {
      return failed("system", error.what());
    }
  }

  static void settle(Napi::Env env, Napi::Promise::Deferred &deferred, const Convert &convert) {
    Napi::HandleScope scope(env);
    try {
      deferred.Resolve(convert(env));
    } catch (const Napi::Error &error) {
      deferred.Reject(error.Value());
    }
  }

  napi_env env_;
  std::shared_ptr<WayBack> way_ = std::make_shared<WayBack>();
  TracerThread thread_;
  int pending_ = 0; // Node's thread only.
};

struct Classes {
  Napi::FunctionReference target;
};

Target &target_of(const Napi::CallbackInfo &info) {
  auto *classes = info.Env().GetInstanceData<Classes>();
  if (!info[0].IsObject() || !info[0].As<Napi::Object>().InstanceOf(classes->target.Value()))
    throw Napi::TypeError::New(info.Env(), "target must be what launch returned");
  return *Target::Unwrap(info[0].As<Napi::Object>());
}

Napi::Object object_at(const Napi::CallbackInfo &info, size_t index) {
  if (!info[index].IsObject()) throw Napi::TypeError::New(info.Env(), "options must be an object");
  return info[index].As<Napi::Object>();
}

inject::Prewarmer &require(const std::unique_ptr<inject::Prewarmer> &prewarmer) {
  if (!prewarmer) throw inject::Failure("gone", "The pre-warmer has been ended.");
  return *prewarmer;
}

Target::Convert answer(inject::Outcome outcome) {
  return [outcome = std::move(outcome)](Napi::Env env) { return to_javascript(env, outcome); };
}

// launch(options): {target, pid, tracksWrites, landlock, cuda}
Napi::Value launch(const Napi::CallbackInfo &info) {
  inject::LaunchOptions options = launch_options(object_at(info, 0));
  Napi::Object object = info.Env().GetInstanceData<Classes>()->target.New({});
  Target *target = Target::Unwrap(object);
  return target->run(info.Env(), [options, target](std::unique_ptr<inject::Prewarmer> &prewarmer) {
    prewarmer = std::make_unique<inject::Prewarmer>(options);
    pid_t pid = prewarmer->pid();
    bool tracks = prewarmer->tracks_writes();
    int landlock = prewarmer->landlock();
    std::string cuda = prewarmer->cuda();
    return [=](Napi::Env env) -> Napi::Value {
      Napi::Object result = Napi::Object::New(env);
      result.Set("target", target->Value());
      result.Set("pid", pid);
      result.Set("tracksWrites", tracks);
      result.Set("landlock", landlock);
      result.Set("cuda", cuda);
      return result;
    };
  });
}

// inject(target, payload, options): Outcome
Napi::Value inject_function(const Napi::CallbackInfo &info) {
  Target &target = target_of(info);
  if (!info[1].IsBuffer()) throw Napi::TypeError::New(info.Env(), "payload must be a Buffer");
  auto buffer = info[1].As<Napi::Buffer<std::byte>>();
  auto code = std::make_shared<std::vector<std::byte>>(buffer.Data(), buffer.Data() + buffer.Length());
  Napi::Object object = object_at(info, 2);
  inject::InjectOptions options = inject_options(object);
  Napi::Value value = object.Get("first");
  std::optional<inject::CallOptions> first;
  if (!value.IsUndefined()) {
    if (!value.IsObject()) throw Napi::TypeError::New(info.Env(), "first must be an object");
    first = call_options(value.As<Napi::Object>());
  }
  return target.run(info.Env(), [=](std::unique_ptr<inject::Prewarmer> &prewarmer) {
    return answer(require(prewarmer).inject(*code, options, first ? &*first : nullptr));
  });
}

// call(target, options): Outcome
Napi::Value call(const Napi::CallbackInfo &info) {
  inject::CallOptions options = call_options(object_at(info, 1));
  return target_of(info).run(info.Env(), [options](std::unique_ptr<inject::Prewarmer> &prewarmer) {
    return answer(require(prewarmer).call(options));
  });
}

// unload(target): Outcome
Napi::Value unload(const Napi::CallbackInfo &info) {
  return target_of(info).run(info.Env(), [](std::unique_ptr<inject::Prewarmer> &prewarmer) {
    return answer(require(prewarmer).unload());
  });
}

// end(target): the process is killed and reaped
Napi::Value end(const Napi::CallbackInfo &info) {
  return target_of(info).run(info.Env(), [](std::unique_ptr<inject::Prewarmer> &prewarmer) {
    prewarmer.reset();
    return [](Napi::Env env) { return env.Undefined(); };
  });
}

Napi::Object initialize(Napi::Env env, Napi::Object exports) {
  auto classes = std::make_unique<Classes>();
  classes->target = Napi::Persistent(Target::DefineClass(env, "PrewarmerTarget", {}));
  env.SetInstanceData(classes.release());
  exports.Set("launch", Napi::Function::New(env, launch));
  exports.Set("inject", Napi::Function::New(env, inject_function));
  exports.Set("call", Napi::Function::New(env, call));
  exports.Set("unload", Napi::Function::New(env, unload));
  exports.Set("end", Napi::Function::New(env, end));
  return exports;
}

} // namespace
} // namespace gpuwhisk::addon

static Napi::Object initialize_addon(Napi::Env env, Napi::Object exports) {
  return gpuwhisk::addon::initialize(env, exports);
}
NODE_API_MODULE(gpuwhisk_inject, initialize_addon)

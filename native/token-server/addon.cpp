// The server of kernel tokens as a Node addon: class TokenServer with its two threads, and waitTick for the thread that
// decides. It converts and forwards; who gets what is decided in TypeScript.
#include "board.h"
#include "futex.h"
#include "listener.h"
#include "pages.h"
#include "ticker.h"

#include <algorithm>
#include <memory>
#include <napi.h>

namespace gpuwhisk::tokens {
namespace {

/** Events that Node's thread has not taken yet; beyond it clients are turned away. */
constexpr size_t max_events = 256;
/** More device memory than a process can have, bytes. */
constexpr int64_t most_memory = int64_t{1} << 42;

double number_at(const Napi::Object &object, const char *name) {
  Napi::Value value = object.Get(name);
  if (!value.IsNumber()) throw Napi::TypeError::New(object.Env(), std::string(name) + " must be a number");
  return value.As<Napi::Number>().DoubleValue();
}

/** The board in `value`, an Int32Array over the whole of it. */
Board board_at(const Napi::Value &value, size_t places) {
  if (!value.IsTypedArray() || value.As<Napi::TypedArray>().TypedArrayType() != napi_int32_array)
    throw Napi::TypeError::New(value.Env(), "board must be an Int32Array");
  auto words = value.As<Napi::Int32Array>();
  if (words.ByteLength() < Board::bytes(places)) throw Napi::RangeError::New(value.Env(), "board is too small");
  return Board(words.Data(), places);
}

PageTerms terms_at(const Napi::Value &value) {
  if (!value.IsObject()) throw Napi::TypeError::New(value.Env(), "terms must be an object");
  auto object = value.As<Napi::Object>();
  PageTerms terms{.memory_cap = static_cast<int64_t>(number_at(object, "memoryCapBytes")),
                  .context_bytes = static_cast<int64_t>(number_at(object, "contextBytes")),
                  .granted = to_blocks(number_at(object, "budget")),
                  .device = {}};
  Napi::Value device = object.Get("device");
  if (!device.IsBuffer() || device.As<Napi::Buffer<uint8_t>>().Length() != sizeof terms.device)
    throw Napi::TypeError::New(value.Env(), "device must be a Buffer of 16 bytes");
  memcpy(terms.device, device.As<Napi::Buffer<uint8_t>>().Data(), sizeof terms.device);
  return terms;
}

class TokenServer : public Napi::ObjectWrap<TokenServer> {
public:
  static Napi::Function define(Napi::Env env) {
    return DefineClass(env, "TokenServer",
                       {InstanceMethod<&TokenServer::admit>("admit"), InstanceMethod<&TokenServer::refuse>("refuse"),
                        InstanceMethod<&TokenServer::take>("take"), InstanceMethod<&TokenServer::release>("release"),
                        InstanceMethod<&TokenServer::set_memory_cap>("setMemoryCap"),
                        InstanceMethod<&TokenServer::place>("place"), InstanceMethod<&TokenServer::figures>("figures"),
                        InstanceMethod<&TokenServer::close>("close")});
  }

  // new TokenServer({socketPath, periodMs, places, board}, onEvent)
  explicit TokenServer(const Napi::CallbackInfo &info) : Napi::ObjectWrap<TokenServer>(info) {
    Napi::Env env = info.Env();
    if (!info[0].IsObject() || !info[1].IsFunction())
      throw Napi::TypeError::New(env, "TokenServer takes options and a listener");
    auto options = info[0].As<Napi::Object>();
    auto places = static_cast<size_t>(number_at(options, "places"));
    auto period_ns = static_cast<int64_t>(number_at(options, "periodMs") * 1e6);
    Napi::Value path = options.Get("socketPath");
    if (!path.IsString()) throw Napi::TypeError::New(env, "socketPath must be a string");
    if (places < 1 || places > 4096 || period_ns < 100'000) throw Napi::RangeError::New(env, "places or periodMs");
    Board board = board_at(options.Get("board"), places);
    try {
      pages_ = std::make_unique<Pages>(places);
      events_ = Napi::ThreadSafeFunction::New(env, info[1].As<Napi::Function>(), "gpuwhisk tokens", max_events, 1);
      events_.Unref(env);
      listener_ = std::make_unique<Listener>(path.As<Napi::String>().Utf8Value(), *pages_,
                                             [this](Event event) { return tell(std::move(event)); });
      ticker_ = std::make_unique<Ticker>(board, *pages_, period_ns);
    } catch (const std::exception &error) {
      end();
      throw Napi::Error::New(env, error.what());
    }
    board_ = Napi::Persistent(options.Get("board").As<Napi::Object>());
  }
  ~TokenServer() override { end(); }

private:
  bool tell(Event event) {
    auto deliver = [event = std::move(event)](Napi::Env env, Napi::Function listener) {
      listener.Call({Napi::String::New(env, event.kind == Event::HELLO ? "hello" : "gone"),
                     Napi::Number::New(env, event.id), Napi::Number::New(env, event.pid),
                     Napi::Number::New(env, event.uid), Napi::String::New(env, event.ticket)});
    };
    return events_.NonBlockingCall(deliver) == napi_ok;
  }

  void end() {
    ticker_.reset();
    listener_.reset();
    if (events_) events_.Release();
    events_ = Napi::ThreadSafeFunction();
  }

  size_t place_at(const Napi::CallbackInfo &info, size_t index) {
    if (!listener_) throw Napi::Error::New(info.Env(), "The token server is closed.");
    if (!info[index].IsNumber()) throw Napi::TypeError::New(info.Env(), "place must be a number");
    auto place = info[index].As<Napi::Number>().Uint32Value();
    if (place >= pages_->size()) throw Napi::RangeError::New(info.Env(), "place");
    return place;
  }

  uint32_t id_at(const Napi::CallbackInfo &info) {
    if (!listener_) throw Napi::Error::New(info.Env(), "The token server is closed.");
    if (!info[0].IsNumber()) throw Napi::TypeError::New(info.Env(), "connection must be a number");
    return info[0].As<Napi::Number>().Uint32Value();
  }

  // take(place, terms): a free place becomes a client's
  Napi::Value take(const Napi::CallbackInfo &info) {
    size_t place = place_at(info, 0);
    try {
      pages_->take(place, terms_at(info[1]), monotonic_ns());
    } catch (const std::system_error &error) {
      throw Napi::Error::New(info.Env(), error.what());
    }
    return info.Env().Undefined();
  }

  // admit(connection, place): whether the process is in the place now
  Napi::Value admit(const Napi::CallbackInfo &info) {
    size_t place = place_at(info, 1);
    return Napi::Boolean::New(info.Env(), pages_->is_taken(place) && listener_->admit(id_at(info), place));
  }

  // refuse(connection, isFull)
  Napi::Value refuse(const Napi::CallbackInfo &info) {
    listener_->refuse(id_at(info), info[1].ToBoolean() ? TOKENS_FULL : TOKENS_BAD_TICKET);
    return info.Env().Undefined();
  }

  // release(place): its processes can launch nothing any more
  Napi::Value release(const Napi::CallbackInfo &info) {
    size_t place = place_at(info, 0);
    listener_->release(place);
    return info.Env().Undefined();
  }

  // setMemoryCap(place, bytes)
  Napi::Value set_memory_cap(const Napi::CallbackInfo &info) {
    size_t place = place_at(info, 0);
    if (!info[1].IsNumber()) throw Napi::TypeError::New(info.Env(), "bytes must be a number");
    __atomic_store_n(&pages_->at(place).memory_cap, info[1].As<Napi::Number>().Int64Value(), __ATOMIC_RELAXED);
    return info.Env().Undefined();
  }

  // place(place): {taken, waits, spins, opened, memoryUsedBytes}
  Napi::Value place(const Napi::CallbackInfo &info) {
    const tokens_page &page = pages_->at(place_at(info, 0));
    // Whatever a client has written there; the sum stays a number.
    double used = 0;
    for (const int64_t &part : page.memory_used)
      used += static_cast<double>(std::clamp<int64_t>(__atomic_load_n(&part, __ATOMIC_RELAXED), 0, most_memory));
    Napi::Object result = Napi::Object::New(info.Env());
    result.Set("taken", static_cast<double>(plausible_blocks(__atomic_load_n(&page.taken, __ATOMIC_RELAXED))));
    result.Set("waits", __atomic_load_n(&page.waits, __ATOMIC_RELAXED));
    result.Set("spins", __atomic_load_n(&page.spins, __ATOMIC_RELAXED));
    result.Set("opened", __atomic_load_n(&page.opened, __ATOMIC_RELAXED));
    result.Set("memoryUsedBytes", used);
    return result;
  }

  // figures(): {ticks, repeated, silences, jitterMs: {p50, p99, max}, scheduling}
  Napi::Value figures(const Napi::CallbackInfo &info) {
    if (!ticker_) throw Napi::Error::New(info.Env(), "The token server is closed.");
    TickerFigures figures = ticker_->figures();
    Napi::Object jitter = Napi::Object::New(info.Env());
    jitter.Set("p50", figures.jitter50);
    jitter.Set("p99", figures.jitter99);
    jitter.Set("max", figures.jitter_max);
    Napi::Object result = Napi::Object::New(info.Env());
    result.Set("ticks", static_cast<double>(figures.ticks));
    result.Set("repeated", static_cast<double>(figures.repeated));
    result.Set("silences", static_cast<double>(figures.silences));
    result.Set("jitterMs", jitter);
    result.Set("scheduling", figures.scheduling);
    return result;
  }

  // close(): the threads end, the socket is removed; clients go on uncounted after a second
  Napi::Value close(const Napi::CallbackInfo &info) {
    end();
    return info.Env().Undefined();
  }

  std::unique_ptr<Pages> pages_;
  Napi::ThreadSafeFunction events_;
  Napi::ObjectReference board_; // the ticker's memory
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<Ticker> ticker_;
};

// waitTick(board, last): the tick, once it is not `last` any more or a second has passed; null once the server is closed
Napi::Value wait_tick(const Napi::CallbackInfo &info) {
  Board board = board_at(info[0], 1);
  if (!info[1].IsNumber()) throw Napi::TypeError::New(info.Env(), "last must be a number");
  int32_t last = info[1].As<Napi::Number>().Int32Value();
  // It returns now and then, so that Node can end the thread.
  if (board.word(TICK) == last) futex_wait(&board.word(TICK), last, 1000);
  if (board.word(STOPPED) != 0) return info.Env().Null();
  return Napi::Number::New(info.Env(), board.word(TICK));
}

Napi::Object initialize(Napi::Env env, Napi::Object exports) {
  Napi::Array columns = Napi::Array::New(env);
  for (uint32_t i = 0; i < column_count; i += 1) columns.Set(i, column_names[i]);
  exports.Set("columns", columns);
  exports.Set("headerWords", Napi::Number::New(env, HEADER_WORDS));
  exports.Set("waitTick", Napi::Function::New(env, wait_tick));
  exports.Set("TokenServer", TokenServer::define(env));
  return exports;
}

} // namespace
} // namespace gpuwhisk::tokens

static Napi::Object initialize_addon(Napi::Env env, Napi::Object exports) {
  return gpuwhisk::tokens::initialize(env, exports);
}
NODE_API_MODULE(gpuwhisk_tokens, initialize_addon)

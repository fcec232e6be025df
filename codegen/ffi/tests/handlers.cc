// Handlers of XLA's FFI, written as its documentation says, and compiled against the headers that jaxlib ships.
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <thread>

#include "xla/ffi/api/api.h"
#include "xla/ffi/api/c_api.h"
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

// Scalars, arrays, text and a dictionary, in one handler.
static ffi::Error Attributes(ffi::Buffer<ffi::F32> x, ffi::Result<ffi::Buffer<ffi::F32>> y, ffi::Span<const int64_t> axes,
                             ffi::Dictionary nested, float scale, std::string_view text, bool flip) {
  auto offset = nested.get<int32_t>("offset");
  if (offset.has_error()) return offset.error();
  if (text != "hello \"you\"") return ffi::Error::InvalidArgument("the text is another one");
  float sum = 0;
  for (int64_t axis : axes) sum += axis;
  for (size_t i = 0; i < x.element_count(); ++i) {
    float value = x.typed_data()[i] * scale + *offset + sum;
    y->typed_data()[i] = flip ? -value : value;
  }
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(attributes, Attributes,
                              ffi::Ffi::Bind()
                                  .Arg<ffi::Buffer<ffi::F32>>()
                                  .Ret<ffi::Buffer<ffi::F32>>()
                                  .Attr<ffi::Span<const int64_t>>("axes")
                                  .Attr<ffi::Dictionary>("nested")
                                  .Attr<float>("scale")
                                  .Attr<std::string_view>("text")
                                  .Attr<bool>("flip"));

// As many operands and results as there are.
static ffi::Error Reverse(ffi::RemainingArgs args, ffi::RemainingRets rets) {
  if (args.size() != rets.size()) return ffi::Error(ffi::ErrorCode::kOutOfRange, "not as many results as operands");
  for (size_t i = 0; i < args.size(); ++i) {
    auto from = args.get<ffi::AnyBuffer>(args.size() - 1 - i);
    auto to = rets.get<ffi::AnyBuffer>(i);
    if (!from || !to) return ffi::Error::Internal("a buffer is missing");
    if (from->element_type() == ffi::DataType::TOKEN) continue;
    std::memcpy((*to)->untyped_data(), from->untyped_data(), from->size_bytes());
  }
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(reverse, Reverse, ffi::Ffi::Bind().RemainingArgs().RemainingRets());

// Rows and columns as the layout has them: the sum of each column of a column-major matrix.
using Matrix = ffi::Buffer<ffi::F64, 2>;
using Vector = ffi::Buffer<ffi::F64, 1>;
static ffi::Error Columns(Matrix x, ffi::Result<Vector> y) {
  auto dims = x.dimensions();
  for (int64_t j = 0; j < dims[1]; ++j) {
    y->typed_data()[j] = 0;
    for (int64_t i = 0; i < dims[0]; ++i) y->typed_data()[j] += x.typed_data()[j * dims[0] + i];
  }
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(columns, Columns, ffi::Ffi::Bind().Arg<Matrix>().Ret<Vector>());

// A result that is its operand's memory.
static ffi::Error InPlace(ffi::Buffer<ffi::F32> x, ffi::Result<ffi::Buffer<ffi::F32>> y) {
  if (x.typed_data() != y->typed_data()) return ffi::Error::Internal("the result lies elsewhere");
  y->typed_data()[0] += 1;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(in_place, InPlace,
                              ffi::Ffi::Bind().Arg<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::F32>>());

// State: how often this call was executed.
static int32_t alive = 0;
struct Count {
  static ffi::TypeId id;
#if XLA_FFI_API_MINOR > 1
  static ffi::TypeInfo info;
#endif
  explicit Count(int32_t n) : n(n) { ++alive; }
  ~Count() { --alive; }
  int32_t n;
};
ffi::TypeId Count::id = {};
#if XLA_FFI_API_MINOR > 1
ffi::TypeInfo Count::info = ffi::MakeTypeInfo<Count>();
XLA_FFI_REGISTER_TYPE(XLA_FFI_GetApi(), "hlo_ffi_tests.Count", &Count::id, &Count::info);
#else
XLA_FFI_REGISTER_TYPE(XLA_FFI_GetApi(), "hlo_ffi_tests.Count.0.1", &Count::id);
#endif

static ffi::ErrorOr<std::unique_ptr<Count>> Instantiate(int32_t from) {
  if (from < 0) return ffi::Unexpected(ffi::Error::InvalidArgument("it counts from 0 at least"));
  return std::make_unique<Count>(from);
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(count_instantiate, Instantiate, ffi::Ffi::BindInstantiate().Attr<int32_t>("from"));
// Until 0.2 a handler has to take all attributes of the call.
static ffi::Error CountUp(Count* count, ffi::ResultBufferR0<ffi::S32> n, ffi::Dictionary) {
  *n->typed_data() = count->n++;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(count_execute, CountUp,
                              ffi::Ffi::Bind().Ctx<ffi::State<Count>>().Ret<ffi::BufferR0<ffi::S32>>().Attrs());
static ffi::Error Alive(ffi::ResultBufferR0<ffi::S32> n) {
  *n->typed_data() = alive;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(counts_alive, Alive, ffi::Ffi::Bind().Ret<ffi::BufferR0<ffi::S32>>());
XLA_FFI_REGISTER_HANDLER(XLA_FFI_GetApi(), "test.count", "Host",
                         (XLA_FFI_Handler_Bundle{count_instantiate, nullptr, nullptr, count_execute}));
XLA_FFI_REGISTER_HANDLER(XLA_FFI_GetApi(), "test.elsewhere", "CUDA", count_execute);

// The context: device, run, threads, memory.
static ffi::Error Context(int32_t device, ffi::RunId run, ffi::ThreadPool pool, ffi::ScratchAllocator scratch,
                          ffi::ResultBufferR0<ffi::S64> result) {
  auto memory = scratch.Allocate(1000, 128);
  if (!memory || reinterpret_cast<uintptr_t>(*memory) % 128 != 0) return ffi::Error::Internal("no scratch");
  std::memset(*memory, 1, 1000);
  if (pool.num_threads() < 1) return ffi::Error::Internal("no threads");
  *result->typed_data() = 1000 * run.run_id + device;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(context, Context,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::DeviceOrdinal>()
                                  .Ctx<ffi::RunId>()
                                  .Ctx<ffi::ThreadPool>()
                                  .Ctx<ffi::ScratchAllocator>()
                                  .Ret<ffi::BufferR0<ffi::S64>>());

// A result that comes later, or an error that does.
static ffi::Future Later(ffi::ThreadPool pool, ffi::BufferR0<ffi::F32> x, ffi::ResultBufferR0<ffi::F32> y, bool fails) {
  ffi::Promise promise;
  ffi::Future future(promise);
  auto* from = x.typed_data();
  auto* to = y->typed_data();
  pool.Schedule([from, to, fails, promise = std::make_shared<ffi::Promise>(std::move(promise))]() {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    *to = *from + 1;
    if (fails) {
      promise->SetError(ffi::Error(ffi::ErrorCode::kDataLoss, "it was lost on the way"));
    } else {
      promise->SetAvailable();
    }
  });
  return future;
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(later, Later,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::ThreadPool>()
                                  .Arg<ffi::BufferR0<ffi::F32>>()
                                  .Ret<ffi::BufferR0<ffi::F32>>()
                                  .Attr<bool>("fails"));

// The conventions from before.
struct XlaCustomCallStatus_;
extern "C" void XlaCustomCallStatusSetFailure(XlaCustomCallStatus_*, const char*, size_t);
extern "C" void original(void* out, const void** in) {
  for (int i = 0; i < 2; ++i) static_cast<float*>(out)[i] = static_cast<const float*>(in[0])[i] + static_cast<const float*>(in[1])[i];
}
extern "C" void original_tuple(void* out, const void** in) {
  void** outs = static_cast<void**>(out);
  static_cast<float*>(outs[0])[0] = static_cast<const float*>(in[0])[0];
  static_cast<float*>(outs[1])[0] = -static_cast<const float*>(in[0])[0];
}
extern "C" void with_status(void* out, const void** in, XlaCustomCallStatus_* status) {
  if (*static_cast<const float*>(in[0]) < 0) return XlaCustomCallStatusSetFailure(status, "it is negative", 14);
  *static_cast<float*>(out) = *static_cast<const float*>(in[0]);
}
extern "C" void unified(void* out, const void** in, const char* opaque, size_t length, XlaCustomCallStatus_* status) {
  *static_cast<int32_t*>(out) = static_cast<int32_t>(length) + (length ? opaque[0] : 0);
}

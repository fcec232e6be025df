// Handlers that throw, without any headers of XLA's: of the structs what they look at (docs/custom-calls.md).
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace {
struct extension { size_t size; int type; void* next; };
struct metadata { size_t size; size_t version_size; void* version_extensions; int major, minor; };
struct metadata_extension { extension base; metadata* about; };
struct frame { size_t size; extension* extensions; };

bool asks(frame* f) {
  if (f->extensions == nullptr || f->extensions->type != 1) return false;
  metadata* about = reinterpret_cast<metadata_extension*>(f->extensions)->about;
  about->major = 0;
  about->minor = 3;
  return true;
}

struct Counted {
  ~Counted() { ++destroyed; }
  static int destroyed;
};
int Counted::destroyed = 0;
}  // namespace

extern "C" int throws_destroyed() { return Counted::destroyed; }

extern "C" void* throws_standard(frame* f) {
  if (asks(f)) return nullptr;
  Counted counted;
  throw std::out_of_range("row 7 of 5");
}

extern "C" void* throws_number(frame* f) {
  if (asks(f)) return nullptr;
  throw 42;
}

// The convention from before.
extern "C" void throws_untyped(void*, const void**) { throw std::runtime_error("no room"); }

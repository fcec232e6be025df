/* Handlers in C without any headers of XLA's: the structs are written down here as docs/custom-calls.md says they lie. */
#include <stddef.h>
#include <stdint.h>

struct extension { size_t size; int type; void* next; };
struct version { size_t size; void* extensions; int major, minor; };
struct metadata { size_t size; struct version version; uint32_t traits; int64_t state_type; };
struct metadata_extension { struct extension base; struct metadata* metadata; };
struct buffer { size_t size; void* extensions; int type; void* data; int64_t rank; int64_t* dims; };
struct list { size_t size; void* extensions; int64_t count; int* types; void** values; };
struct attributes { size_t size; void* extensions; int64_t count; int* types; void** names; void** values; };
struct error_create { size_t size; void* extensions; const char* message; int code; };
struct api {
  size_t size; void* extensions; struct version version; const void* internal;
  void* (*error_create)(struct error_create*);
};
struct frame {
  size_t size; struct extension* extensions; const struct api* api; void* context; int stage;
  struct list args, rets; struct attributes attributes; void* future;
};

static void* fails(struct frame* frame, int code, const char* message) {
  struct error_create create = {sizeof(create), NULL, message, code};
  return frame->api->error_create(&create);
}

static int asks(struct frame* frame, int major, int minor) {
  if (frame->extensions == NULL || frame->extensions->type != 1) return 0;
  struct metadata* metadata = ((struct metadata_extension*)frame->extensions)->metadata;
  metadata->version.major = major;
  metadata->version.minor = minor;
  return 1;
}

void* plain_double(struct frame* frame) {
  if (asks(frame, 0, 3)) return NULL;
  if (frame->args.count != 1 || frame->rets.count != 1) return fails(frame, 3, "one operand and one result");
  struct buffer *x = frame->args.values[0], *y = frame->rets.values[0];
  int64_t elements = 1;
  for (int64_t d = 0; d < x->rank; ++d) elements *= x->dims[d];
  for (int64_t i = 0; i < elements; ++i) ((float*)y->data)[i] = 2 * ((float*)x->data)[i];
  return NULL;
}

/* The bytes of the shorter of two one-dimensional arrays, as they lie. */
void* plain_bytes(struct frame* frame) {
  if (asks(frame, 0, 3)) return NULL;
  if (frame->args.count != 1 || frame->rets.count != 1) return fails(frame, 3, "one operand and one result");
  struct buffer *x = frame->args.values[0], *y = frame->rets.values[0];
  int64_t bytes = x->dims[0] < y->dims[0] ? x->dims[0] : y->dims[0];
  for (int64_t i = 0; i < bytes; ++i) ((char*)y->data)[i] = ((char*)x->data)[i];
  return NULL;
}

void* plain_failing(struct frame* frame) {
  if (asks(frame, 0, 5)) return NULL;
  return fails(frame, 8, "there is nothing left");
}

void* plain_too_new(struct frame* frame) {
  asks(frame, 0, 99);
  return NULL;
}

void* plain_too_old(struct frame* frame) {
  asks(frame, 0, 0);
  return NULL;
}

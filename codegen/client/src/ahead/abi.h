#ifndef HLO_AHEAD_ABI_1
#define HLO_AHEAD_ABI_1
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif
/* Numbers that C has no type for, by their bits; complex numbers by their parts. */
typedef uint16_t hlo_ahead_f16;
typedef uint16_t hlo_ahead_bf16;
typedef uint8_t hlo_ahead_pred; /* 0 or 1 */
typedef uint8_t hlo_ahead_bits8; /* floats of up to 8 bits */
typedef struct hlo_ahead_c64 { float re, im; } hlo_ahead_c64;
typedef struct hlo_ahead_c128 { double re, im; } hlo_ahead_c128;
/* An argument or a result: dense, row-major. */
typedef struct hlo_ahead_array {
  const char *name;
  const char *element_type; /* XLA's name: "f32" */
  uint64_t element_type_number; /* XLA's PrimitiveType */
  uint64_t rank;
  const int64_t *dims;
  uint64_t bytes;
  uint64_t alias; /* of an argument: 0: it is overwritten, otherwise UINT64_MAX. Of a result: the argument that it is left in, or UINT64_MAX: none */
} hlo_ahead_array;
/* A step, as profiles count them. */
typedef struct hlo_ahead_step { const char *name; const char *kind; } hlo_ahead_step;
/* What an object is. */
typedef struct hlo_ahead_descriptor {
  uint64_t abi_version;
  const char *entry_point;
  const char *target;
  uint64_t argument_count;
  const hlo_ahead_array *arguments;
  uint64_t result_count;
  const hlo_ahead_array *results;
  uint64_t temporary_bytes;
  uint64_t constant_bytes;
  uint64_t alignment; /* of arguments, results and temporaries */
  uint64_t step_count;
  const hlo_ahead_step *steps;
  uint64_t profiles; /* 1: the object counts the cycles of its steps */
} hlo_ahead_descriptor;
/* Threads: run calls work(job, n) once with each n below chunks, on any of them, and returns when all calls have returned. */
typedef struct hlo_ahead_thread_pool {
  uint64_t threads; /* the caller included */
  void (*run)(void *context, uint64_t chunks, void (*work)(void *job, uint64_t chunk), void *job);
  void *context;
} hlo_ahead_thread_pool;
/* How to run; a null pointer is one of zeros. */
typedef struct hlo_ahead_run_options {
  uint64_t bytes; /* sizeof(hlo_ahead_run_options) */
  const hlo_ahead_thread_pool *thread_pool; /* null: the caller's thread alone */
  uint64_t *profile_counters; /* of each step the cycles so far are added to; null: they are not counted */
} hlo_ahead_run_options;
/* What a run returns. */
enum { HLO_AHEAD_OK = 0, HLO_AHEAD_MISSING = 1, HLO_AHEAD_MISALIGNED = 2, HLO_AHEAD_OTHER_VERSION = 3, HLO_AHEAD_DAMAGED = 4, HLO_AHEAD_DEFECT = 5 };
/* Of the run-time library, libhlo_ahead.a. */
hlo_ahead_thread_pool *hlo_ahead_thread_pool_create(uint64_t threads); /* 0: as many as there are cores */
void hlo_ahead_thread_pool_destroy(hlo_ahead_thread_pool *pool);
const char *hlo_ahead_status_message(int32_t status);
uint64_t hlo_ahead_abi_version(void);
#ifdef __cplusplus
}
#endif
#endif

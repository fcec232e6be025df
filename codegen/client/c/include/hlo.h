/* The C interface of the HLO reference compiler's runtime: clients, programs, buffers.
 *
 * Every function that can fail returns an error, or NULL. An error, and every object that a function gives, belongs to the caller, who destroys it; destroying NULL does nothing. Objects
 * may be used by several threads at once, and destroyed in any order. Strings that a function gives live as long as the object that they come from. No function keeps a pointer to the
 * caller's memory after it has returned.
 *
 * Functions are never removed within a major version; options structures grow at their end, and say their size.
 */
#ifndef HLO_H
#define HLO_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HLO_API_MAJOR 1
#define HLO_API_MINOR 2

typedef struct hlo_client hlo_client;
typedef struct hlo_executable hlo_executable;
typedef struct hlo_buffer hlo_buffer;
typedef struct hlo_error hlo_error;
typedef struct hlo_library hlo_library;

/* What kind of failure it is: the codes of PJRT and gRPC. */
typedef enum hlo_code {
  HLO_CANCELLED = 1,
  HLO_INVALID_ARGUMENT = 3,
  HLO_DEADLINE_EXCEEDED = 4,
  HLO_NOT_FOUND = 5,
  HLO_RESOURCE_EXHAUSTED = 8,
  HLO_FAILED_PRECONDITION = 9,
  HLO_ABORTED = 10,
  HLO_UNIMPLEMENTED = 12,
  HLO_INTERNAL = 13,
  HLO_UNAVAILABLE = 14,
  HLO_DATA_LOSS = 15
} hlo_code;

/* Element types: the numbers of XLA's PrimitiveType. */
typedef enum hlo_type {
  HLO_PRED = 1, HLO_S8 = 2, HLO_S16 = 3, HLO_S32 = 4, HLO_S64 = 5, HLO_U8 = 6, HLO_U16 = 7, HLO_U32 = 8, HLO_U64 = 9,
  HLO_F16 = 10, HLO_F32 = 11, HLO_F64 = 12, HLO_C64 = 15, HLO_BF16 = 16, HLO_C128 = 18
} hlo_type;

typedef struct hlo_client_options {
  size_t struct_size;          /* sizeof(hlo_client_options) */
  size_t threads;              /* 0: as many as there are cores */
  uint64_t memory_budget;      /* bytes; 0: no limit */
  const char *cache_directory; /* NULL: none */
} hlo_client_options;

typedef struct hlo_execute_options {
  size_t struct_size;      /* sizeof(hlo_execute_options) */
  const size_t *donated;   /* arguments that are given away */
  size_t donated_count;
  uint64_t fuel;           /* steps; 0: no limit */
  uint64_t timeout_ns;     /* 0: none */
  uint64_t rng_seed;
} hlo_execute_options;

/* The version of the library: HLO_API_MAJOR << 16 | HLO_API_MINOR of the header that it was built with. */
uint32_t hlo_api_version(void);

hlo_code hlo_error_code(const hlo_error *error);
const char *hlo_error_message(const hlo_error *error);
void hlo_error_destroy(hlo_error *error);

/* platform: "cpu" or "interpreter". options: NULL for defaults. */
hlo_error *hlo_client_create(const char *platform, const hlo_client_options *options, hlo_client **client);
void hlo_client_destroy(hlo_client *client);
/* Numbers about a client (compilations, cache hits, evictions, executions, bytes by owner), as a JSON object: as much of it as fits in `capacity` bytes with the 0 that ends it. *length is
 * the whole, without the 0. Since 1.1. */
hlo_error *hlo_client_metrics(hlo_client *client, char *text, size_t capacity, size_t *length);
/* Loads a shared library with handlers of XLA's FFI, which are custom calls of the client then: `target` is executed by the function `symbol` (or "instantiate:A+execute:B"); with both NULL,
 * the handlers that the library registers by itself. The library runs as the program does, and stays loaded. Since 1.1. */
hlo_error *hlo_client_load_library(hlo_client *client, const char *path, const char *target, const char *symbol);

/* Parses, verifies and compiles the text of an HLO module. */
hlo_error *hlo_compile(hlo_client *client, const char *text, size_t length, hlo_executable **executable);
/* Loads what `hlo compile` or hlo_executable_serialize wrote. It is machine code: trust it as you trust a program. */
hlo_error *hlo_load(hlo_client *client, const void *bytes, size_t length, hlo_executable **executable);
/* Compiles a program to bytes that can be kept; destroy them with hlo_bytes_destroy. */
hlo_error *hlo_compile_to_bytes(hlo_client *client, const char *text, size_t length, uint8_t **bytes,
                                size_t *bytes_length);
void hlo_bytes_destroy(uint8_t *bytes, size_t length);
void hlo_executable_destroy(hlo_executable *executable);
const char *hlo_executable_name(const hlo_executable *executable);
/* Array leaves of the parameters, and of the result. */
size_t hlo_executable_argument_count(const hlo_executable *executable);
size_t hlo_executable_result_count(const hlo_executable *executable);

/* Several functions in one artifact: found by name, called by ordinal (the position in which they were given). Constants that several of them have are stored and loaded once. Since 1.2. */
typedef struct hlo_function {
  const char *name;
  const char *text; /* of an HLO module */
  size_t length;
} hlo_function;

/* Compiles functions to bytes that can be kept; destroy them with hlo_bytes_destroy. */
hlo_error *hlo_library_compile_to_bytes(hlo_client *client, const hlo_function *functions, size_t count, uint8_t **bytes,
                                        size_t *bytes_length);
/* Loads them. It is machine code: trust it as you trust a program. */
hlo_error *hlo_library_load(hlo_client *client, const void *bytes, size_t length, hlo_library **library);
void hlo_library_destroy(hlo_library *library);
size_t hlo_library_count(const hlo_library *library);
/* NULL: there is none of this ordinal. */
const char *hlo_library_name(const hlo_library *library, size_t ordinal);
hlo_error *hlo_library_find(const hlo_library *library, const char *name, size_t *ordinal);
/* The executable of a function; its custom calls may call the library's other functions. */
hlo_error *hlo_library_function(const hlo_library *library, size_t ordinal, hlo_executable **executable);

/* Copies an array (dense, row-major) to the device. */
hlo_error *hlo_buffer_create(hlo_client *client, hlo_type type, const int64_t *dims, size_t rank, const void *bytes,
                             size_t length, hlo_buffer **buffer);
void hlo_buffer_destroy(hlo_buffer *buffer);
hlo_type hlo_buffer_type(const hlo_buffer *buffer);
size_t hlo_buffer_rank(const hlo_buffer *buffer);
const int64_t *hlo_buffer_dims(const hlo_buffer *buffer);
/* Waits until it is there; the error of the execution that was to make it. */
hlo_error *hlo_buffer_wait(const hlo_buffer *buffer);
/* Copies the array to the host: length is that of its bytes. */
hlo_error *hlo_buffer_read(const hlo_buffer *buffer, void *bytes, size_t length);

/* Executes: as many arguments and results as the executable has. options: NULL for defaults. On an error no result is given. */
hlo_error *hlo_execute(const hlo_executable *executable, hlo_buffer *const *arguments, size_t argument_count,
                       const hlo_execute_options *options, hlo_buffer **results, size_t result_count);
/* The same, and returns at once: results are there when hlo_buffer_wait returns. */
hlo_error *hlo_execute_async(const hlo_executable *executable, hlo_buffer *const *arguments, size_t argument_count,
                             const hlo_execute_options *options, hlo_buffer **results, size_t result_count);

#ifdef __cplusplus
}
#endif

#endif

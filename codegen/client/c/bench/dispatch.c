/* What an execution costs whoever calls: `add` of two scalars through hlo.h, and through any number of PJRT plugins (XLA:CPU's, for instance), in one program and in turns.
 *
 *   make bench-dispatch PJRT_PLUGINS="/path/to/plugin.so ..."
 *
 * Of the PJRT C API it declares the structs that it fills in, by itself; positions of functions are counted from the first.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hlo.h"

enum { ROUNDS = 40, EXECUTIONS = 20000, MOST_PLUGINS = 8 };

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e9 + t.tv_nsec;
}

/* hlo.h */

static const char SCALAR[] = "HloModule m\nENTRY e { x = f32[] parameter(0)  y = f32[] parameter(1)  ROOT s = f32[] add(x, y) }";

static void ok(hlo_error *error) {
  if (error == NULL) return;
  fprintf(stderr, "hlo: %s\n", hlo_error_message(error));
  exit(1);
}

static hlo_executable *executable;
static hlo_buffer *arguments[2];

static void prepare_hlo(void) {
  hlo_client *client;
  const float x = 1, y = 2;
  ok(hlo_client_create("cpu", NULL, &client));
  ok(hlo_compile(client, SCALAR, strlen(SCALAR), &executable));
  ok(hlo_buffer_create(client, HLO_F32, NULL, 0, &x, sizeof x, &arguments[0]));
  ok(hlo_buffer_create(client, HLO_F32, NULL, 0, &y, sizeof y, &arguments[1]));
}

static void run_hlo(int executions) {
  for (int i = 0; i < executions; i++) {
    hlo_buffer *result;
    ok(hlo_execute(executable, arguments, 2, NULL, &result, 1));
    hlo_buffer_destroy(result);
  }
}

/* The PJRT C API */

#define STRUCT(name, fields) struct name { size_t struct_size; void *extension_start; fields }
STRUCT(version, int32_t major; int32_t minor;);
STRUCT(error_args, void *error; const char *message; size_t message_size;);
STRUCT(event_args, void *event;);
STRUCT(client_create, const void *options; size_t num_options; void *callbacks[4]; void *client; void *more[2];);
STRUCT(devices, void *client; void *const *devices; size_t num_devices;);
STRUCT(program, const char *code; size_t code_size; const char *format; size_t format_size;);
STRUCT(compile, void *client; struct program *program; const char *options; size_t options_size; void *executable;);
STRUCT(from_host, void *client; const void *data; uint32_t type; const int64_t *dims; size_t num_dims; const int64_t *strides; size_t num_strides;
       uint32_t semantics; void *device; void *memory; const void *layout; void *done; void *buffer;);
STRUCT(execute_options, void *callbacks[2]; size_t counts[2]; int32_t launch_id; const int64_t *kept; size_t num_kept; void *context; void *call_location;
       size_t num_tasks; void *tasks[3]; uint8_t flag; void *output_callbacks; size_t num_output_callbacks;);
STRUCT(execute, void *executable; const struct execute_options *options; void *const *const *arguments; size_t num_devices; size_t num_args; void **const *results;
       void **done; void *device;);
STRUCT(buffer_args, void *buffer;);

enum { ERROR_DESTROY = 0, ERROR_MESSAGE = 1, INITIALIZE = 3, EVENT_DESTROY = 5, EVENT_AWAIT = 8, CLIENT_CREATE = 10, ADDRESSABLE_DEVICES = 16, COMPILE = 20, FROM_HOST = 22,
       EXECUTE = 55, BUFFER_DESTROY = 58, FIRST_FUNCTION = 40 };

typedef void *function(void *args);

struct plugin {
  const char *path;
  char *api;
  void *executable;
  void *arguments[2];
};

static function *of(const struct plugin *plugin, int number) {
  function *found;
  memcpy(&found, plugin->api + FIRST_FUNCTION + number * sizeof found, sizeof found);
  return found;
}

static void call(const struct plugin *plugin, int number, void *args) {
  void *error = of(plugin, number)(args);
  if (error == NULL) return;
  struct error_args message = {sizeof message, NULL, error, NULL, 0};
  of(plugin, ERROR_MESSAGE)(&message);
  fprintf(stderr, "%s: function %d: %.*s\n", plugin->path, number, (int)message.message_size, message.message);
  exit(1);
}

static void done(const struct plugin *plugin, void *event) {
  if (event == NULL) return;
  struct event_args args = {sizeof args, NULL, event};
  call(plugin, EVENT_AWAIT, &args);
  call(plugin, EVENT_DESTROY, &args);
}

static struct plugin load(const char *path) {
  struct plugin plugin = {path, NULL, NULL, {NULL, NULL}};
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
  }
  void *symbol = dlsym(library, "GetPjrtApi");
  char *(*get)(void);
  memcpy(&get, &symbol, sizeof get);
  plugin.api = get();
  size_t initialize[2] = {sizeof initialize, 0};
  call(&plugin, INITIALIZE, initialize);
  struct client_create client = {.struct_size = sizeof client};
  call(&plugin, CLIENT_CREATE, &client);
  struct devices devices = {.struct_size = sizeof devices, .client = client.client};
  call(&plugin, ADDRESSABLE_DEVICES, &devices);
  static const char code[] =
      "module @m { func.func public @main(%x: tensor<f32>, %y: tensor<f32>) -> tensor<f32> { %s = stablehlo.add %x, %y : tensor<f32>  func.return %s : tensor<f32> } }";
  struct program program = {sizeof program, NULL, code, sizeof code - 1, "mlir", 4};
  /* CompileOptionsProto: the default device, one replica, one partition. */
  static const char options[] = {0x1a, 15, 0x08, -1, -1, -1, -1, -1, -1, -1, -1, -1, 1, 0x20, 1, 0x28, 1};
  struct compile compile = {sizeof compile, NULL, client.client, &program, options, sizeof options, NULL};
  call(&plugin, COMPILE, &compile);
  plugin.executable = compile.executable;
  for (int i = 0; i < 2; i++) {
    const float value = 1 + i;
    struct from_host from = {.struct_size = sizeof from, .client = client.client, .data = &value, .type = HLO_F32, .device = devices.devices[0]};
    call(&plugin, FROM_HOST, &from);
    done(&plugin, from.done);
    plugin.arguments[i] = from.buffer;
  }
  return plugin;
}

/* With or without waiting for each result. */
static void run_plugin(const struct plugin *plugin, int executions, int waits) {
  static const int64_t kept[2] = {0, 1};
  struct execute_options options = {.struct_size = sizeof options, .kept = kept, .num_kept = 2};
  void *const *lists[1] = {plugin->arguments};
  for (int i = 0; i < executions; i++) {
    void *results[1] = {NULL}, *events[1] = {NULL};
    void **result_lists[1] = {results};
    struct execute execute = {sizeof execute, NULL, plugin->executable, &options, (void *const *const *)lists, 1, 2, result_lists, waits ? events : NULL, NULL};
    call(plugin, EXECUTE, &execute);
    if (waits) done(plugin, events[0]);
    struct buffer_args buffer = {sizeof buffer, NULL, results[0]};
    call(plugin, BUFFER_DESTROY, &buffer);
  }
}

static int ascending(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void say(const char *what, double *times) {
  qsort(times, ROUNDS, sizeof *times, ascending);
  printf("%-72s best %7.0f ns  median %7.0f ns\n", what, times[0], times[ROUNDS / 2]);
}

int main(int argc, char **argv) {
  int plugins = argc - 1 < MOST_PLUGINS ? argc - 1 : MOST_PLUGINS;
  struct plugin loaded[MOST_PLUGINS];
  static double ours[ROUNDS], waiting[MOST_PLUGINS][ROUNDS], calling[MOST_PLUGINS][ROUNDS];
  prepare_hlo();
  for (int p = 0; p < plugins; p++) loaded[p] = load(argv[p + 1]);
  for (int round = 0; round < ROUNDS; round++) {
    double start = now();
    run_hlo(EXECUTIONS);
    ours[round] = (now() - start) / EXECUTIONS;
    for (int p = 0; p < plugins; p++) {
      start = now();
      run_plugin(&loaded[p], EXECUTIONS / 4, 1);
      waiting[p][round] = (now() - start) / (EXECUTIONS / 4);
      start = now();
      run_plugin(&loaded[p], EXECUTIONS / 4, 0);
      calling[p][round] = (now() - start) / (EXECUTIONS / 4);
    }
  }
  say("hlo.h, with the result", ours);
  for (int p = 0; p < plugins; p++) {
    const char *name = strrchr(argv[p + 1], '/');
    char what[128];
    snprintf(what, sizeof what, "%s, waiting for the result", name ? name + 1 : argv[p + 1]);
    say(what, waiting[p]);
    snprintf(what, sizeof what, "%s, not waiting", name ? name + 1 : argv[p + 1]);
    say(what, calling[p]);
  }
  return 0;
}

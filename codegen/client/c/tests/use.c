/* Uses every function of hlo.h, in the order in which a program would; the last line of its output says ok. With an argument it times executions of a scalar addition. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hlo.h"

static void fail(const char *what) {
  printf("failed: %s\n", what);
  exit(1);
}

static void ok(hlo_error *error) {
  if (error != NULL) {
    printf("failed: code %d: %s\n", hlo_error_code(error), hlo_error_message(error));
    exit(1);
  }
}

static void fails(hlo_error *error, hlo_code code, const char *says) {
  if (error == NULL) fail("no error");
  if (hlo_error_code(error) != code || strstr(hlo_error_message(error), says) == NULL) {
    printf("failed: code %d: %s\n", hlo_error_code(error), hlo_error_message(error));
    exit(1);
  }
  hlo_error_destroy(error);
}

static const char PROGRAM[] =
    "HloModule updates, input_output_alias={ {0}: (0, {}, may-alias) }\n"
    "ENTRY e { x = f32[4] parameter(0)  y = f32[4] parameter(1)  s = f32[4] add(x, y)  n = s32[] constant(7)\n"
    "  ROOT t = (f32[4], s32[]) tuple(s, n) }";

static const char SCALAR[] = "HloModule m\nENTRY e { x = f32[] parameter(0)  y = f32[] parameter(1)  ROOT s = f32[] add(x, y) }";

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e9 + t.tv_nsec;
}

static void use(const char *platform) {
  hlo_client_options options = {sizeof options, 2, 1 << 20, NULL};
  hlo_client *client;
  ok(hlo_client_create(platform, &options, &client));
  hlo_executable *executable;
  ok(hlo_compile(client, PROGRAM, strlen(PROGRAM), &executable));
  if (strcmp(hlo_executable_name(executable), "updates") != 0) fail("name");
  if (hlo_executable_argument_count(executable) != 2 || hlo_executable_result_count(executable) != 2) fail("counts");
  const float x[4] = {1, 2, 3, 4}, y[4] = {10, 20, 30, 40};
  const int64_t dims[1] = {4};
  hlo_buffer *arguments[2], *results[2];
  ok(hlo_buffer_create(client, HLO_F32, dims, 1, x, sizeof x, &arguments[0]));
  ok(hlo_buffer_create(client, HLO_F32, dims, 1, y, sizeof y, &arguments[1]));
  ok(hlo_execute(executable, arguments, 2, NULL, results, 2));
  float sum[4];
  int32_t seven;
  ok(hlo_buffer_wait(results[0]));
  ok(hlo_buffer_read(results[0], sum, sizeof sum));
  ok(hlo_buffer_read(results[1], &seven, sizeof seven));
  for (int i = 0; i < 4; i++)
    if (sum[i] != x[i] + y[i]) fail("sum");
  if (seven != 7) fail("constant");
  if (hlo_buffer_type(results[0]) != HLO_F32 || hlo_buffer_rank(results[0]) != 1 || hlo_buffer_dims(results[0])[0] != 4)
    fail("shape");
  if (hlo_buffer_type(results[1]) != HLO_S32 || hlo_buffer_rank(results[1]) != 0) fail("shape of a scalar");
  fails(hlo_buffer_read(results[0], sum, 3), HLO_INVALID_ARGUMENT, "16 bytes");
  hlo_buffer_destroy(results[0]);
  hlo_buffer_destroy(results[1]);

  ok(hlo_execute_async(executable, arguments, 2, NULL, results, 2));
  ok(hlo_buffer_wait(results[0]));
  ok(hlo_buffer_read(results[0], sum, sizeof sum));
  if (sum[3] != 44) fail("asynchronous sum");
  hlo_buffer_destroy(results[0]);
  hlo_buffer_destroy(results[1]);

  const size_t donated[1] = {0};
  hlo_execute_options donate = {sizeof donate, donated, 1, 0, 0, 0};
  ok(hlo_execute(executable, arguments, 2, &donate, results, 2));
  hlo_buffer_destroy(results[0]);
  hlo_buffer_destroy(results[1]);
  fails(hlo_execute(executable, arguments, 2, NULL, results, 2), HLO_FAILED_PRECONDITION, "donated");
  fails(hlo_execute(executable, arguments, 1, NULL, results, 2), HLO_INVALID_ARGUMENT, "takes 2 arrays");
  fails(hlo_execute(executable, arguments, 2, NULL, results, 1), HLO_INVALID_ARGUMENT, "gives 2 arrays");

  hlo_buffer_destroy(arguments[0]);
  hlo_client_destroy(client);
  /* The program and the buffer keep what they need of the client. */
  if (hlo_buffer_rank(arguments[1]) != 1) fail("buffer after its client");
  hlo_buffer_destroy(arguments[1]);
  hlo_executable_destroy(executable);
}

static void bad_input(void) {
  hlo_client *client;
  hlo_executable *executable;
  hlo_buffer *buffer;
  const int64_t dims[1] = {-1};
  fails(hlo_client_create("tpu", NULL, &client), HLO_NOT_FOUND, "tpu");
  fails(hlo_client_create(NULL, NULL, &client), HLO_INVALID_ARGUMENT, "null");
  ok(hlo_client_create("cpu", NULL, &client));
  fails(hlo_compile(client, "nonsense", 8, &executable), HLO_INVALID_ARGUMENT, "does not parse");
  fails(hlo_compile(client, "\xff\xfe", 2, &executable), HLO_INVALID_ARGUMENT, "UTF-8");
  fails(hlo_compile(NULL, PROGRAM, sizeof PROGRAM - 1, &executable), HLO_INVALID_ARGUMENT, "null");
  fails(hlo_compile(client, NULL, 5, &executable), HLO_INVALID_ARGUMENT, "null");
  fails(hlo_compile(client, PROGRAM, sizeof PROGRAM - 1, NULL), HLO_INVALID_ARGUMENT, "nowhere");
  fails(hlo_load(client, "HLOEXE", 6, &executable), HLO_DATA_LOSS, "no compiled program");
  fails(hlo_buffer_create(client, HLO_F32, dims, 1, NULL, 0, &buffer), HLO_INVALID_ARGUMENT, "dimensions");
  fails(hlo_buffer_create(client, (hlo_type)99, NULL, 0, "abcd", 4, &buffer), HLO_INVALID_ARGUMENT, "element type 99");
  fails(hlo_buffer_create(client, HLO_F32, NULL, 0, "abc", 3, &buffer), HLO_INVALID_ARGUMENT, "3 bytes");
  hlo_client_destroy(client);
  hlo_client_destroy(NULL);
  hlo_executable_destroy(NULL);
  hlo_buffer_destroy(NULL);
  hlo_error_destroy(NULL);
}

static void keep(void) {
  hlo_client *client;
  hlo_executable *executable;
  uint8_t *bytes;
  size_t length;
  ok(hlo_client_create("cpu", NULL, &client));
  ok(hlo_compile_to_bytes(client, PROGRAM, strlen(PROGRAM), &bytes, &length));
  ok(hlo_load(client, bytes, length, &executable));
  if (hlo_executable_argument_count(executable) != 2) fail("what was loaded");
  hlo_executable_destroy(executable);
  bytes[length - 1] ^= 1;
  fails(hlo_load(client, bytes, length, &executable), HLO_DATA_LOSS, "checksum");
  hlo_bytes_destroy(bytes, length);
  hlo_client_destroy(client);
}

static void observe(void) {
  hlo_client *client;
  hlo_executable *executable;
  char text[4096], little[8];
  size_t length, again;
  ok(hlo_client_create("cpu", NULL, &client));
  ok(hlo_compile(client, SCALAR, strlen(SCALAR), &executable));
  ok(hlo_client_metrics(client, text, sizeof text, &length));
  if (length != strlen(text) || strstr(text, "\"compilations\":1,") == NULL) fail(text);
  ok(hlo_client_metrics(client, little, sizeof little, &again));
  if (strlen(little) != sizeof little - 1 || strncmp(text, little, sizeof little - 1) != 0) fail(little);
  ok(hlo_client_metrics(client, NULL, 0, &again));
  fails(hlo_client_metrics(client, NULL, 5, &again), HLO_INVALID_ARGUMENT, "nowhere");
  fails(hlo_client_load_library(client, "./nowhere.so", NULL, NULL), HLO_NOT_FOUND, "nowhere.so");
  fails(hlo_client_load_library(client, NULL, NULL, NULL), HLO_INVALID_ARGUMENT, "null");
  hlo_executable_destroy(executable);
  hlo_client_destroy(client);
}

static void library(void) {
  const char *increment = "HloModule a\nENTRY e { x = f32[] parameter(0)  c = f32[] constant(1)  ROOT r = f32[] add(x, c) }";
  const char *square = "HloModule b\nENTRY e { x = f32[] parameter(0)  ROOT r = f32[] multiply(x, x) }";
  const hlo_function functions[2] = {{"increment", increment, strlen(increment)}, {"square", square, strlen(square)}};
  const hlo_function twice[2] = {functions[0], functions[0]};
  const hlo_function bad[1] = {{"bad", "HloModule", 9}};
  hlo_client *client;
  hlo_library *loaded;
  hlo_executable *executable;
  hlo_buffer *argument, *result;
  uint8_t *bytes;
  size_t length, ordinal;
  const float x = 3;
  float y;
  ok(hlo_client_create("cpu", NULL, &client));
  fails(hlo_library_compile_to_bytes(client, twice, 2, &bytes, &length), HLO_INVALID_ARGUMENT, "two functions are called increment");
  fails(hlo_library_compile_to_bytes(client, bad, 1, &bytes, &length), HLO_INVALID_ARGUMENT, "bad: ");
  fails(hlo_library_compile_to_bytes(client, NULL, 1, &bytes, &length), HLO_INVALID_ARGUMENT, "null");
  fails(hlo_library_compile_to_bytes(client, functions, 2, NULL, &length), HLO_INVALID_ARGUMENT, "nowhere");
  ok(hlo_library_compile_to_bytes(client, functions, 2, &bytes, &length));
  fails(hlo_library_load(client, bytes, length - 1, &loaded), HLO_DATA_LOSS, "damaged");
  ok(hlo_library_load(client, bytes, length, &loaded));
  hlo_bytes_destroy(bytes, length);
  if (hlo_library_count(loaded) != 2 || strcmp(hlo_library_name(loaded, 1), "square") != 0) fail("functions");
  if (hlo_library_name(loaded, 2) != NULL || hlo_library_count(NULL) != 0) fail("no function");
  fails(hlo_library_find(loaded, "cube", &ordinal), HLO_NOT_FOUND, "cube");
  fails(hlo_library_function(loaded, 2, &executable), HLO_NOT_FOUND, "there is no function 2");
  ok(hlo_library_find(loaded, "square", &ordinal));
  ok(hlo_library_function(loaded, ordinal, &executable));
  hlo_library_destroy(loaded);
  hlo_library_destroy(NULL);
  ok(hlo_buffer_create(client, HLO_F32, NULL, 0, &x, sizeof x, &argument));
  ok(hlo_execute(executable, &argument, 1, NULL, &result, 1));
  ok(hlo_buffer_read(result, &y, sizeof y));
  if (y != 9) fail("square");
  hlo_buffer_destroy(result);
  hlo_buffer_destroy(argument);
  hlo_executable_destroy(executable);
  hlo_client_destroy(client);
}

static void measure(int executions) {
  hlo_client *client;
  hlo_executable *executable;
  hlo_buffer *arguments[2], *result;
  const float x = 1, y = 2;
  ok(hlo_client_create("cpu", NULL, &client));
  ok(hlo_compile(client, SCALAR, strlen(SCALAR), &executable));
  ok(hlo_buffer_create(client, HLO_F32, NULL, 0, &x, sizeof x, &arguments[0]));
  ok(hlo_buffer_create(client, HLO_F32, NULL, 0, &y, sizeof y, &arguments[1]));
  double best = 1e30;
  for (int round = 0; round < 20; round++) {
    double start = now();
    for (int i = 0; i < executions; i++) {
      ok(hlo_execute(executable, arguments, 2, NULL, &result, 1));
      hlo_buffer_destroy(result);
    }
    double each = (now() - start) / executions;
    if (each < best) best = each;
  }
  printf("%.0f ns an execution\n", best);
  hlo_buffer_destroy(arguments[0]);
  hlo_buffer_destroy(arguments[1]);
  hlo_executable_destroy(executable);
  hlo_client_destroy(client);
}

int main(int argc, char **argv) {
  if (hlo_api_version() != (HLO_API_MAJOR << 16 | HLO_API_MINOR)) fail("version");
  if (argc > 1) {
    measure(atoi(argv[1]));
  } else {
    use("cpu");
    use("interpreter");
    bad_input();
    keep();
    observe();
    library();
  }
  puts("ok");
  return 0;
}

/* Runs every program of a list on arguments from a file, and writes their results to another: programs in order, arrays in order, bytes as they lie. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "programs.h"

static void *aligned(uint64_t bytes) {
  char *block = calloc(bytes + 128, 1);
  if (!block) exit(9);
  return block + (64 - (uintptr_t)block % 64) % 64;
}

int main(int count, char **words) {
  FILE *in = count == 3 ? fopen(words[1], "rb") : NULL, *out = count == 3 ? fopen(words[2], "wb") : NULL;
  if (!in || !out) return 8;
  for (size_t p = 0; p < sizeof programs / sizeof programs[0]; ++p) {
    const hlo_ahead_descriptor *d = programs[p].descriptor;
    void **arguments = calloc(d->argument_count + 1, sizeof *arguments);
    void **results = calloc(d->result_count + 1, sizeof *results);
    for (uint64_t i = 0; i < d->argument_count; ++i) {
      arguments[i] = aligned(d->arguments[i].bytes);
      if (fread(arguments[i], 1, d->arguments[i].bytes, in) != d->arguments[i].bytes) return 7;
    }
    for (uint64_t i = 0; i < d->result_count; ++i)
      results[i] = d->results[i].alias == UINT64_MAX ? aligned(d->results[i].bytes) : arguments[d->results[i].alias];
    int32_t status = programs[p].run(arguments, results, aligned(d->temporary_bytes), NULL);
    if (status) {
      printf("%s: status %d\n", d->entry_point, (int)status);
      return 6;
    }
    for (uint64_t i = 0; i < d->result_count; ++i) fwrite(results[i], 1, d->results[i].bytes, out);
  }
  fclose(out);
  puts("ok");
  return 0;
}

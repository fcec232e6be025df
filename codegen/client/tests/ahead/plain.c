/* Uses the C interface of an object alone: table, run, statuses. */
#include "plain.h"

#include <stdio.h>
#include <string.h>

_Alignas(64) static float x[6], y[6];
_Alignas(64) static float sum[64], doubled[64];
_Alignas(64) static char temporaries[PLAIN_TEMPORARY_BYTES + 64];

int main(void) {
  const hlo_ahead_descriptor *d = &plain_descriptor;
  printf("%s abi %d: %d arguments, %d results\n", d->entry_point, (int)d->abi_version, (int)d->argument_count, (int)d->result_count);
  for (uint64_t i = 0; i < d->argument_count; ++i) {
    const hlo_ahead_array *a = &d->arguments[i];
    printf("argument %s %s rank %d bytes %d\n", a->name, a->element_type, (int)a->rank, (int)a->bytes);
  }
  if (d->arguments[0].dims[0] != 2 || d->arguments[0].dims[1] != 3 || d->temporary_bytes != PLAIN_TEMPORARY_BYTES || d->alignment != PLAIN_ALIGNMENT) return 1;
  for (int i = 0; i < 6; ++i) x[i] = (float)i, y[i] = 0.5f;
  void *arguments[PLAIN_ARGUMENT_COUNT] = {x, y};
  void *results[PLAIN_RESULT_COUNT] = {sum, doubled};
  if (plain_run(arguments, results, temporaries, NULL) != HLO_AHEAD_OK) return 2;
  for (int i = 0; i < 6; ++i) printf("%a ", (double)sum[i]);
  printf("| %a\n", (double)doubled[0]);
  /* Pointers that are wrong are found before anything is written. */
  memset(sum, 0, sizeof sum);
  arguments[1] = NULL;
  if (plain_run(arguments, results, temporaries, NULL) != HLO_AHEAD_MISSING) return 3;
  arguments[1] = (char *)y + 4;
  if (plain_run(arguments, results, temporaries, NULL) != HLO_AHEAD_MISALIGNED) return 4;
  if (sum[5] != 0) return 5;
  hlo_ahead_run_options options = {sizeof options, NULL, NULL};
  arguments[PLAIN_ARGUMENT_y] = y;
  if (plain_run(arguments, results, temporaries, &options) != HLO_AHEAD_OK || sum[5] == 0) return 6;
  puts("ok");
  return 0;
}

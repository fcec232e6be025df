// Uses every function of a class.
#include "model.h"

#include <cmath>
#include <cstdio>
#include <cstring>

#define EXPECT(condition) \
  if (!(condition)) return std::printf("line %d: %s\n", __LINE__, #condition), 1

static int chunks_run = 0;
static void run_alone(void *, uint64_t chunks, void (*work)(void *, uint64_t), void *job) {
  for (uint64_t n = chunks; n > 0; --n, ++chunks_run) work(job, n - 1);
}

int main() {
  typedef demo::inner::Model Model;
  const size_t args = Model::kNumArgs, variables = Model::kNumVariables, results = Model::kNumResults;
  EXPECT(args == 4 && variables == 2 && results == 3);
  EXPECT(Model::ArgSize(0) == 24 && Model::ResultSize(1) == 4 && Model::StaticData().argument_count == 4);
  // Names and numbers.
  EXPECT(Model::LookupArgIndex("x") == 0 && Model::LookupArgIndex("none") == -1 && Model::LookupArgIndex("steps") == -1);
  EXPECT(Model::LookupVariableIndex("steps") == 2 && Model::LookupVariableIndex("scale") == 3);
  EXPECT(Model::LookupResultIndex("y") == 0 && !std::strcmp(Model::GetResultName(0), "y"));
  EXPECT(!std::strcmp(Model::GetArgName(0), "x") && !Model::GetArgName(1) && !Model::GetArgName(-1) && !Model::GetVariableName(0));
  EXPECT(!std::strcmp(Model::ProgramShape(), "(f32[2,3], f32[2,3], s32[], f32[]) -> (f32[2,3], s32[], f32[])"));
  Model model;
  EXPECT(model.arg0_size() == 24 && model.arg0_count() == 6 && model.arg_x_count() == 6 && model.result_y_size() == 24);
  for (size_t i = 0; i < 2; ++i)
    for (size_t j = 0; j < 3; ++j) model.arg_x(i, j) = float(i * 3 + j), model.arg1(i, j) = 1.0f;
  *model.var_scale_data() = 2.0f;
  model.var_steps() = 7;
  EXPECT(model.Run() && model.error_msg().empty() && model.status() == 0);
  const Model &seen = model;
  for (size_t i = 0; i < 6; ++i) EXPECT(seen.result_y_data()[i] == float(i) * 2.0f + 1.0f);
  EXPECT(seen.result0(1, 2) == 11.0f && seen.arg_x(1, 2) == 5.0f);
  // A variable is updated in its place, of which the result is another name; a constant result is there.
  EXPECT(model.var_steps() == 8 && model.result1() == 8 && model.result1_data() == model.var_steps_data());
  EXPECT(model.result2() == 42.0f && model.var_scale() == 2.0f);
  EXPECT(model.Run() && model.var_steps() == 9);
  // Profiles.
  EXPECT(Model::HasProfile() && model.profile_counters_size() > 0);
  uint64_t cycles = 0;
  for (size_t i = 0; i < model.profile_counters_size(); ++i) {
    EXPECT(std::strlen(Model::hlo_profile_printer_data()[i].name) > 0);
    cycles += model.profile_counters()[i];
  }
  EXPECT(cycles > 0);
  // Memory of somebody else's, threads of somebody else's.
  Model lent(Model::AllocMode::RESULTS_PROFILES_AND_TEMPS_ONLY);
  EXPECT(!lent.Run() && lent.error_msg() == "an argument was not set" && lent.status() == HLO_AHEAD_MISSING);
  lent.set_arg_x_data(model.arg_x_data());
  lent.set_arg1_data(model.arg1_data());
  lent.set_var_scale_data(model.var_scale_data());
  lent.set_arg_data(2, model.arg_data(2));
  alignas(64) float other[16] = {};
  lent.set_result_data(0, other);
  hlo_ahead_thread_pool pool = {4, run_alone, nullptr};
  lent.set_thread_pool(&pool);
  EXPECT(lent.thread_pool() == &pool && lent.Run() && other[5] == 11.0f && model.var_steps() == 10);
  EXPECT(lent.result_data(0) == other && lent.result_data(1) == model.arg_data(2));
  lent.set_arg_x_data(reinterpret_cast<char *>(other) + 4);
  EXPECT(!lent.Run() && lent.error_msg() == "an argument is not aligned to 64 bytes");
  std::puts("ok");
  return 0;
}

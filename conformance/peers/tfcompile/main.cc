// Runs a compiled program, made by tfcompile or by `hlo compile`, whose classes have the same surface.
//
//     main ARGUMENTS RESULTS SECONDS
//
// reads the arguments one after another, runs it once and writes the results so; then runs it for so long, at least ten times, and prints the nanoseconds of each run.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include MODEL_HEADER

#ifdef PEER
static size_t result_size(MODEL_CLASS &model, size_t n) { return model.result_size(n); }
#else
static size_t result_size(MODEL_CLASS &, size_t n) { return MODEL_CLASS::ResultSize(n); }
#endif

static double now() {
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int main(int count, char **words) {
  if (count != 4) return 2;
  MODEL_CLASS model;
  std::FILE *in = std::fopen(words[1], "rb"), *out = std::fopen(words[2], "wb");
  if (!in || !out) return 2;
  for (size_t n = 0; n < MODEL_CLASS::kNumArgs; ++n)
    if (std::fread(model.arg_data(n), 1, MODEL_CLASS::ArgSize(n), in) != static_cast<size_t>(MODEL_CLASS::ArgSize(n))) return 2;
  if (!model.Run()) return 1;
  for (size_t n = 0; n < MODEL_CLASS::kNumResults; ++n) std::fwrite(model.result_data(n), 1, result_size(model, n), out);
  std::fclose(out);
  std::vector<double> times;
  times.reserve(1 << 20);
  const double end = now() + std::atof(words[3]) * 1e9;
  for (double before = now(); (before < end || times.size() < 10) && times.size() < times.capacity();) {
    if (!model.Run()) return 1;
    const double after = now();
    times.push_back(after - before);
    before = after;
  }
  for (double time : times) std::printf("%.0f\n", time);
}

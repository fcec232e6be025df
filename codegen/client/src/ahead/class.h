
#ifdef __cplusplus
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#ifndef HLO_AHEAD_CHECK
/* Bounds of accessors. Define HLO_AHEAD_NO_CHECKS to leave them out. */
#ifdef HLO_AHEAD_NO_CHECKS
#define HLO_AHEAD_CHECK(condition) ((void)0)
#else
#define HLO_AHEAD_CHECK(condition) \
  ((condition) ? (void)0 : (std::fprintf(stderr, "%s:%d: out of bounds: %s\n", __FILE__, __LINE__, #condition), std::abort()))
#endif
#endif
@OPEN@
/* One set of buffers of the program, used by one thread at a time; copies of the object's code there are none. */
class @CLASS@ final {
 public:
  /* What the constructor allocates: everything, or what is not the arguments (variables are arguments), which are then given by set_..._data. */
  enum class AllocMode { ARGS_VARIABLES_RESULTS_PROFILES_AND_TEMPS, RESULTS_PROFILES_AND_TEMPS_ONLY };

  static constexpr size_t kNumArgs = @ARGS@;
  static constexpr size_t kNumVariables = @VARIABLES@;
  static constexpr size_t kNumResults = @RESULTS@;
  static constexpr size_t kTempBytes = @TEMPS@;
  static constexpr size_t kAlignment = 64;

  static const hlo_ahead_descriptor &StaticData() { return @ENTRY@_descriptor; }
  static size_t ArgSize(size_t index) { HLO_AHEAD_CHECK(Below(index, kNumArgs)); return static_cast<size_t>(StaticData().arguments[index].bytes); }
  static size_t ResultSize(size_t index) { HLO_AHEAD_CHECK(Below(index, kNumResults)); return static_cast<size_t>(StaticData().results[index].bytes); }

  explicit @CLASS@(AllocMode mode = AllocMode::ARGS_VARIABLES_RESULTS_PROFILES_AND_TEMPS) {
    const hlo_ahead_descriptor &d = StaticData();
    const bool all = mode == AllocMode::ARGS_VARIABLES_RESULTS_PROFILES_AND_TEMPS;
    size_t bytes = Padded(static_cast<size_t>(d.temporary_bytes)) + kAlignment;
    for (size_t i = 0; all && i < d.argument_count; ++i) bytes += Padded(ArgSize(i));
    for (size_t i = 0; i < d.result_count; ++i) bytes += d.results[i].alias == UINT64_MAX ? Padded(ResultSize(i)) : 0;
    block_ = std::calloc(bytes, 1);
    if (!block_) throw std::bad_alloc();
    char *next = static_cast<char *>(block_);
    next += (kAlignment - reinterpret_cast<uintptr_t>(next) % kAlignment) % kAlignment;
    for (size_t i = 0; i < d.argument_count; ++i) {
      args_[i] = all ? next : nullptr;
      if (all) next += Padded(ArgSize(i));
    }
    for (size_t i = 0; i < d.result_count; ++i) {
      results_[i] = nullptr;
      if (d.results[i].alias != UINT64_MAX) continue;
      results_[i] = next;
      next += Padded(ResultSize(i));
    }
    temps_ = next;
    options_.bytes = sizeof options_;
    options_.thread_pool = nullptr;
    options_.profile_counters = nullptr;
    if (d.profiles) {
      counters_ = new uint64_t[d.step_count + 1]();
      options_.profile_counters = counters_;
    }
  }
  ~@CLASS@() {
    delete[] counters_;
    std::free(block_);
  }
  @CLASS@(const @CLASS@ &) = delete;
  @CLASS@ &operator=(const @CLASS@ &) = delete;

  /* Runs the program. False: error_msg() says why. Arguments and results must not overlap. */
  bool Run() {
    status_ = @ENTRY@_run(args_, results_, temps_, &options_);
    return status_ == HLO_AHEAD_OK;
  }
  int32_t status() const { return status_; }
  std::string error_msg() const {
    switch (status_) {
      case HLO_AHEAD_OK: return "";
      case HLO_AHEAD_MISSING: return "an argument was not set";
      case HLO_AHEAD_MISALIGNED: return "an argument is not aligned to 64 bytes";
      case HLO_AHEAD_OTHER_VERSION: return "the object was compiled for another version of the run-time library";
      case HLO_AHEAD_DAMAGED: return "the object is damaged";
      default: return "the run-time library went wrong";
    }
  }
  /* Whose threads kernels may use; null: the caller's alone. The bits of results do not depend on it. */
  void set_thread_pool(const hlo_ahead_thread_pool *pool) { options_.thread_pool = pool; }
  const hlo_ahead_thread_pool *thread_pool() const { return options_.thread_pool; }

  /* Arguments and results by number. */
  void *arg_data(size_t index) { HLO_AHEAD_CHECK(Below(index, kNumArgs)); return args_[index]; }
  const void *arg_data(size_t index) const { HLO_AHEAD_CHECK(Below(index, kNumArgs)); return args_[index]; }
  void set_arg_data(size_t index, const void *data) { HLO_AHEAD_CHECK(Below(index, kNumArgs)); args_[index] = const_cast<void *>(data); }
  void *result_data(size_t index) { HLO_AHEAD_CHECK(Below(index, kNumResults)); return Result(index); }
  const void *result_data(size_t index) const { HLO_AHEAD_CHECK(Below(index, kNumResults)); return Result(index); }
  /* Has a run leave a result elsewhere (not one that is left in an argument). */
  void set_result_data(size_t index, void *data) { HLO_AHEAD_CHECK(Below(index, kNumResults)); results_[index] = data; }

  /* Numbers by name, and names by number; -1 and null: there is none. */
  static int LookupArgIndex(const std::string &name) { return Lookup(ArgNames(), kNumArgs, name); }
  static int LookupVariableIndex(const std::string &name) { return Lookup(VariableNames(), kNumArgs, name); }
  static int LookupResultIndex(const std::string &name) { return Lookup(ResultNames(), kNumResults, name); }
  static const char *GetArgName(int index) { return Name(ArgNames(), kNumArgs, index); }
  static const char *GetVariableName(int index) { return Name(VariableNames(), kNumArgs, index); }
  static const char *GetResultName(int index) { return Name(ResultNames(), kNumResults, index); }

  /* The program's parameters and result, as HLO text. */
  static const char *ProgramShape() { return @SHAPE@; }

  /* Profiles, of objects that were compiled with --profile: cycles of each step, added up over the runs. */
  static bool HasProfile() { return StaticData().profiles != 0; }
  size_t profile_counters_size() const { return HasProfile() ? static_cast<size_t>(StaticData().step_count) : 0; }
  const uint64_t *profile_counters() const { return counters_; }
  static const hlo_ahead_step *hlo_profile_printer_data() { return StaticData().steps; }

@ACCESSORS@
 private:
  static bool Below(size_t index, size_t count) { return index < count; }
  static size_t Padded(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }
  void *Result(size_t index) const {
    const uint64_t alias = StaticData().results[index].alias;
    return alias == UINT64_MAX ? results_[index] : args_[alias];
  }
  static int Lookup(const char *const *names, size_t count, const std::string &name) {
    for (size_t i = 0; i < count; ++i)
      if (names[i] && name == names[i]) return static_cast<int>(i);
    return -1;
  }
  static const char *Name(const char *const *names, size_t count, int index) {
    return index >= 0 && static_cast<size_t>(index) < count ? names[index] : nullptr;
  }
  static const char *const *ArgNames() { static const char *const names[] = {@ARG_NAMES@nullptr}; return names; }
  static const char *const *VariableNames() { static const char *const names[] = {@VARIABLE_NAMES@nullptr}; return names; }
  static const char *const *ResultNames() { static const char *const names[] = {@RESULT_NAMES@nullptr}; return names; }

  void *block_ = nullptr;
  void *args_[kNumArgs + 1] = {};
  void *results_[kNumResults + 1] = {};
  void *temps_ = nullptr;
  uint64_t *counters_ = nullptr;
  hlo_ahead_run_options options_;
  int32_t status_ = HLO_AHEAD_OK;
};
@CLOSE@
#endif

// Trains a classifier of digits that are no digits: the class of an image is where it is bright.
#include <cstdio>
#include <cstring>

#include "train.h"

int main() {
  demo::Train step;
  unsigned state = 1;
  auto random = [&]() { return state = state * 1664525u + 1013904223u, float(state >> 8) / float(1 << 24) - 0.5f; };
  for (size_t i = 0; i < step.arg_w0_count(); ++i) step.arg_w0_data()[i] = random() * 0.1f;
  for (size_t i = 0; i < step.arg_w1_count(); ++i) step.arg_w1_data()[i] = random() * 0.1f;
  for (size_t i = 0; i < step.arg_w2_count(); ++i) step.arg_w2_data()[i] = random() * 0.1f;
  for (size_t image = 0; image < 128; ++image) {
    int label = int(image % 10);
    step.arg_labels(image) = label;
    for (size_t p = 0; p < 784; ++p) step.arg_images(image, p) = random() + (p / 79 == size_t(label) ? 1.0f : 0.0f);
  }
  float first = 0;
  for (int n = 0; n < 4; ++n) {
    if (!step.Run()) return std::puts(step.error_msg().c_str()), 1;
    if (n == 0) first = step.result_loss();
    std::memcpy(step.arg_w0_data(), step.result1_data(), step.arg_w0_size());
    std::memcpy(step.arg1_data(), step.result2_data(), step.arg1_size());
    std::memcpy(step.arg_w1_data(), step.result3_data(), step.arg_w1_size());
    std::memcpy(step.arg3_data(), step.result4_data(), step.arg3_size());
    std::memcpy(step.arg_w2_data(), step.result5_data(), step.arg_w2_size());
    std::memcpy(step.arg5_data(), step.result6_data(), step.arg5_size());
  }
  std::printf("loss %f, then %f\n", double(first), double(step.result_loss()));
  return step.result_loss() < first ? (std::puts("ok"), 0) : 1;
}

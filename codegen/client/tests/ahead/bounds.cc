// An index that is out of bounds ends the program.
#include "model.h"

int main() {
  demo::inner::Model model;
  return static_cast<int>(model.arg_x(1, 3));
}

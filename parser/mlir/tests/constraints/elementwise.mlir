// expected: V0701 stablehlo.cbrt: (C1) the result is tensor<3xf32>, not tensor<2xf32>
func.func @main(%a0: tensor<2xf32>) -> (tensor<3xf32>) {
  %r = "stablehlo.cbrt"(%a0) : (tensor<2xf32>) -> tensor<3xf32>
  return %r : tensor<3xf32>
}

// -----

// expected: V0701 stablehlo.cosine: (C1) the result is tensor<3xf32>, not tensor<2xf32>
func.func @main(%a0: tensor<2xf32>) -> (tensor<3xf32>) {
  %r = "stablehlo.cosine"(%a0) : (tensor<2xf32>) -> tensor<3xf32>
  return %r : tensor<3xf32>
}

// -----

// expected: V0701 stablehlo.exponential: (C1) the result is tensor<3xf32>, not tensor<2xf32>
func.func @main(%a0: tensor<2xf32>) -> (tensor<3xf32>) {
  %r = "stablehlo.exponential"(%a0) : (tensor<2xf32>) -> tensor<3xf32>
  return %r : tensor<3xf32>
}

// -----

// expected: V0701 stablehlo.exponential_minus_one: (C1) the result is tensor<3xf32>, not tensor<2xf32>
func.func @main(%a0: tensor<2xf32>) -> (tensor<3xf32>) {
  %r = "stablehlo.exponential_minus_one"(%a0) : (tensor<2xf32>) -> tensor<3xf32>
  return %r : tensor<3xf32>
}

// -----

// expected: V0701 stablehlo.log: (C1) the result is tensor<3xf32>, not tensor<2xf32>
func.func @main(%a0: tensor<2xf32>) -> (tensor<3xf32>) {
  %r = "stablehlo.log"(%a0) : (tensor<2xf32>) -> tensor<3xf32>
  return %r : tensor<3xf32>
}

// -----

// expected: V0701 stablehlo.log_plus_one: (C1) the result is tensor<3xf32>, not tensor<2xf32>
func.func @main(%a0: tensor<2xf32>) -> (tensor<3xf32>) {
  %r = "stablehlo.log_plus_one"(%a0) : (tensor<2xf32>) -> tensor<3xf32>
  return %r : tensor<3xf32>
}

// -----

// expected: V0701 stablehlo.logistic: (C1) the result is tensor<3xf32>, not tensor<2xf32>
func.func @main(%a0: tensor<2xf32>) -> (tensor<3xf32>) {
  %r = "stablehlo.logistic"(%a0) : (tensor<2xf32>) -> tensor<3xf32>
  return %r : tensor<3xf32>
}

// -----

// expected: V0701 stablehlo.rsqrt: (C1) the result is tensor<3xf32>, not tensor<2xf32>
func.func @main(%a0: tensor<2xf32>) -> (tensor<3xf32>) {
  %r = "stablehlo.rsqrt"(%a0) : (tensor<2xf32>) -> tensor<3xf32>
  return %r : tensor<3xf32>
}

// -----

// expected: V0701 stablehlo.sine: (C1) the result is tensor<3xf32>, not tensor<2xf32>
func.func @main(%a0: tensor<2xf32>) -> (tensor<3xf32>) {
  %r = "stablehlo.sine"(%a0) : (tensor<2xf32>) -> tensor<3xf32>
  return %r : tensor<3xf32>
}

// -----

// expected: V0701 stablehlo.tan: (C1) the result is tensor<3xf32>, not tensor<2xf32>
func.func @main(%a0: tensor<2xf32>) -> (tensor<3xf32>) {
  %r = "stablehlo.tan"(%a0) : (tensor<2xf32>) -> tensor<3xf32>
  return %r : tensor<3xf32>
}

// -----

// expected: V0701 stablehlo.tanh: (C1) the result is tensor<3xf32>, not tensor<2xf32>
func.func @main(%a0: tensor<2xf32>) -> (tensor<3xf32>) {
  %r = "stablehlo.tanh"(%a0) : (tensor<2xf32>) -> tensor<3xf32>
  return %r : tensor<3xf32>
}

// -----

// expected: V0701 stablehlo.ceil: (C1) the result is tensor<3xf32>, not tensor<2xf32>
func.func @main(%a0: tensor<2xf32>) -> (tensor<3xf32>) {
  %r = "stablehlo.ceil"(%a0) : (tensor<2xf32>) -> tensor<3xf32>
  return %r : tensor<3xf32>
}

// -----

// expected: V0701 stablehlo.round_nearest_afz: (C1) the result is tensor<3xf32>, not tensor<2xf32>
func.func @main(%a0: tensor<2xf32>) -> (tensor<3xf32>) {
  %r = "stablehlo.round_nearest_afz"(%a0) : (tensor<2xf32>) -> tensor<3xf32>
  return %r : tensor<3xf32>
}

// -----

// expected: V0701 stablehlo.round_nearest_even: (C1) the result is tensor<3xf32>, not tensor<2xf32>
func.func @main(%a0: tensor<2xf32>) -> (tensor<3xf32>) {
  %r = "stablehlo.round_nearest_even"(%a0) : (tensor<2xf32>) -> tensor<3xf32>
  return %r : tensor<3xf32>
}

// -----

// expected: V0701 stablehlo.floor: (C1) the result is tensor<3xf32>, not tensor<2xf32>
func.func @main(%a0: tensor<2xf32>) -> (tensor<3xf32>) {
  %r = "stablehlo.floor"(%a0) : (tensor<2xf32>) -> tensor<3xf32>
  return %r : tensor<3xf32>
}

// -----

// expected: V0701 stablehlo.negate: (C1) the result is tensor<3xf32>, not tensor<2xf32>
func.func @main(%a0: tensor<2xf32>) -> (tensor<3xf32>) {
  %r = "stablehlo.negate"(%a0) : (tensor<2xf32>) -> tensor<3xf32>
  return %r : tensor<3xf32>
}

// -----

// expected: V0701 stablehlo.sign: (C1) the result is tensor<3xf32>, not tensor<2xf32>
func.func @main(%a0: tensor<2xf32>) -> (tensor<3xf32>) {
  %r = "stablehlo.sign"(%a0) : (tensor<2xf32>) -> tensor<3xf32>
  return %r : tensor<3xf32>
}

// -----

// expected: V0701 stablehlo.sqrt: (C1) the result is tensor<3xf32>, not tensor<2xf32>
func.func @main(%a0: tensor<2xf32>) -> (tensor<3xf32>) {
  %r = "stablehlo.sqrt"(%a0) : (tensor<2xf32>) -> tensor<3xf32>
  return %r : tensor<3xf32>
}

// -----

// expected: V0701 stablehlo.count_leading_zeros: (C1) the result is tensor<2xi64>, not tensor<2xi32>
func.func @main(%a0: tensor<2xi32>) -> (tensor<2xi64>) {
  %r = "stablehlo.count_leading_zeros"(%a0) : (tensor<2xi32>) -> tensor<2xi64>
  return %r : tensor<2xi64>
}

// -----

// expected: V0701 stablehlo.popcnt: (C1) the result is tensor<2xi64>, not tensor<2xi32>
func.func @main(%a0: tensor<2xi32>) -> (tensor<2xi64>) {
  %r = "stablehlo.popcnt"(%a0) : (tensor<2xi32>) -> tensor<2xi64>
  return %r : tensor<2xi64>
}

// -----

// expected: V0701 stablehlo.not: (C1) the result is tensor<3xi1>, not tensor<2xi1>
func.func @main(%a0: tensor<2xi1>) -> (tensor<3xi1>) {
  %r = "stablehlo.not"(%a0) : (tensor<2xi1>) -> tensor<3xi1>
  return %r : tensor<3xi1>
}

// -----

// expected: V0701 stablehlo.cbrt: (I1) elements of tensor<2xi32> are not floating-point, complex
func.func @main(%a0: tensor<2xi32>) -> (tensor<2xi32>) {
  %r = "stablehlo.cbrt"(%a0) : (tensor<2xi32>) -> tensor<2xi32>
  return %r : tensor<2xi32>
}

// -----

// expected: V0701 stablehlo.exponential: (I1) elements of tensor<2xi32> are not floating-point, complex
func.func @main(%a0: tensor<2xi32>) -> (tensor<2xi32>) {
  %r = "stablehlo.exponential"(%a0) : (tensor<2xi32>) -> tensor<2xi32>
  return %r : tensor<2xi32>
}

// -----

// expected: V0701 stablehlo.exponential_minus_one: (I1) elements of tensor<2xi32> are not floating-point, complex
func.func @main(%a0: tensor<2xi32>) -> (tensor<2xi32>) {
  %r = "stablehlo.exponential_minus_one"(%a0) : (tensor<2xi32>) -> tensor<2xi32>
  return %r : tensor<2xi32>
}

// -----

// expected: V0701 stablehlo.log: (I1) elements of tensor<2xi32> are not floating-point, complex
func.func @main(%a0: tensor<2xi32>) -> (tensor<2xi32>) {
  %r = "stablehlo.log"(%a0) : (tensor<2xi32>) -> tensor<2xi32>
  return %r : tensor<2xi32>
}

// -----

// expected: V0701 stablehlo.log_plus_one: (I1) elements of tensor<2xi32> are not floating-point, complex
func.func @main(%a0: tensor<2xi32>) -> (tensor<2xi32>) {
  %r = "stablehlo.log_plus_one"(%a0) : (tensor<2xi32>) -> tensor<2xi32>
  return %r : tensor<2xi32>
}

// -----

// expected: V0701 stablehlo.logistic: (I1) elements of tensor<2xi32> are not floating-point, complex
func.func @main(%a0: tensor<2xi32>) -> (tensor<2xi32>) {
  %r = "stablehlo.logistic"(%a0) : (tensor<2xi32>) -> tensor<2xi32>
  return %r : tensor<2xi32>
}

// -----

// expected: V0701 stablehlo.rsqrt: (I1) elements of tensor<2xi32> are not floating-point, complex
func.func @main(%a0: tensor<2xi32>) -> (tensor<2xi32>) {
  %r = "stablehlo.rsqrt"(%a0) : (tensor<2xi32>) -> tensor<2xi32>
  return %r : tensor<2xi32>
}

// -----

// expected: V0701 stablehlo.sine: (I1) elements of tensor<2xi32> are not floating-point, complex
func.func @main(%a0: tensor<2xi32>) -> (tensor<2xi32>) {
  %r = "stablehlo.sine"(%a0) : (tensor<2xi32>) -> tensor<2xi32>
  return %r : tensor<2xi32>
}

// -----

// expected: V0701 stablehlo.tan: (I1) elements of tensor<2xi32> are not floating-point, complex
func.func @main(%a0: tensor<2xi32>) -> (tensor<2xi32>) {
  %r = "stablehlo.tan"(%a0) : (tensor<2xi32>) -> tensor<2xi32>
  return %r : tensor<2xi32>
}

// -----

// expected: V0701 stablehlo.tanh: (I1) elements of tensor<2xi32> are not floating-point, complex
func.func @main(%a0: tensor<2xi32>) -> (tensor<2xi32>) {
  %r = "stablehlo.tanh"(%a0) : (tensor<2xi32>) -> tensor<2xi32>
  return %r : tensor<2xi32>
}

// -----

// expected: V0701 stablehlo.ceil: (I1) elements of tensor<2xi32> are not floating-point
func.func @main(%a0: tensor<2xi32>) -> (tensor<2xi32>) {
  %r = "stablehlo.ceil"(%a0) : (tensor<2xi32>) -> tensor<2xi32>
  return %r : tensor<2xi32>
}

// -----

// expected: V0701 stablehlo.round_nearest_afz: (I1) elements of tensor<2xi32> are not floating-point
func.func @main(%a0: tensor<2xi32>) -> (tensor<2xi32>) {
  %r = "stablehlo.round_nearest_afz"(%a0) : (tensor<2xi32>) -> tensor<2xi32>
  return %r : tensor<2xi32>
}

// -----

// expected: V0701 stablehlo.round_nearest_even: (I1) elements of tensor<2xi32> are not floating-point
func.func @main(%a0: tensor<2xi32>) -> (tensor<2xi32>) {
  %r = "stablehlo.round_nearest_even"(%a0) : (tensor<2xi32>) -> tensor<2xi32>
  return %r : tensor<2xi32>
}

// -----

// expected: V0701 stablehlo.negate: (I1) elements of tensor<2xi1> are not signed integer, unsigned integer, floating-point, complex
func.func @main(%a0: tensor<2xi1>) -> (tensor<2xi1>) {
  %r = "stablehlo.negate"(%a0) : (tensor<2xi1>) -> tensor<2xi1>
  return %r : tensor<2xi1>
}

// -----

// expected: V0701 stablehlo.count_leading_zeros: (I1) elements of tensor<2xf32> are not signed integer, unsigned integer
func.func @main(%a0: tensor<2xf32>) -> (tensor<2xf32>) {
  %r = "stablehlo.count_leading_zeros"(%a0) : (tensor<2xf32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

// expected: V0701 stablehlo.not: (I1) elements of tensor<2xf32> are not boolean, signed integer, unsigned integer
func.func @main(%a0: tensor<2xf32>) -> (tensor<2xf32>) {
  %r = "stablehlo.not"(%a0) : (tensor<2xf32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

// expected: V0701 stablehlo.divide: (C1) the result is tensor<2xf64>, not tensor<2xf32>
func.func @main(%a0: tensor<2xf32>, %a1: tensor<2xf32>) -> (tensor<2xf64>) {
  %r = "stablehlo.divide"(%a0, %a1) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf64>
  return %r : tensor<2xf64>
}

// -----

// expected: V0701 stablehlo.maximum: (C1) the result is tensor<2xf64>, not tensor<2xf32>
func.func @main(%a0: tensor<2xf32>, %a1: tensor<2xf32>) -> (tensor<2xf64>) {
  %r = "stablehlo.maximum"(%a0, %a1) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf64>
  return %r : tensor<2xf64>
}

// -----

// expected: V0701 stablehlo.minimum: (C1) the result is tensor<2xf64>, not tensor<2xf32>
func.func @main(%a0: tensor<2xf32>, %a1: tensor<2xf32>) -> (tensor<2xf64>) {
  %r = "stablehlo.minimum"(%a0, %a1) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf64>
  return %r : tensor<2xf64>
}

// -----

// expected: V0701 stablehlo.multiply: (C1) the result is tensor<2xf64>, not tensor<2xf32>
func.func @main(%a0: tensor<2xf32>, %a1: tensor<2xf32>) -> (tensor<2xf64>) {
  %r = "stablehlo.multiply"(%a0, %a1) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf64>
  return %r : tensor<2xf64>
}

// -----

// expected: V0701 stablehlo.power: (C1) the result is tensor<2xf64>, not tensor<2xf32>
func.func @main(%a0: tensor<2xf32>, %a1: tensor<2xf32>) -> (tensor<2xf64>) {
  %r = "stablehlo.power"(%a0, %a1) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf64>
  return %r : tensor<2xf64>
}

// -----

// expected: V0701 stablehlo.remainder: (C1) the result is tensor<2xf64>, not tensor<2xf32>
func.func @main(%a0: tensor<2xf32>, %a1: tensor<2xf32>) -> (tensor<2xf64>) {
  %r = "stablehlo.remainder"(%a0, %a1) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf64>
  return %r : tensor<2xf64>
}

// -----

// expected: V0701 stablehlo.subtract: (C1) the result is tensor<2xf64>, not tensor<2xf32>
func.func @main(%a0: tensor<2xf32>, %a1: tensor<2xf32>) -> (tensor<2xf64>) {
  %r = "stablehlo.subtract"(%a0, %a1) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf64>
  return %r : tensor<2xf64>
}

// -----

// expected: V0701 stablehlo.atan2: (C1) the result is tensor<2xf64>, not tensor<2xf32>
func.func @main(%a0: tensor<2xf32>, %a1: tensor<2xf32>) -> (tensor<2xf64>) {
  %r = "stablehlo.atan2"(%a0, %a1) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf64>
  return %r : tensor<2xf64>
}

// -----

// expected: V0701 stablehlo.and: (C1) the second operand is tensor<2xi8>, not tensor<2xi32>
func.func @main(%a0: tensor<2xi32>, %a1: tensor<2xi8>) -> (tensor<2xi32>) {
  %r = "stablehlo.and"(%a0, %a1) : (tensor<2xi32>, tensor<2xi8>) -> tensor<2xi32>
  return %r : tensor<2xi32>
}

// -----

// expected: V0701 stablehlo.or: (C1) the second operand is tensor<2xi8>, not tensor<2xi32>
func.func @main(%a0: tensor<2xi32>, %a1: tensor<2xi8>) -> (tensor<2xi32>) {
  %r = "stablehlo.or"(%a0, %a1) : (tensor<2xi32>, tensor<2xi8>) -> tensor<2xi32>
  return %r : tensor<2xi32>
}

// -----

// expected: V0701 stablehlo.xor: (C1) the second operand is tensor<2xi8>, not tensor<2xi32>
func.func @main(%a0: tensor<2xi32>, %a1: tensor<2xi8>) -> (tensor<2xi32>) {
  %r = "stablehlo.xor"(%a0, %a1) : (tensor<2xi32>, tensor<2xi8>) -> tensor<2xi32>
  return %r : tensor<2xi32>
}

// -----

// expected: V0701 stablehlo.shift_left: (C1) the second operand is tensor<2xi8>, not tensor<2xi32>
func.func @main(%a0: tensor<2xi32>, %a1: tensor<2xi8>) -> (tensor<2xi32>) {
  %r = "stablehlo.shift_left"(%a0, %a1) : (tensor<2xi32>, tensor<2xi8>) -> tensor<2xi32>
  return %r : tensor<2xi32>
}

// -----

// expected: V0701 stablehlo.shift_right_arithmetic: (C1) the second operand is tensor<2xi8>, not tensor<2xi32>
func.func @main(%a0: tensor<2xi32>, %a1: tensor<2xi8>) -> (tensor<2xi32>) {
  %r = "stablehlo.shift_right_arithmetic"(%a0, %a1) : (tensor<2xi32>, tensor<2xi8>) -> tensor<2xi32>
  return %r : tensor<2xi32>
}

// -----

// expected: V0701 stablehlo.shift_right_logical: (C1) the second operand is tensor<2xi8>, not tensor<2xi32>
func.func @main(%a0: tensor<2xi32>, %a1: tensor<2xi8>) -> (tensor<2xi32>) {
  %r = "stablehlo.shift_right_logical"(%a0, %a1) : (tensor<2xi32>, tensor<2xi8>) -> tensor<2xi32>
  return %r : tensor<2xi32>
}

// -----

// expected: V0701 stablehlo.or: (I1) elements of tensor<2xf32> are not boolean, signed integer, unsigned integer
func.func @main(%a0: tensor<2xf32>, %a1: tensor<2xf32>) -> (tensor<2xf32>) {
  %r = "stablehlo.or"(%a0, %a1) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

// expected: V0701 stablehlo.xor: (I1) elements of tensor<2xf32> are not boolean, signed integer, unsigned integer
func.func @main(%a0: tensor<2xf32>, %a1: tensor<2xf32>) -> (tensor<2xf32>) {
  %r = "stablehlo.xor"(%a0, %a1) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

// expected: V0701 stablehlo.atan2: (I1) elements of tensor<2xi32> are not floating-point, complex
func.func @main(%a0: tensor<2xi32>, %a1: tensor<2xi32>) -> (tensor<2xi32>) {
  %r = "stablehlo.atan2"(%a0, %a1) : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
  return %r : tensor<2xi32>
}

// -----

// expected: V0701 stablehlo.divide: (I1) elements of tensor<2xi1> are not signed integer, unsigned integer, floating-point, complex
func.func @main(%a0: tensor<2xi1>, %a1: tensor<2xi1>) -> (tensor<2xi1>) {
  %r = "stablehlo.divide"(%a0, %a1) : (tensor<2xi1>, tensor<2xi1>) -> tensor<2xi1>
  return %r : tensor<2xi1>
}

// -----

// expected: V0701 stablehlo.power: (I1) elements of tensor<2xi1> are not signed integer, unsigned integer, floating-point, complex
func.func @main(%a0: tensor<2xi1>, %a1: tensor<2xi1>) -> (tensor<2xi1>) {
  %r = "stablehlo.power"(%a0, %a1) : (tensor<2xi1>, tensor<2xi1>) -> tensor<2xi1>
  return %r : tensor<2xi1>
}

// -----

// expected: V0701 stablehlo.remainder: (I1) elements of tensor<2xi1> are not signed integer, unsigned integer, floating-point, complex
func.func @main(%a0: tensor<2xi1>, %a1: tensor<2xi1>) -> (tensor<2xi1>) {
  %r = "stablehlo.remainder"(%a0, %a1) : (tensor<2xi1>, tensor<2xi1>) -> tensor<2xi1>
  return %r : tensor<2xi1>
}

// -----

// expected: V0701 stablehlo.shift_right_arithmetic: (I1) elements of tensor<2xf32> are not signed integer, unsigned integer
func.func @main(%a0: tensor<2xf32>, %a1: tensor<2xf32>) -> (tensor<2xf32>) {
  %r = "stablehlo.shift_right_arithmetic"(%a0, %a1) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

// expected: V0701 stablehlo.shift_right_logical: (I1) elements of tensor<2xf32> are not signed integer, unsigned integer
func.func @main(%a0: tensor<2xf32>, %a1: tensor<2xf32>) -> (tensor<2xf32>) {
  %r = "stablehlo.shift_right_logical"(%a0, %a1) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

// expected: V0701 stablehlo.and: (I2) elements of tensor<2xf32> are not boolean, signed integer, unsigned integer
func.func @main(%a0: tensor<2xi32>, %a1: tensor<2xf32>) -> (tensor<2xi32>) {
  %r = "stablehlo.and"(%a0, %a1) : (tensor<2xi32>, tensor<2xf32>) -> tensor<2xi32>
  return %r : tensor<2xi32>
}

// -----

// expected: V0701 stablehlo.or: (I2) elements of tensor<2xf32> are not boolean, signed integer, unsigned integer
func.func @main(%a0: tensor<2xi32>, %a1: tensor<2xf32>) -> (tensor<2xi32>) {
  %r = "stablehlo.or"(%a0, %a1) : (tensor<2xi32>, tensor<2xf32>) -> tensor<2xi32>
  return %r : tensor<2xi32>
}

// -----

// expected: V0701 stablehlo.xor: (I2) elements of tensor<2xf32> are not boolean, signed integer, unsigned integer
func.func @main(%a0: tensor<2xi32>, %a1: tensor<2xf32>) -> (tensor<2xi32>) {
  %r = "stablehlo.xor"(%a0, %a1) : (tensor<2xi32>, tensor<2xf32>) -> tensor<2xi32>
  return %r : tensor<2xi32>
}

// -----

// expected: V0701 stablehlo.shift_left: (I2) elements of tensor<2xf32> are not signed integer, unsigned integer
func.func @main(%a0: tensor<2xi32>, %a1: tensor<2xf32>) -> (tensor<2xi32>) {
  %r = "stablehlo.shift_left"(%a0, %a1) : (tensor<2xi32>, tensor<2xf32>) -> tensor<2xi32>
  return %r : tensor<2xi32>
}

// -----

// expected: V0701 stablehlo.shift_right_arithmetic: (I2) elements of tensor<2xf32> are not signed integer, unsigned integer
func.func @main(%a0: tensor<2xi32>, %a1: tensor<2xf32>) -> (tensor<2xi32>) {
  %r = "stablehlo.shift_right_arithmetic"(%a0, %a1) : (tensor<2xi32>, tensor<2xf32>) -> tensor<2xi32>
  return %r : tensor<2xi32>
}

// -----

// expected: V0701 stablehlo.shift_right_logical: (I2) elements of tensor<2xf32> are not signed integer, unsigned integer
func.func @main(%a0: tensor<2xi32>, %a1: tensor<2xf32>) -> (tensor<2xi32>) {
  %r = "stablehlo.shift_right_logical"(%a0, %a1) : (tensor<2xi32>, tensor<2xf32>) -> tensor<2xi32>
  return %r : tensor<2xi32>
}

// -----

// expected: V0701 stablehlo.atan2: (I2) elements of tensor<2xi32> are not floating-point, complex
func.func @main(%a0: tensor<2xf32>, %a1: tensor<2xi32>) -> (tensor<2xf32>) {
  %r = "stablehlo.atan2"(%a0, %a1) : (tensor<2xf32>, tensor<2xi32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

// expected: V0701 stablehlo.divide: (I2) elements of tensor<2xi1> are not signed integer, unsigned integer, floating-point, complex
func.func @main(%a0: tensor<2xf32>, %a1: tensor<2xi1>) -> (tensor<2xf32>) {
  %r = "stablehlo.divide"(%a0, %a1) : (tensor<2xf32>, tensor<2xi1>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

// expected: V0701 stablehlo.power: (I2) elements of tensor<2xi1> are not signed integer, unsigned integer, floating-point, complex
func.func @main(%a0: tensor<2xf32>, %a1: tensor<2xi1>) -> (tensor<2xf32>) {
  %r = "stablehlo.power"(%a0, %a1) : (tensor<2xf32>, tensor<2xi1>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

// expected: V0701 stablehlo.remainder: (I2) elements of tensor<2xi1> are not signed integer, unsigned integer, floating-point, complex
func.func @main(%a0: tensor<2xf32>, %a1: tensor<2xi1>) -> (tensor<2xf32>) {
  %r = "stablehlo.remainder"(%a0, %a1) : (tensor<2xf32>, tensor<2xi1>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

// expected: V0701 stablehlo.subtract: (I2) elements of tensor<2xi1> are not signed integer, unsigned integer, floating-point, complex
func.func @main(%a0: tensor<2xf32>, %a1: tensor<2xi1>) -> (tensor<2xf32>) {
  %r = "stablehlo.subtract"(%a0, %a1) : (tensor<2xf32>, tensor<2xi1>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

// expected: V0701 stablehlo.imag: (C1) the result is tensor<3xf32>, and its shape must be [2]
func.func @main(%a0: tensor<2xcomplex<f32>>) -> (tensor<3xf32>) {
  %r = "stablehlo.imag"(%a0) : (tensor<2xcomplex<f32>>) -> tensor<3xf32>
  return %r : tensor<3xf32>
}

// -----

// expected: V0701 stablehlo.real: (C2) the result of tensor<2xcomplex<f32>> is tensor<2xf64>
func.func @main(%a0: tensor<2xcomplex<f32>>) -> (tensor<2xf64>) {
  %r = "stablehlo.real"(%a0) : (tensor<2xcomplex<f32>>) -> tensor<2xf64>
  return %r : tensor<2xf64>
}

// -----

// expected: V0701 stablehlo.complex: (I2) elements of tensor<2xi32> are not floating-point
func.func @main(%a0: tensor<2xf32>, %a1: tensor<2xi32>) -> (tensor<2xcomplex<f32>>) {
  %r = "stablehlo.complex"(%a0, %a1) : (tensor<2xf32>, tensor<2xi32>) -> tensor<2xcomplex<f32>>
  return %r : tensor<2xcomplex<f32>>
}

// -----

// expected: V0701 stablehlo.constant: (C1) the value has another type than the result
func.func @main() -> (tensor<3xi32>) {
  %r = "stablehlo.constant"() <{value = dense<1> : tensor<2xi32>}> : () -> tensor<3xi32>
  return %r : tensor<3xi32>
}

// -----

// expected: V0701 stablehlo.compare: (C3) SIGNED of tensor<2xf32>
func.func @main(%a0: tensor<2xf32>, %a1: tensor<2xf32>) -> (tensor<2xi1>) {
  %r = "stablehlo.compare"(%a0, %a1) <{comparison_direction = #stablehlo<comparison_direction EQ>, compare_type = #stablehlo<comparison_type SIGNED>}> : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>
  return %r : tensor<2xi1>
}

// -----

// expected: V0701 stablehlo.compare: (C3) SIGNED of tensor<2xui8>
func.func @main(%a0: tensor<2xui8>, %a1: tensor<2xui8>) -> (tensor<2xi1>) {
  %r = "stablehlo.compare"(%a0, %a1) <{comparison_direction = #stablehlo<comparison_direction EQ>, compare_type = #stablehlo<comparison_type SIGNED>}> : (tensor<2xui8>, tensor<2xui8>) -> tensor<2xi1>
  return %r : tensor<2xi1>
}

// -----

// expected: V0701 stablehlo.map: (C2) there is no input
func.func @main() -> (tensor<2xf32>) {
  %r = "stablehlo.map"() <{dimensions = array<i64: 0>}> ({
    %c = stablehlo.constant dense<1.0> : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }) : () -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

// expected: V0701 stablehlo.map: (C4) the computation is (tensor<f32>, tensor<f32>) -> (tensor<i32>)
func.func @main(%a0: tensor<2xf32>) -> (tensor<2xf32>) {
  %r = "stablehlo.map"(%a0) <{dimensions = array<i64: 0>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %c = stablehlo.convert %x0 : (tensor<f32>) -> tensor<i32>
    stablehlo.return %c : tensor<i32>
  }) : (tensor<2xf32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

// expected: V0701 stablehlo.map: (C4) the computation is (tensor<f32>) -> (tensor<f32>)
func.func @main(%a0: tensor<2xf32>, %a1: tensor<2xf32>) -> (tensor<2xf32>) {
  %r = "stablehlo.map"(%a0, %a1) <{dimensions = array<i64: 0>}> ({
  ^bb0(%x0: tensor<f32>):
    stablehlo.return %x0 : tensor<f32>
  }) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

// expected: V0701 stablehlo.batch_norm_training: (C5) result 1 is tensor<2xf32>, of 3 features
func.func @main(%a0: tensor<2x3xf32>, %a1: tensor<3xf32>, %a2: tensor<3xf32>) -> (tensor<2x3xf32>, tensor<2xf32>, tensor<3xf32>) {
  %r:3 = "stablehlo.batch_norm_training"(%a0, %a1, %a2) <{epsilon = 1.0e-3 : f32, feature_index = 1 : i64}> : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3xf32>, tensor<2xf32>, tensor<3xf32>)
  return %r#0, %r#1, %r#2 : tensor<2x3xf32>, tensor<2xf32>, tensor<3xf32>
}

// -----

// expected: V0701 stablehlo.batch_norm_training: (C6) result 2 is tensor<2xf32>, of 3 features
func.func @main(%a0: tensor<2x3xf32>, %a1: tensor<3xf32>, %a2: tensor<3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<2xf32>) {
  %r:3 = "stablehlo.batch_norm_training"(%a0, %a1, %a2) <{epsilon = 1.0e-3 : f32, feature_index = 1 : i64}> : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<2xf32>)
  return %r#0, %r#1, %r#2 : tensor<2x3xf32>, tensor<3xf32>, tensor<2xf32>
}

// -----

// expected: V0701 stablehlo.batch_norm_training: (C7) the result is tensor<3x3xf32>, not tensor<2x3xf32>
func.func @main(%a0: tensor<2x3xf32>, %a1: tensor<3xf32>, %a2: tensor<3xf32>) -> (tensor<3x3xf32>, tensor<3xf32>, tensor<3xf32>) {
  %r:3 = "stablehlo.batch_norm_training"(%a0, %a1, %a2) <{epsilon = 1.0e-3 : f32, feature_index = 1 : i64}> : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<3x3xf32>, tensor<3xf32>, tensor<3xf32>)
  return %r#0, %r#1, %r#2 : tensor<3x3xf32>, tensor<3xf32>, tensor<3xf32>
}

// -----

// expected: V0701 stablehlo.batch_norm_inference: (C1) feature dimension 2 of rank 2
func.func @main(%a0: tensor<2x3xf32>, %a1: tensor<3xf32>, %a2: tensor<3xf32>, %a3: tensor<3xf32>, %a4: tensor<3xf32>) -> (tensor<2x3xf32>) {
  %r = "stablehlo.batch_norm_inference"(%a0, %a1, %a2, %a3, %a4) <{epsilon = 1.0e-3 : f32, feature_index = 2 : i64}> : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// expected: V0701 stablehlo.batch_norm_inference: (C2) elements are of different types, tensor<2x3xf32> and tensor<3xf64>
func.func @main(%a0: tensor<2x3xf32>, %a1: tensor<3xf64>, %a2: tensor<3xf32>, %a3: tensor<3xf32>, %a4: tensor<3xf32>) -> (tensor<2x3xf32>) {
  %r = "stablehlo.batch_norm_inference"(%a0, %a1, %a2, %a3, %a4) <{epsilon = 1.0e-3 : f32, feature_index = 1 : i64}> : (tensor<2x3xf32>, tensor<3xf64>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// expected: V0701 stablehlo.batch_norm_inference: (C3) operand 1 is tensor<2xf32>, of 3 features
func.func @main(%a0: tensor<2x3xf32>, %a1: tensor<2xf32>, %a2: tensor<3xf32>, %a3: tensor<3xf32>, %a4: tensor<3xf32>) -> (tensor<2x3xf32>) {
  %r = "stablehlo.batch_norm_inference"(%a0, %a1, %a2, %a3, %a4) <{epsilon = 1.0e-3 : f32, feature_index = 1 : i64}> : (tensor<2x3xf32>, tensor<2xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// expected: V0701 stablehlo.batch_norm_inference: (C4) operand 2 is tensor<2xf32>, of 3 features
func.func @main(%a0: tensor<2x3xf32>, %a1: tensor<3xf32>, %a2: tensor<2xf32>, %a3: tensor<3xf32>, %a4: tensor<3xf32>) -> (tensor<2x3xf32>) {
  %r = "stablehlo.batch_norm_inference"(%a0, %a1, %a2, %a3, %a4) <{epsilon = 1.0e-3 : f32, feature_index = 1 : i64}> : (tensor<2x3xf32>, tensor<3xf32>, tensor<2xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// expected: V0701 stablehlo.batch_norm_inference: (C5) operand 3 is tensor<2xf32>, of 3 features
func.func @main(%a0: tensor<2x3xf32>, %a1: tensor<3xf32>, %a2: tensor<3xf32>, %a3: tensor<2xf32>, %a4: tensor<3xf32>) -> (tensor<2x3xf32>) {
  %r = "stablehlo.batch_norm_inference"(%a0, %a1, %a2, %a3, %a4) <{epsilon = 1.0e-3 : f32, feature_index = 1 : i64}> : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<2xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// expected: V0701 stablehlo.batch_norm_inference: (C6) operand 4 is tensor<2xf32>, of 3 features
func.func @main(%a0: tensor<2x3xf32>, %a1: tensor<3xf32>, %a2: tensor<3xf32>, %a3: tensor<3xf32>, %a4: tensor<2xf32>) -> (tensor<2x3xf32>) {
  %r = "stablehlo.batch_norm_inference"(%a0, %a1, %a2, %a3, %a4) <{epsilon = 1.0e-3 : f32, feature_index = 1 : i64}> : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// expected: V0701 stablehlo.batch_norm_inference: (C7) the result is tensor<2x4xf32>, not tensor<2x3xf32>
func.func @main(%a0: tensor<2x3xf32>, %a1: tensor<3xf32>, %a2: tensor<3xf32>, %a3: tensor<3xf32>, %a4: tensor<3xf32>) -> (tensor<2x4xf32>) {
  %r = "stablehlo.batch_norm_inference"(%a0, %a1, %a2, %a3, %a4) <{epsilon = 1.0e-3 : f32, feature_index = 1 : i64}> : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x4xf32>
  return %r : tensor<2x4xf32>
}

// -----

// expected: V0701 stablehlo.batch_norm_inference: (I1) elements of tensor<2x3xi32> are not floating-point
func.func @main(%a0: tensor<2x3xi32>, %a1: tensor<3xi32>, %a2: tensor<3xi32>, %a3: tensor<3xi32>, %a4: tensor<3xi32>) -> (tensor<2x3xi32>) {
  %r = "stablehlo.batch_norm_inference"(%a0, %a1, %a2, %a3, %a4) <{epsilon = 1.0e-3 : f32, feature_index = 1 : i64}> : (tensor<2x3xi32>, tensor<3xi32>, tensor<3xi32>, tensor<3xi32>, tensor<3xi32>) -> tensor<2x3xi32>
  return %r : tensor<2x3xi32>
}

// -----

// expected: V0701 stablehlo.batch_norm_grad: (C1) feature dimension 2 of rank 2
func.func @main(%a0: tensor<2x3xf32>, %a1: tensor<3xf32>, %a2: tensor<3xf32>, %a3: tensor<3xf32>, %a4: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>) {
  %r:3 = "stablehlo.batch_norm_grad"(%a0, %a1, %a2, %a3, %a4) <{epsilon = 1.0e-3 : f32, feature_index = 2 : i64}> : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>)
  return %r#0, %r#1, %r#2 : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
}

// -----

// expected: V0701 stablehlo.batch_norm_grad: (C2) elements are of different types, tensor<2x3xf32> and tensor<3xf64>
func.func @main(%a0: tensor<2x3xf32>, %a1: tensor<3xf64>, %a2: tensor<3xf32>, %a3: tensor<3xf32>, %a4: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>) {
  %r:3 = "stablehlo.batch_norm_grad"(%a0, %a1, %a2, %a3, %a4) <{epsilon = 1.0e-3 : f32, feature_index = 1 : i64}> : (tensor<2x3xf32>, tensor<3xf64>, tensor<3xf32>, tensor<3xf32>, tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>)
  return %r#0, %r#1, %r#2 : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
}

// -----

// expected: V0701 stablehlo.batch_norm_grad: (C4) operand 2 is tensor<2xf32>, of 3 features
func.func @main(%a0: tensor<2x3xf32>, %a1: tensor<3xf32>, %a2: tensor<2xf32>, %a3: tensor<3xf32>, %a4: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>) {
  %r:3 = "stablehlo.batch_norm_grad"(%a0, %a1, %a2, %a3, %a4) <{epsilon = 1.0e-3 : f32, feature_index = 1 : i64}> : (tensor<2x3xf32>, tensor<3xf32>, tensor<2xf32>, tensor<3xf32>, tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>)
  return %r#0, %r#1, %r#2 : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
}

// -----

// expected: V0701 stablehlo.batch_norm_grad: (C4) result 1 is tensor<2xf32>, of 3 features
func.func @main(%a0: tensor<2x3xf32>, %a1: tensor<3xf32>, %a2: tensor<3xf32>, %a3: tensor<3xf32>, %a4: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2xf32>, tensor<3xf32>) {
  %r:3 = "stablehlo.batch_norm_grad"(%a0, %a1, %a2, %a3, %a4) <{epsilon = 1.0e-3 : f32, feature_index = 1 : i64}> : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2xf32>, tensor<3xf32>)
  return %r#0, %r#1, %r#2 : tensor<2x3xf32>, tensor<2xf32>, tensor<3xf32>
}

// -----

// expected: V0701 stablehlo.batch_norm_grad: (C5) operand 1 is tensor<2xf32>, of 3 features
func.func @main(%a0: tensor<2x3xf32>, %a1: tensor<2xf32>, %a2: tensor<3xf32>, %a3: tensor<3xf32>, %a4: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>) {
  %r:3 = "stablehlo.batch_norm_grad"(%a0, %a1, %a2, %a3, %a4) <{epsilon = 1.0e-3 : f32, feature_index = 1 : i64}> : (tensor<2x3xf32>, tensor<2xf32>, tensor<3xf32>, tensor<3xf32>, tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>)
  return %r#0, %r#1, %r#2 : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
}

// -----

// expected: V0701 stablehlo.batch_norm_grad: (I1) elements of tensor<2x3xi32> are not floating-point
func.func @main(%a0: tensor<2x3xi32>, %a1: tensor<3xi32>, %a2: tensor<3xi32>, %a3: tensor<3xi32>, %a4: tensor<2x3xi32>) -> (tensor<2x3xi32>, tensor<3xi32>, tensor<3xi32>) {
  %r:3 = "stablehlo.batch_norm_grad"(%a0, %a1, %a2, %a3, %a4) <{epsilon = 1.0e-3 : f32, feature_index = 1 : i64}> : (tensor<2x3xi32>, tensor<3xi32>, tensor<3xi32>, tensor<3xi32>, tensor<2x3xi32>) -> (tensor<2x3xi32>, tensor<3xi32>, tensor<3xi32>)
  return %r#0, %r#1, %r#2 : tensor<2x3xi32>, tensor<3xi32>, tensor<3xi32>
}

// -----

// expected: V0701 stablehlo.rng: (C3) the result is tensor<2x4xf32>, and its shape must be [2, 3]
func.func @main(%a0: tensor<f32>, %a1: tensor<f32>) -> (tensor<2x4xf32>) {
  %s = stablehlo.constant dense<[2, 3]> : tensor<2xi64>
  %r = "stablehlo.rng"(%a0, %a1, %s) <{rng_distribution = #stablehlo<rng_distribution UNIFORM>}> : (tensor<f32>, tensor<f32>, tensor<2xi64>) -> tensor<2x4xf32>
  return %r : tensor<2x4xf32>
}

// -----

// expected: V0701 stablehlo.rng: (I1) a bound is tensor<1xf32>
func.func @main(%a0: tensor<1xf32>, %a1: tensor<f32>) -> (tensor<2x3xf32>) {
  %s = stablehlo.constant dense<[2, 3]> : tensor<2xi64>
  %r = "stablehlo.rng"(%a0, %a1, %s) <{rng_distribution = #stablehlo<rng_distribution UNIFORM>}> : (tensor<1xf32>, tensor<f32>, tensor<2xi64>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// expected: V0701 stablehlo.rng: (I2) a bound is tensor<1xf32>
func.func @main(%a0: tensor<f32>, %a1: tensor<1xf32>) -> (tensor<2x3xf32>) {
  %s = stablehlo.constant dense<[2, 3]> : tensor<2xi64>
  %r = "stablehlo.rng"(%a0, %a1, %s) <{rng_distribution = #stablehlo<rng_distribution UNIFORM>}> : (tensor<f32>, tensor<1xf32>, tensor<2xi64>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// expected: V0701 stablehlo.add: (C1) the second operand is tensor<3xf32>, not tensor<2xf32>
func.func @main(%a: tensor<2xf32>, %b: tensor<3xf32>) -> (tensor<2xf32>) {
  %r = "stablehlo.add"(%a, %b) : (tensor<2xf32>, tensor<3xf32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

// expected: V0701 stablehlo.add: (C1) the second operand is tensor<2xi32>, not tensor<2xf32>
func.func @main(%a: tensor<2xf32>, %b: tensor<2xi32>) -> (tensor<2xf32>) {
  %r = "stablehlo.add"(%a, %b) : (tensor<2xf32>, tensor<2xi32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

// expected: V0701 stablehlo.add: (C1) the result is tensor<3xf32>, not tensor<2xf32>
func.func @main(%a: tensor<2xf32>, %b: tensor<2xf32>) -> (tensor<3xf32>) {
  %r = "stablehlo.add"(%a, %b) : (tensor<2xf32>, tensor<2xf32>) -> tensor<3xf32>
  return %r : tensor<3xf32>
}

// -----

// expected: V0701 stablehlo.subtract: (I1) elements of tensor<2xi1> are not signed integer, unsigned integer, floating-point, complex
func.func @main(%a: tensor<2xi1>, %b: tensor<2xi1>) -> (tensor<2xi1>) {
  %r = "stablehlo.subtract"(%a, %b) : (tensor<2xi1>, tensor<2xi1>) -> tensor<2xi1>
  return %r : tensor<2xi1>
}

// -----

// expected: V0701 stablehlo.and: (I1) elements of tensor<2xf32> are not boolean, signed integer, unsigned integer
func.func @main(%a: tensor<2xf32>, %b: tensor<2xf32>) -> (tensor<2xf32>) {
  %r = "stablehlo.and"(%a, %b) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

// expected: V0701 stablehlo.shift_left: (I1) elements of tensor<2xi1> are not signed integer, unsigned integer
func.func @main(%a: tensor<2xi1>, %b: tensor<2xi1>) -> (tensor<2xi1>) {
  %r = "stablehlo.shift_left"(%a, %b) : (tensor<2xi1>, tensor<2xi1>) -> tensor<2xi1>
  return %r : tensor<2xi1>
}

// -----

// expected: V0701 stablehlo.popcnt: (I1) elements of tensor<2xf32> are not signed integer, unsigned integer
func.func @main(%a: tensor<2xf32>) -> (tensor<2xf32>) {
  %r = "stablehlo.popcnt"(%a) : (tensor<2xf32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

// expected: V0701 stablehlo.cosine: (I1) elements of tensor<2xi32> are not floating-point, complex
func.func @main(%a: tensor<2xi32>) -> (tensor<2xi32>) {
  %r = "stablehlo.cosine"(%a) : (tensor<2xi32>) -> tensor<2xi32>
  return %r : tensor<2xi32>
}

// -----

// expected: V0701 stablehlo.floor: (I1) elements of tensor<2xcomplex<f32>> are not floating-point
func.func @main(%a: tensor<2xcomplex<f32>>) -> (tensor<2xcomplex<f32>>) {
  %r = "stablehlo.floor"(%a) : (tensor<2xcomplex<f32>>) -> tensor<2xcomplex<f32>>
  return %r : tensor<2xcomplex<f32>>
}

// -----

// expected: V0701 stablehlo.sqrt: (C1) the result is tensor<3xf32>, not tensor<2xf32>
func.func @main(%a: tensor<2xf32>) -> (tensor<3xf32>) {
  %r = "stablehlo.sqrt"(%a) : (tensor<2xf32>) -> tensor<3xf32>
  return %r : tensor<3xf32>
}

// -----

// expected: V0701 stablehlo.sign: (I1) elements of tensor<2xui8> are not signed integer, floating-point, complex
func.func @main(%a: tensor<2xui8>) -> (tensor<2xui8>) {
  %r = "stablehlo.sign"(%a) : (tensor<2xui8>) -> tensor<2xui8>
  return %r : tensor<2xui8>
}

// -----

// expected: V0701 stablehlo.abs: (I1) elements of tensor<2xui8> are not signed integer, floating-point, complex
func.func @main(%a: tensor<2xui8>) -> (tensor<2xui8>) {
  %r = "stablehlo.abs"(%a) : (tensor<2xui8>) -> tensor<2xui8>
  return %r : tensor<2xui8>
}

// -----

// expected: V0701 stablehlo.abs: (C1) the result is tensor<3xf32>, and its shape must be [2]
func.func @main(%a: tensor<2xf32>) -> (tensor<3xf32>) {
  %r = "stablehlo.abs"(%a) : (tensor<2xf32>) -> tensor<3xf32>
  return %r : tensor<3xf32>
}

// -----

// expected: V0701 stablehlo.abs: (C2) the result of tensor<2xcomplex<f32>> is tensor<2xcomplex<f32>>
func.func @main(%a: tensor<2xcomplex<f32>>) -> (tensor<2xcomplex<f32>>) {
  %r = "stablehlo.abs"(%a) : (tensor<2xcomplex<f32>>) -> tensor<2xcomplex<f32>>
  return %r : tensor<2xcomplex<f32>>
}

// -----

// expected: V0701 stablehlo.real: (I1) elements of tensor<2xi32> are not floating-point, complex
func.func @main(%a: tensor<2xi32>) -> (tensor<2xi32>) {
  %r = "stablehlo.real"(%a) : (tensor<2xi32>) -> tensor<2xi32>
  return %r : tensor<2xi32>
}

// -----

// expected: V0701 stablehlo.real: (C1) the result is tensor<3xf32>, and its shape must be [2]
func.func @main(%a: tensor<2xcomplex<f32>>) -> (tensor<3xf32>) {
  %r = "stablehlo.real"(%a) : (tensor<2xcomplex<f32>>) -> tensor<3xf32>
  return %r : tensor<3xf32>
}

// -----

// expected: V0701 stablehlo.imag: (C2) the result of tensor<2xcomplex<f32>> is tensor<2xf64>
func.func @main(%a: tensor<2xcomplex<f32>>) -> (tensor<2xf64>) {
  %r = "stablehlo.imag"(%a) : (tensor<2xcomplex<f32>>) -> tensor<2xf64>
  return %r : tensor<2xf64>
}

// -----

// expected: V0701 stablehlo.is_finite: (I1) elements of tensor<2xi32> are not floating-point
func.func @main(%a: tensor<2xi32>) -> (tensor<2xi1>) {
  %r = "stablehlo.is_finite"(%a) : (tensor<2xi32>) -> tensor<2xi1>
  return %r : tensor<2xi1>
}

// -----

// expected: V0701 stablehlo.is_finite: (C1) the result is tensor<3xi1>, and its shape must be [2]
func.func @main(%a: tensor<2xf32>) -> (tensor<3xi1>) {
  %r = "stablehlo.is_finite"(%a) : (tensor<2xf32>) -> tensor<3xi1>
  return %r : tensor<3xi1>
}

// -----

// expected: V0701 stablehlo.convert: (C1) the result is tensor<3xi32>, and its shape must be [2]
func.func @main(%a: tensor<2xf32>) -> (tensor<3xi32>) {
  %r = "stablehlo.convert"(%a) : (tensor<2xf32>) -> tensor<3xi32>
  return %r : tensor<3xi32>
}

// -----

// expected: V0701 stablehlo.complex: (I1) elements of tensor<2xi32> are not floating-point
func.func @main(%a: tensor<2xi32>, %b: tensor<2xi32>) -> (tensor<2xcomplex<f32>>) {
  %r = "stablehlo.complex"(%a, %b) : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xcomplex<f32>>
  return %r : tensor<2xcomplex<f32>>
}

// -----

// expected: V0701 stablehlo.complex: (C1) the second operand is tensor<3xf32>, not tensor<2xf32>
func.func @main(%a: tensor<2xf32>, %b: tensor<3xf32>) -> (tensor<2xcomplex<f32>>) {
  %r = "stablehlo.complex"(%a, %b) : (tensor<2xf32>, tensor<3xf32>) -> tensor<2xcomplex<f32>>
  return %r : tensor<2xcomplex<f32>>
}

// -----

// expected: V0701 stablehlo.complex: (C2) the result is tensor<3xcomplex<f32>>, and its shape must be [2]
func.func @main(%a: tensor<2xf32>, %b: tensor<2xf32>) -> (tensor<3xcomplex<f32>>) {
  %r = "stablehlo.complex"(%a, %b) : (tensor<2xf32>, tensor<2xf32>) -> tensor<3xcomplex<f32>>
  return %r : tensor<3xcomplex<f32>>
}

// -----

// expected: V0701 stablehlo.complex: (C3) the result of tensor<2xf32> is tensor<2xcomplex<f64>>
func.func @main(%a: tensor<2xf32>, %b: tensor<2xf32>) -> (tensor<2xcomplex<f64>>) {
  %r = "stablehlo.complex"(%a, %b) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xcomplex<f64>>
  return %r : tensor<2xcomplex<f64>>
}

// -----

// expected: V0701 stablehlo.compare: (C1) elements are of different types, tensor<2xf32> and tensor<2xi32>
func.func @main(%a: tensor<2xf32>, %b: tensor<2xi32>) -> (tensor<2xi1>) {
  %r = "stablehlo.compare"(%a, %b) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<2xf32>, tensor<2xi32>) -> tensor<2xi1>
  return %r : tensor<2xi1>
}

// -----

// expected: V0701 stablehlo.compare: (C2) operands are tensor<2xf32> and tensor<3xf32>
func.func @main(%a: tensor<2xf32>, %b: tensor<3xf32>) -> (tensor<2xi1>) {
  %r = "stablehlo.compare"(%a, %b) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<2xf32>, tensor<3xf32>) -> tensor<2xi1>
  return %r : tensor<2xi1>
}

// -----

// expected: V0701 stablehlo.compare: (C2) the result is tensor<3xi1>, and its shape must be [2]
func.func @main(%a: tensor<2xf32>, %b: tensor<2xf32>) -> (tensor<3xi1>) {
  %r = "stablehlo.compare"(%a, %b) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<2xf32>, tensor<2xf32>) -> tensor<3xi1>
  return %r : tensor<3xi1>
}

// -----

// expected: V0701 stablehlo.compare: (C3) SIGNED of tensor<2xf32>
func.func @main(%a: tensor<2xf32>, %b: tensor<2xf32>) -> (tensor<2xi1>) {
  %r = "stablehlo.compare"(%a, %b) <{comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type SIGNED>}> : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>
  return %r : tensor<2xi1>
}

// -----

// expected: V0701 stablehlo.clamp: (C1) a bound has neither rank 0 nor the shape of the operand
func.func @main(%a: tensor<3xf32>, %b: tensor<2xf32>, %c: tensor<f32>) -> (tensor<2xf32>) {
  %r = "stablehlo.clamp"(%a, %b, %c) : (tensor<3xf32>, tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

// expected: V0701 stablehlo.clamp: (C2) a bound has neither rank 0 nor the shape of the operand
func.func @main(%a: tensor<f32>, %b: tensor<2xf32>, %c: tensor<3xf32>) -> (tensor<2xf32>) {
  %r = "stablehlo.clamp"(%a, %b, %c) : (tensor<f32>, tensor<2xf32>, tensor<3xf32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

// expected: V0701 stablehlo.clamp: (C3) elements are of different types, tensor<i32> and tensor<2xf32>
func.func @main(%a: tensor<i32>, %b: tensor<2xf32>, %c: tensor<f32>) -> (tensor<2xf32>) {
  %r = "stablehlo.clamp"(%a, %b, %c) : (tensor<i32>, tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

// expected: V0701 stablehlo.clamp: (C4) the result is tensor<3xf32>, not tensor<2xf32>
func.func @main(%a: tensor<f32>, %b: tensor<2xf32>, %c: tensor<f32>) -> (tensor<3xf32>) {
  %r = "stablehlo.clamp"(%a, %b, %c) : (tensor<f32>, tensor<2xf32>, tensor<f32>) -> tensor<3xf32>
  return %r : tensor<3xf32>
}

// -----

// expected: V0701 stablehlo.select: (C1) the predicate has neither rank 0 nor the shape of the operands
func.func @main(%a: tensor<3xi1>, %b: tensor<2xf32>, %c: tensor<2xf32>) -> (tensor<2xf32>) {
  %r = "stablehlo.select"(%a, %b, %c) : (tensor<3xi1>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

// expected: V0701 stablehlo.select: (I1) elements of tensor<2xi32> are not boolean
func.func @main(%a: tensor<2xi32>, %b: tensor<2xf32>, %c: tensor<2xf32>) -> (tensor<2xf32>) {
  %r = "stablehlo.select"(%a, %b, %c) : (tensor<2xi32>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

// expected: V0701 stablehlo.select: (C2) the third operand is tensor<3xf32>, not tensor<2xf32>
func.func @main(%a: tensor<2xi1>, %b: tensor<2xf32>, %c: tensor<3xf32>) -> (tensor<2xf32>) {
  %r = "stablehlo.select"(%a, %b, %c) : (tensor<2xi1>, tensor<2xf32>, tensor<3xf32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

// expected: V0701 stablehlo.select: (C2) the result is tensor<2xi32>, not tensor<2xf32>
func.func @main(%a: tensor<2xi1>, %b: tensor<2xf32>, %c: tensor<2xf32>) -> (tensor<2xi32>) {
  %r = "stablehlo.select"(%a, %b, %c) : (tensor<2xi1>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xi32>
  return %r : tensor<2xi32>
}

// -----

// expected: V0701 stablehlo.reduce_precision: (I1) elements of tensor<2xi32> are not floating-point
func.func @main(%a: tensor<2xi32>) -> (tensor<2xi32>) {
  %r = "stablehlo.reduce_precision"(%a) <{exponent_bits = 5 : i32, mantissa_bits = 10 : i32}> : (tensor<2xi32>) -> tensor<2xi32>
  return %r : tensor<2xi32>
}

// -----

// expected: V0701 stablehlo.reduce_precision: (C1) the result is tensor<3xf32>, not tensor<2xf32>
func.func @main(%a: tensor<2xf32>) -> (tensor<3xf32>) {
  %r = "stablehlo.reduce_precision"(%a) <{exponent_bits = 5 : i32, mantissa_bits = 10 : i32}> : (tensor<2xf32>) -> tensor<3xf32>
  return %r : tensor<3xf32>
}

// -----

// expected: V0701 stablehlo.reduce_precision: (C2) 0 bits of exponent
func.func @main(%a: tensor<2xf32>) -> (tensor<2xf32>) {
  %r = "stablehlo.reduce_precision"(%a) <{exponent_bits = 0 : i32, mantissa_bits = 10 : i32}> : (tensor<2xf32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

// expected: V0701 stablehlo.reduce_precision: (C3) -1 bits of mantissa
func.func @main(%a: tensor<2xf32>) -> (tensor<2xf32>) {
  %r = "stablehlo.reduce_precision"(%a) <{exponent_bits = 5 : i32, mantissa_bits = -1 : i32}> : (tensor<2xf32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

// expected: V0701 stablehlo.bitcast_convert: (C1) the bits of tensor<2xf32> are not those of tensor<3xi32>
func.func @main(%a: tensor<2xf32>) -> (tensor<3xi32>) {
  %r = "stablehlo.bitcast_convert"(%a) : (tensor<2xf32>) -> tensor<3xi32>
  return %r : tensor<3xi32>
}

// -----

// expected: V0701 stablehlo.bitcast_convert: (C1) the bits of tensor<2xf32> are not those of tensor<2x3xi8>
func.func @main(%a: tensor<2xf32>) -> (tensor<2x3xi8>) {
  %r = "stablehlo.bitcast_convert"(%a) : (tensor<2xf32>) -> tensor<2x3xi8>
  return %r : tensor<2x3xi8>
}

// -----

// expected: V0701 stablehlo.bitcast_convert: (C2) from tensor<2xcomplex<f32>> to tensor<2xi64>
func.func @main(%a: tensor<2xcomplex<f32>>) -> (tensor<2xi64>) {
  %r = "stablehlo.bitcast_convert"(%a) : (tensor<2xcomplex<f32>>) -> tensor<2xi64>
  return %r : tensor<2xi64>
}

// -----

// expected: V0701 stablehlo.iota: (C1) dimension 1 of a result of rank 1
func.func @main() -> (tensor<2xi32>) {
  %r = "stablehlo.iota"() <{iota_dimension = 1 : i64}> : () -> tensor<2xi32>
  return %r : tensor<2xi32>
}

// -----

// expected: V0701 stablehlo.broadcast_in_dim: (C1) elements are of different types, tensor<2xf32> and tensor<2x3xi32>
func.func @main(%a: tensor<2xf32>) -> (tensor<2x3xi32>) {
  %r = "stablehlo.broadcast_in_dim"(%a) <{broadcast_dimensions = array<i64: 0>}> : (tensor<2xf32>) -> tensor<2x3xi32>
  return %r : tensor<2x3xi32>
}

// -----

// expected: V0701 stablehlo.broadcast_in_dim: (C2) 2 broadcast dimensions of an operand of rank 1
func.func @main(%a: tensor<2xf32>) -> (tensor<2x3xf32>) {
  %r = "stablehlo.broadcast_in_dim"(%a) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<2xf32>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// expected: V0701 stablehlo.broadcast_in_dim: (C3) dimension 2 is none of the result's
func.func @main(%a: tensor<2xf32>) -> (tensor<2x3xf32>) {
  %r = "stablehlo.broadcast_in_dim"(%a) <{broadcast_dimensions = array<i64: 2>}> : (tensor<2xf32>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// expected: V0701 stablehlo.broadcast_in_dim: (C4) dimension 0 is named twice
func.func @main(%a: tensor<2x2xf32>) -> (tensor<2x3xf32>) {
  %r = "stablehlo.broadcast_in_dim"(%a) <{broadcast_dimensions = array<i64: 0, 0>}> : (tensor<2x2xf32>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// expected: V0701 stablehlo.broadcast_in_dim: (C5) dimension 0 of size 2 for dimension 0 of size 3
func.func @main(%a: tensor<2xf32>) -> (tensor<3x4xf32>) {
  %r = "stablehlo.broadcast_in_dim"(%a) <{broadcast_dimensions = array<i64: 0>}> : (tensor<2xf32>) -> tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}

// -----

// expected: V0701 stablehlo.concatenate: (C1) elements are of different types, tensor<2xf32> and tensor<2xi32>
func.func @main(%a: tensor<2xf32>, %b: tensor<2xi32>) -> (tensor<4xf32>) {
  %r = "stablehlo.concatenate"(%a, %b) <{dimension = 0 : i64}> : (tensor<2xf32>, tensor<2xi32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// expected: V0701 stablehlo.concatenate: (C2) operands are tensor<2x3xf32> and tensor<2x4xf32>
func.func @main(%a: tensor<2x3xf32>, %b: tensor<2x4xf32>) -> (tensor<4x3xf32>) {
  %r = "stablehlo.concatenate"(%a, %b) <{dimension = 0 : i64}> : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<4x3xf32>
  return %r : tensor<4x3xf32>
}

// -----

// expected: V0701 stablehlo.concatenate: (C3) there is no operand
func.func @main() -> (tensor<4xf32>) {
  %r = "stablehlo.concatenate"() <{dimension = 0 : i64}> : () -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// expected: V0701 stablehlo.concatenate: (C4) dimension 1 of operands of rank 1
func.func @main(%a: tensor<2xf32>) -> (tensor<2xf32>) {
  %r = "stablehlo.concatenate"(%a) <{dimension = 1 : i64}> : (tensor<2xf32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

// expected: V0701 stablehlo.concatenate: (C5) elements are of different types, tensor<2xf32> and tensor<4xi32>
func.func @main(%a: tensor<2xf32>, %b: tensor<2xf32>) -> (tensor<4xi32>) {
  %r = "stablehlo.concatenate"(%a, %b) <{dimension = 0 : i64}> : (tensor<2xf32>, tensor<2xf32>) -> tensor<4xi32>
  return %r : tensor<4xi32>
}

// -----

// expected: V0701 stablehlo.concatenate: (C6) the result is tensor<5xf32>, and its shape must be [4]
func.func @main(%a: tensor<2xf32>, %b: tensor<2xf32>) -> (tensor<5xf32>) {
  %r = "stablehlo.concatenate"(%a, %b) <{dimension = 0 : i64}> : (tensor<2xf32>, tensor<2xf32>) -> tensor<5xf32>
  return %r : tensor<5xf32>
}

// -----

// expected: V0701 stablehlo.pad: (C1) elements are of different types, tensor<2xf32> and tensor<i32>
func.func @main(%a: tensor<2xf32>, %b: tensor<i32>) -> (tensor<4xf32>) {
  %r = "stablehlo.pad"(%a, %b) <{edge_padding_low = array<i64: 1>, edge_padding_high = array<i64: 1>, interior_padding = array<i64: 0>}> : (tensor<2xf32>, tensor<i32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// expected: V0701 stablehlo.pad: (I2) the padding value is tensor<1xf32>
func.func @main(%a: tensor<2xf32>, %b: tensor<1xf32>) -> (tensor<4xf32>) {
  %r = "stablehlo.pad"(%a, %b) <{edge_padding_low = array<i64: 1>, edge_padding_high = array<i64: 1>, interior_padding = array<i64: 0>}> : (tensor<2xf32>, tensor<1xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// expected: V0701 stablehlo.pad: (C2) paddings are not as many as dimensions, 1
func.func @main(%a: tensor<2xf32>, %b: tensor<f32>) -> (tensor<4xf32>) {
  %r = "stablehlo.pad"(%a, %b) <{edge_padding_low = array<i64: 1, 0>, edge_padding_high = array<i64: 1>, interior_padding = array<i64: 0>}> : (tensor<2xf32>, tensor<f32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// expected: V0701 stablehlo.pad: (C3) interior padding -1
func.func @main(%a: tensor<2xf32>, %b: tensor<f32>) -> (tensor<4xf32>) {
  %r = "stablehlo.pad"(%a, %b) <{edge_padding_low = array<i64: 1>, edge_padding_high = array<i64: 1>, interior_padding = array<i64: -1>}> : (tensor<2xf32>, tensor<f32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// expected: V0701 stablehlo.pad: (C4) the result is tensor<5xf32>, and its shape must be [4]
func.func @main(%a: tensor<2xf32>, %b: tensor<f32>) -> (tensor<5xf32>) {
  %r = "stablehlo.pad"(%a, %b) <{edge_padding_low = array<i64: 1>, edge_padding_high = array<i64: 1>, interior_padding = array<i64: 0>}> : (tensor<2xf32>, tensor<f32>) -> tensor<5xf32>
  return %r : tensor<5xf32>
}

// -----

// expected: V0701 stablehlo.reshape: (C1) elements are of different types, tensor<2xf32> and tensor<2xi32>
func.func @main(%a: tensor<2xf32>) -> (tensor<2xi32>) {
  %r = "stablehlo.reshape"(%a) : (tensor<2xf32>) -> tensor<2xi32>
  return %r : tensor<2xi32>
}

// -----

// expected: V0701 stablehlo.reshape: (C2) the operand has another number of elements than the result
func.func @main(%a: tensor<2xf32>) -> (tensor<3xf32>) {
  %r = "stablehlo.reshape"(%a) : (tensor<2xf32>) -> tensor<3xf32>
  return %r : tensor<3xf32>
}

// -----

// expected: V0701 stablehlo.reverse: (C1) the result is tensor<3xf32>, not tensor<2xf32>
func.func @main(%a: tensor<2xf32>) -> (tensor<3xf32>) {
  %r = "stablehlo.reverse"(%a) <{dimensions = array<i64: 0>}> : (tensor<2xf32>) -> tensor<3xf32>
  return %r : tensor<3xf32>
}

// -----

// expected: V0701 stablehlo.reverse: (C2) dimension 0 is named twice
func.func @main(%a: tensor<2xf32>) -> (tensor<2xf32>) {
  %r = "stablehlo.reverse"(%a) <{dimensions = array<i64: 0, 0>}> : (tensor<2xf32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

// expected: V0701 stablehlo.reverse: (C3) dimension 1 of an operand of rank 1
func.func @main(%a: tensor<2xf32>) -> (tensor<2xf32>) {
  %r = "stablehlo.reverse"(%a) <{dimensions = array<i64: 1>}> : (tensor<2xf32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

// expected: V0701 stablehlo.slice: (C1) elements are of different types, tensor<4xf32> and tensor<2xi32>
func.func @main(%a: tensor<4xf32>) -> (tensor<2xi32>) {
  %r = "stablehlo.slice"(%a) <{start_indices = array<i64: 0>, limit_indices = array<i64: 2>, strides = array<i64: 1>}> : (tensor<4xf32>) -> tensor<2xi32>
  return %r : tensor<2xi32>
}

// -----

// expected: V0701 stablehlo.slice: (C2) indices are not as many as dimensions, 1
func.func @main(%a: tensor<4xf32>) -> (tensor<2xf32>) {
  %r = "stablehlo.slice"(%a) <{start_indices = array<i64: 0>, limit_indices = array<i64: 2>, strides = array<i64: 1, 1>}> : (tensor<4xf32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

// expected: V0701 stablehlo.slice: (C3) [3:2] of dimension 0 of size 4
func.func @main(%a: tensor<4xf32>) -> (tensor<2xf32>) {
  %r = "stablehlo.slice"(%a) <{start_indices = array<i64: 3>, limit_indices = array<i64: 2>, strides = array<i64: 1>}> : (tensor<4xf32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

// expected: V0701 stablehlo.slice: (C4) stride 0 of dimension 0
func.func @main(%a: tensor<4xf32>) -> (tensor<2xf32>) {
  %r = "stablehlo.slice"(%a) <{start_indices = array<i64: 0>, limit_indices = array<i64: 2>, strides = array<i64: 0>}> : (tensor<4xf32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

// expected: V0701 stablehlo.slice: (C5) the result is tensor<3xf32>, and its shape must be [2]
func.func @main(%a: tensor<4xf32>) -> (tensor<3xf32>) {
  %r = "stablehlo.slice"(%a) <{start_indices = array<i64: 0>, limit_indices = array<i64: 2>, strides = array<i64: 1>}> : (tensor<4xf32>) -> tensor<3xf32>
  return %r : tensor<3xf32>
}

// -----

// expected: V0701 stablehlo.slice: (C3) [0:5] of dimension 0 of size 4
func.func @main(%a: tensor<4xf32>) -> (tensor<5xf32>) {
  %r = "stablehlo.slice"(%a) <{start_indices = array<i64: 0>, limit_indices = array<i64: 5>, strides = array<i64: 1>}> : (tensor<4xf32>) -> tensor<5xf32>
  return %r : tensor<5xf32>
}

// -----

// expected: V0701 stablehlo.transpose: (C1) elements are of different types, tensor<2x3xf32> and tensor<3x2xi32>
func.func @main(%a: tensor<2x3xf32>) -> (tensor<3x2xi32>) {
  %r = "stablehlo.transpose"(%a) <{permutation = array<i64: 1, 0>}> : (tensor<2x3xf32>) -> tensor<3x2xi32>
  return %r : tensor<3x2xi32>
}

// -----

// expected: V0701 stablehlo.transpose: (C2) [1, 1] is no permutation of the dimensions
func.func @main(%a: tensor<2x3xf32>) -> (tensor<3x2xf32>) {
  %r = "stablehlo.transpose"(%a) <{permutation = array<i64: 1, 1>}> : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return %r : tensor<3x2xf32>
}

// -----

// expected: V0701 stablehlo.transpose: (C3) the result is tensor<2x3xf32>, and its shape must be [3, 2]
func.func @main(%a: tensor<2x3xf32>) -> (tensor<2x3xf32>) {
  %r = "stablehlo.transpose"(%a) <{permutation = array<i64: 1, 0>}> : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// expected: V0701 stablehlo.get_dimension_size: (C1) dimension 1 of an operand of rank 1
func.func @main(%a: tensor<2xf32>) -> (tensor<i32>) {
  %r = "stablehlo.get_dimension_size"(%a) <{dimension = 1 : i64}> : (tensor<2xf32>) -> tensor<i32>
  return %r : tensor<i32>
}

// -----

// expected: V0701 stablehlo.set_dimension_size: (C1) dimension 1 of an operand of rank 1
func.func @main(%a: tensor<2xf32>, %b: tensor<i32>) -> (tensor<?xf32, #stablehlo.bounds<2>>) {
  %r = "stablehlo.set_dimension_size"(%a, %b) <{dimension = 1 : i64}> : (tensor<2xf32>, tensor<i32>) -> tensor<?xf32, #stablehlo.bounds<2>>
  return %r : tensor<?xf32, #stablehlo.bounds<2>>
}

// -----

// expected: V0701 stablehlo.dynamic_slice: (C1) elements are of different types, tensor<4xf32> and tensor<2xi32>
func.func @main(%a: tensor<4xf32>, %b: tensor<i32>) -> (tensor<2xi32>) {
  %r = "stablehlo.dynamic_slice"(%a, %b) <{slice_sizes = array<i64: 2>}> : (tensor<4xf32>, tensor<i32>) -> tensor<2xi32>
  return %r : tensor<2xi32>
}

// -----

// expected: V0701 stablehlo.dynamic_slice: (C2) 2 start indices and 1 sizes of rank 1
func.func @main(%a: tensor<4xf32>, %b: tensor<i32>, %c: tensor<i32>) -> (tensor<2xf32>) {
  %r = "stablehlo.dynamic_slice"(%a, %b, %c) <{slice_sizes = array<i64: 2>}> : (tensor<4xf32>, tensor<i32>, tensor<i32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_slice: (C3) elements are of different types, tensor<i32> and tensor<i64>
func.func @main(%a: tensor<4x4xf32>, %b: tensor<i32>, %c: tensor<i64>) -> (tensor<2x2xf32>) {
  %r = "stablehlo.dynamic_slice"(%a, %b, %c) <{slice_sizes = array<i64: 2, 2>}> : (tensor<4x4xf32>, tensor<i32>, tensor<i64>) -> tensor<2x2xf32>
  return %r : tensor<2x2xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_slice: (C4) a slice of 5 of dimension 0 of size 4
func.func @main(%a: tensor<4xf32>, %b: tensor<i32>) -> (tensor<5xf32>) {
  %r = "stablehlo.dynamic_slice"(%a, %b) <{slice_sizes = array<i64: 5>}> : (tensor<4xf32>, tensor<i32>) -> tensor<5xf32>
  return %r : tensor<5xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_slice: (C5) the result is tensor<3xf32>, and its shape must be [2]
func.func @main(%a: tensor<4xf32>, %b: tensor<i32>) -> (tensor<3xf32>) {
  %r = "stablehlo.dynamic_slice"(%a, %b) <{slice_sizes = array<i64: 2>}> : (tensor<4xf32>, tensor<i32>) -> tensor<3xf32>
  return %r : tensor<3xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_slice: (I2) elements of tensor<f32> are not signed integer, unsigned integer
func.func @main(%a: tensor<4xf32>, %b: tensor<f32>) -> (tensor<2xf32>) {
  %r = "stablehlo.dynamic_slice"(%a, %b) <{slice_sizes = array<i64: 2>}> : (tensor<4xf32>, tensor<f32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_update_slice: (C1) the result is tensor<5xf32>, not tensor<4xf32>
func.func @main(%a: tensor<4xf32>, %b: tensor<2xf32>, %c: tensor<i32>) -> (tensor<5xf32>) {
  %r = "stablehlo.dynamic_update_slice"(%a, %b, %c) : (tensor<4xf32>, tensor<2xf32>, tensor<i32>) -> tensor<5xf32>
  return %r : tensor<5xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_update_slice: (C2) elements are of different types, tensor<2xi32> and tensor<4xf32>
func.func @main(%a: tensor<4xf32>, %b: tensor<2xi32>, %c: tensor<i32>) -> (tensor<4xf32>) {
  %r = "stablehlo.dynamic_update_slice"(%a, %b, %c) : (tensor<4xf32>, tensor<2xi32>, tensor<i32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_update_slice: (C3) the update has another rank than the operand
func.func @main(%a: tensor<4xf32>, %b: tensor<2x1xf32>, %c: tensor<i32>) -> (tensor<4xf32>) {
  %r = "stablehlo.dynamic_update_slice"(%a, %b, %c) : (tensor<4xf32>, tensor<2x1xf32>, tensor<i32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_update_slice: (C4) 2 start indices of rank 1
func.func @main(%a: tensor<4xf32>, %b: tensor<2xf32>, %c: tensor<i32>, %d: tensor<i32>) -> (tensor<4xf32>) {
  %r = "stablehlo.dynamic_update_slice"(%a, %b, %c, %d) : (tensor<4xf32>, tensor<2xf32>, tensor<i32>, tensor<i32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_update_slice: (C5) elements are of different types, tensor<i32> and tensor<i64>
func.func @main(%a: tensor<4x4xf32>, %b: tensor<2x2xf32>, %c: tensor<i32>, %d: tensor<i64>) -> (tensor<4x4xf32>) {
  %r = "stablehlo.dynamic_update_slice"(%a, %b, %c, %d) : (tensor<4x4xf32>, tensor<2x2xf32>, tensor<i32>, tensor<i64>) -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_update_slice: (C6) an update of 5 in dimension 0 of size 4
func.func @main(%a: tensor<4xf32>, %b: tensor<5xf32>, %c: tensor<i32>) -> (tensor<4xf32>) {
  %r = "stablehlo.dynamic_update_slice"(%a, %b, %c) : (tensor<4xf32>, tensor<5xf32>, tensor<i32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_update_slice: (I3) elements of tensor<f32> are not signed integer, unsigned integer
func.func @main(%a: tensor<4xf32>, %b: tensor<2xf32>, %c: tensor<f32>) -> (tensor<4xf32>) {
  %r = "stablehlo.dynamic_update_slice"(%a, %b, %c) : (tensor<4xf32>, tensor<2xf32>, tensor<f32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// expected: V0701 stablehlo.gather: (C22) the result is tensor<2x2xf32>, and its shape must be [2, 3]
func.func @main(%a: tensor<4x3xf32>, %b: tensor<2x1xi32>) -> (tensor<2x2xf32>) {
  %r = "stablehlo.gather"(%a, %b) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], operand_batching_dims = [], start_indices_batching_dims = [], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 3>}> : (tensor<4x3xf32>, tensor<2x1xi32>) -> tensor<2x2xf32>
  return %r : tensor<2x2xf32>
}

// -----

// expected: V0701 stablehlo.gather: (C1) 1 dimensions of slices of an operand of rank 2
func.func @main(%a: tensor<4x3xf32>, %b: tensor<2x1xi32>) -> (tensor<2x3xf32>) {
  %r = "stablehlo.gather"(%a, %b) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [], operand_batching_dims = [], start_indices_batching_dims = [], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 3>}> : (tensor<4x3xf32>, tensor<2x1xi32>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// expected: V0701 stablehlo.gather: (C2) index vectors along 3 of rank 2
func.func @main(%a: tensor<4x3xf32>, %b: tensor<2x1xi32>) -> (tensor<2x3xf32>) {
  %r = "stablehlo.gather"(%a, %b) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], operand_batching_dims = [], start_indices_batching_dims = [], start_index_map = [0], index_vector_dim = 3>, slice_sizes = array<i64: 1, 3>}> : (tensor<4x3xf32>, tensor<2x1xi32>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// expected: V0701 stablehlo.gather: (C3) 1 numbers of each index for 2 dimensions
func.func @main(%a: tensor<4x3xf32>, %b: tensor<2x1xi32>) -> (tensor<2x3xf32>) {
  %r = "stablehlo.gather"(%a, %b) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], operand_batching_dims = [], start_indices_batching_dims = [], start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 3>}> : (tensor<4x3xf32>, tensor<2x1xi32>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// expected: V0701 stablehlo.gather: (C4) offset dimensions [2, 1] are not ascending
func.func @main(%a: tensor<4x3xf32>, %b: tensor<2x1xi32>) -> (tensor<2x1x3xf32>) {
  %r = "stablehlo.gather"(%a, %b) <{dimension_numbers = #stablehlo.gather<offset_dims = [2, 1], collapsed_slice_dims = [], operand_batching_dims = [], start_indices_batching_dims = [], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 3>}> : (tensor<4x3xf32>, tensor<2x1xi32>) -> tensor<2x1x3xf32>
  return %r : tensor<2x1x3xf32>
}

// -----

// expected: V0701 stablehlo.gather: (C5) offset dimensions [2] of a result of rank 2
func.func @main(%a: tensor<4x3xf32>, %b: tensor<2x1xi32>) -> (tensor<2x3xf32>) {
  %r = "stablehlo.gather"(%a, %b) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], operand_batching_dims = [], start_indices_batching_dims = [], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 3>}> : (tensor<4x3xf32>, tensor<2x1xi32>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// expected: V0701 stablehlo.gather: (C6) dimensions [0, 0] name one twice
func.func @main(%a: tensor<4x3xf32>, %b: tensor<2x1xi32>) -> (tensor<2xf32>) {
  %r = "stablehlo.gather"(%a, %b) <{dimension_numbers = #stablehlo.gather<offset_dims = [], collapsed_slice_dims = [0, 0], operand_batching_dims = [], start_indices_batching_dims = [], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 3>}> : (tensor<4x3xf32>, tensor<2x1xi32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

// expected: V0701 stablehlo.gather: (C7) collapsed dimensions [1, 0] are not ascending
func.func @main(%a: tensor<4x3xf32>, %b: tensor<2x1xi32>) -> (tensor<2xf32>) {
  %r = "stablehlo.gather"(%a, %b) <{dimension_numbers = #stablehlo.gather<offset_dims = [], collapsed_slice_dims = [1, 0], operand_batching_dims = [], start_indices_batching_dims = [], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}> : (tensor<4x3xf32>, tensor<2x1xi32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

// expected: V0701 stablehlo.gather: (C8) collapsed dimensions [2] of rank 2
func.func @main(%a: tensor<4x3xf32>, %b: tensor<2x1xi32>) -> (tensor<2x3xf32>) {
  %r = "stablehlo.gather"(%a, %b) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [2], operand_batching_dims = [], start_indices_batching_dims = [], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 3>}> : (tensor<4x3xf32>, tensor<2x1xi32>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// expected: V0701 stablehlo.gather: (C9) a collapsed dimension of a size over 1
func.func @main(%a: tensor<4x3xf32>, %b: tensor<2x1xi32>) -> (tensor<2x3xf32>) {
  %r = "stablehlo.gather"(%a, %b) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], operand_batching_dims = [], start_indices_batching_dims = [], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 2, 3>}> : (tensor<4x3xf32>, tensor<2x1xi32>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// expected: V0701 stablehlo.gather: (C10) batching dimensions [1, 0] are not ascending
func.func @main(%a: tensor<2x2xf32>, %b: tensor<2x2x0xi32>) -> (tensor<2x2xf32>) {
  %r = "stablehlo.gather"(%a, %b) <{dimension_numbers = #stablehlo.gather<offset_dims = [], collapsed_slice_dims = [], operand_batching_dims = [1, 0], start_indices_batching_dims = [0, 1], start_index_map = [], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1>}> : (tensor<2x2xf32>, tensor<2x2x0xi32>) -> tensor<2x2xf32>
  return %r : tensor<2x2xf32>
}

// -----

// expected: V0701 stablehlo.gather: (C11) batching dimensions [2] of rank 2
func.func @main(%a: tensor<2x3xf32>, %b: tensor<2x1xi32>) -> (tensor<2x1xf32>) {
  %r = "stablehlo.gather"(%a, %b) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [], operand_batching_dims = [2], start_indices_batching_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 3>}> : (tensor<2x3xf32>, tensor<2x1xi32>) -> tensor<2x1xf32>
  return %r : tensor<2x1xf32>
}

// -----

// expected: V0701 stablehlo.gather: (C12) a batching dimension of a size over 1
func.func @main(%a: tensor<2x3xf32>, %b: tensor<2x1xi32>) -> (tensor<2x3xf32>) {
  %r = "stablehlo.gather"(%a, %b) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 1>, slice_sizes = array<i64: 2, 3>}> : (tensor<2x3xf32>, tensor<2x1xi32>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// expected: V0701 stablehlo.gather: (C13) dimensions [0, 0] name one twice
func.func @main(%a: tensor<2x2xf32>, %b: tensor<2x2x0xi32>) -> (tensor<2x2xf32>) {
  %r = "stablehlo.gather"(%a, %b) <{dimension_numbers = #stablehlo.gather<offset_dims = [], collapsed_slice_dims = [], operand_batching_dims = [0, 1], start_indices_batching_dims = [0, 0], start_index_map = [], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1>}> : (tensor<2x2xf32>, tensor<2x2x0xi32>) -> tensor<2x2xf32>
  return %r : tensor<2x2xf32>
}

// -----

// expected: V0701 stablehlo.gather: (C14) dimensions [4] of indices of rank 2
func.func @main(%a: tensor<2x3xf32>, %b: tensor<2x1xi32>) -> (tensor<2x3xf32>) {
  %r = "stablehlo.gather"(%a, %b) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [], operand_batching_dims = [0], start_indices_batching_dims = [4], start_index_map = [1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 3>}> : (tensor<2x3xf32>, tensor<2x1xi32>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// expected: V0701 stablehlo.gather: (C15) dimension 1 is that of index vectors and of batches
func.func @main(%a: tensor<1x3xf32>, %b: tensor<2x1xi32>) -> (tensor<2x3xf32>) {
  %r = "stablehlo.gather"(%a, %b) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [], operand_batching_dims = [0], start_indices_batching_dims = [1], start_index_map = [1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 3>}> : (tensor<1x3xf32>, tensor<2x1xi32>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// expected: V0701 stablehlo.gather: (C16) batches along [0] and []
func.func @main(%a: tensor<2x3xf32>, %b: tensor<2x1xi32>) -> (tensor<2x3xf32>) {
  %r = "stablehlo.gather"(%a, %b) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [], operand_batching_dims = [0], start_indices_batching_dims = [], start_index_map = [1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 3>}> : (tensor<2x3xf32>, tensor<2x1xi32>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// expected: V0701 stablehlo.gather: (C17) batches of operand and indices have different sizes
func.func @main(%a: tensor<3x3xf32>, %b: tensor<2x1xi32>) -> (tensor<2x3xf32>) {
  %r = "stablehlo.gather"(%a, %b) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 3>}> : (tensor<3x3xf32>, tensor<2x1xi32>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// expected: V0701 stablehlo.gather: (C18) dimensions [0, 0] name one twice
func.func @main(%a: tensor<2x3xf32>, %b: tensor<2x1xi32>) -> (tensor<2x3xf32>) {
  %r = "stablehlo.gather"(%a, %b) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 3>}> : (tensor<2x3xf32>, tensor<2x1xi32>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// expected: V0701 stablehlo.gather: (C19) indices of dimensions [2] of rank 2
func.func @main(%a: tensor<4x3xf32>, %b: tensor<2x1xi32>) -> (tensor<2x3xf32>) {
  %r = "stablehlo.gather"(%a, %b) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], operand_batching_dims = [], start_indices_batching_dims = [], start_index_map = [2], index_vector_dim = 1>, slice_sizes = array<i64: 1, 3>}> : (tensor<4x3xf32>, tensor<2x1xi32>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// expected: V0701 stablehlo.gather: (C20) 1 slice sizes of rank 2
func.func @main(%a: tensor<4x3xf32>, %b: tensor<2x1xi32>) -> (tensor<2x3xf32>) {
  %r = "stablehlo.gather"(%a, %b) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], operand_batching_dims = [], start_indices_batching_dims = [], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>}> : (tensor<4x3xf32>, tensor<2x1xi32>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// expected: V0701 stablehlo.gather: (C21) slices of [1, 4] of tensor<4x3xf32>
func.func @main(%a: tensor<4x3xf32>, %b: tensor<2x1xi32>) -> (tensor<2x4xf32>) {
  %r = "stablehlo.gather"(%a, %b) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], operand_batching_dims = [], start_indices_batching_dims = [], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>}> : (tensor<4x3xf32>, tensor<2x1xi32>) -> tensor<2x4xf32>
  return %r : tensor<2x4xf32>
}

// -----

// expected: V0701 stablehlo.gather: (C23) elements are of different types, tensor<4x3xf32> and tensor<2x3xi32>
func.func @main(%a: tensor<4x3xf32>, %b: tensor<2x1xi32>) -> (tensor<2x3xi32>) {
  %r = "stablehlo.gather"(%a, %b) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], operand_batching_dims = [], start_indices_batching_dims = [], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 3>}> : (tensor<4x3xf32>, tensor<2x1xi32>) -> tensor<2x3xi32>
  return %r : tensor<2x3xi32>
}

// -----

// expected: V0701 stablehlo.gather: (I2) elements of tensor<2x1xf32> are not signed integer, unsigned integer
func.func @main(%a: tensor<4x3xf32>, %b: tensor<2x1xf32>) -> (tensor<2x3xf32>) {
  %r = "stablehlo.gather"(%a, %b) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], operand_batching_dims = [], start_indices_batching_dims = [], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 3>}> : (tensor<4x3xf32>, tensor<2x1xf32>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// expected: V0701 stablehlo.dot_general: (C1) the sides have different numbers of batching dimensions
func.func @main(%a: tensor<2x3xf32>, %b: tensor<3x4xf32>) -> (tensor<2x4xf32>) {
  %r = "stablehlo.dot_general"(%a, %b) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return %r : tensor<2x4xf32>
}

// -----

// expected: V0701 stablehlo.dot_general: (C2) the sides have different numbers of contracting dimensions
func.func @main(%a: tensor<2x3xf32>, %b: tensor<3x4xf32>) -> (tensor<2x4xf32>) {
  %r = "stablehlo.dot_general"(%a, %b) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = []>}> : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return %r : tensor<2x4xf32>
}

// -----

// expected: V0701 stablehlo.dot_general: (C3) dimension 1 is named twice
func.func @main(%a: tensor<2x3xf32>, %b: tensor<3x3xf32>) -> (tensor<3xf32>) {
  %r = "stablehlo.dot_general"(%a, %b) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [1], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>}> : (tensor<2x3xf32>, tensor<3x3xf32>) -> tensor<3xf32>
  return %r : tensor<3xf32>
}

// -----

// expected: V0701 stablehlo.dot_general: (C4) dimension 0 is named twice
func.func @main(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) -> (tensor<2x3xf32>) {
  %r = "stablehlo.dot_general"(%a, %b) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// expected: V0701 stablehlo.dot_general: (C5) dimension 2 of an operand of rank 2
func.func @main(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) -> (tensor<2xf32>) {
  %r = "stablehlo.dot_general"(%a, %b) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [2], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>}> : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

// expected: V0701 stablehlo.dot_general: (C6) dimension 2 of an operand of rank 2
func.func @main(%a: tensor<2x3xf32>, %b: tensor<3x4xf32>) -> (tensor<2x4xf32>) {
  %r = "stablehlo.dot_general"(%a, %b) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>}> : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return %r : tensor<2x4xf32>
}

// -----

// expected: V0701 stablehlo.dot_general: (C7) dimension 2 of an operand of rank 2
func.func @main(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) -> (tensor<2xf32>) {
  %r = "stablehlo.dot_general"(%a, %b) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [2], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>}> : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

// expected: V0701 stablehlo.dot_general: (C8) dimension 2 of an operand of rank 2
func.func @main(%a: tensor<2x3xf32>, %b: tensor<3x4xf32>) -> (tensor<2x4xf32>) {
  %r = "stablehlo.dot_general"(%a, %b) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [2]>}> : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return %r : tensor<2x4xf32>
}

// -----

// expected: V0701 stablehlo.dot_general: (C9) dimensions 0 and 0 have different sizes, 2 and 4
func.func @main(%a: tensor<2x3xf32>, %b: tensor<4x3xf32>) -> (tensor<2xf32>) {
  %r = "stablehlo.dot_general"(%a, %b) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>}> : (tensor<2x3xf32>, tensor<4x3xf32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

// expected: V0701 stablehlo.dot_general: (C10) dimensions 1 and 0 have different sizes, 3 and 4
func.func @main(%a: tensor<2x3xf32>, %b: tensor<4x4xf32>) -> (tensor<2x4xf32>) {
  %r = "stablehlo.dot_general"(%a, %b) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<2x3xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  return %r : tensor<2x4xf32>
}

// -----

// expected: V0701 stablehlo.dot_general: (C11) 1 precisions of two operands
func.func @main(%a: tensor<2x3xf32>, %b: tensor<3x4xf32>) -> (tensor<2x4xf32>) {
  %r = "stablehlo.dot_general"(%a, %b) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision HIGH>]}> : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return %r : tensor<2x4xf32>
}

// -----

// expected: V0701 stablehlo.dot_general: (C12) the result is tensor<2x5xf32>, and its shape must be [2, 4]
func.func @main(%a: tensor<2x3xf32>, %b: tensor<3x4xf32>) -> (tensor<2x5xf32>) {
  %r = "stablehlo.dot_general"(%a, %b) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x5xf32>
  return %r : tensor<2x5xf32>
}

// -----

// expected: V0701 stablehlo.dot_general: (C13) elements are of different types, tensor<2x3xf32> and tensor<3x4xi32>
func.func @main(%a: tensor<2x3xf32>, %b: tensor<3x4xi32>) -> (tensor<2x4xf32>) {
  %r = "stablehlo.dot_general"(%a, %b) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<2x3xf32>, tensor<3x4xi32>) -> tensor<2x4xf32>
  return %r : tensor<2x4xf32>
}

// -----

// expected: V0701 stablehlo.reduce: (C1) inputs are tensor<2x3xf32> and tensor<2x4xf32>
func.func @main(%a: tensor<2x3xf32>, %b: tensor<2x4xf32>, %c: tensor<f32>, %d: tensor<f32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %r:2 = "stablehlo.reduce"(%a, %b, %c, %d) <{dimensions = array<i64: 1>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %s = "stablehlo.add"(%x, %y) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%s) : (tensor<f32>) -> ()
  }) : (tensor<2x3xf32>, tensor<2x4xf32>, tensor<f32>, tensor<f32>) -> (tensor<2xf32>, tensor<2xf32>)
  return %r#0, %r#1 : tensor<2xf32>, tensor<2xf32>
}

// -----

// expected: V0701 stablehlo.reduce: (C2) elements are of different types, tensor<2x3xf32> and tensor<i32>
func.func @main(%a: tensor<2x3xf32>, %b: tensor<i32>) -> (tensor<2xf32>) {
  %r = "stablehlo.reduce"(%a, %b) <{dimensions = array<i64: 1>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %s = "stablehlo.add"(%x, %y) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%s) : (tensor<f32>) -> ()
  }) : (tensor<2x3xf32>, tensor<i32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

// expected: V0701 stablehlo.reduce: (C3) 2 operands and 2 results
func.func @main(%a: tensor<2x3xf32>, %b: tensor<f32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %r:2 = "stablehlo.reduce"(%a, %b) <{dimensions = array<i64: 1>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %s = "stablehlo.add"(%x, %y) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%s) : (tensor<f32>) -> ()
  }) : (tensor<2x3xf32>, tensor<f32>) -> (tensor<2xf32>, tensor<2xf32>)
  return %r#0, %r#1 : tensor<2xf32>, tensor<2xf32>
}

// -----

// expected: V0701 stablehlo.reduce: (C4) dimension 2 of inputs of rank 2
func.func @main(%a: tensor<2x3xf32>, %b: tensor<f32>) -> (tensor<2xf32>) {
  %r = "stablehlo.reduce"(%a, %b) <{dimensions = array<i64: 2>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %s = "stablehlo.add"(%x, %y) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%s) : (tensor<f32>) -> ()
  }) : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

// expected: V0701 stablehlo.reduce: (C5) dimension 1 is named twice
func.func @main(%a: tensor<2x3xf32>, %b: tensor<f32>) -> (tensor<f32>) {
  %r = "stablehlo.reduce"(%a, %b) <{dimensions = array<i64: 1, 1>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %s = "stablehlo.add"(%x, %y) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%s) : (tensor<f32>) -> ()
  }) : (tensor<2x3xf32>, tensor<f32>) -> tensor<f32>
  return %r : tensor<f32>
}

// -----

// expected: V0701 stablehlo.reduce: (C7) the result is tensor<3xf32>, and its shape must be [2]
func.func @main(%a: tensor<2x3xf32>, %b: tensor<f32>) -> (tensor<3xf32>) {
  %r = "stablehlo.reduce"(%a, %b) <{dimensions = array<i64: 1>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %s = "stablehlo.add"(%x, %y) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%s) : (tensor<f32>) -> ()
  }) : (tensor<2x3xf32>, tensor<f32>) -> tensor<3xf32>
  return %r : tensor<3xf32>
}

// -----

// expected: V0701 stablehlo.reduce: (I2) an initial value is tensor<1xf32>
func.func @main(%a: tensor<2x3xf32>, %b: tensor<1xf32>) -> (tensor<2xf32>) {
  %r = "stablehlo.reduce"(%a, %b) <{dimensions = array<i64: 1>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %s = "stablehlo.add"(%x, %y) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%s) : (tensor<f32>) -> ()
  }) : (tensor<2x3xf32>, tensor<1xf32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

// expected: V0701 stablehlo.sort: (C2) a result is tensor<5xf32>, not tensor<4xf32>
func.func @main(%a: tensor<4xf32>) -> (tensor<5xf32>) {
  %r = "stablehlo.sort"(%a) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %s = "stablehlo.compare"(%x, %y) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
    "stablehlo.return"(%s) : (tensor<i1>) -> ()
  }) : (tensor<4xf32>) -> tensor<5xf32>
  return %r : tensor<5xf32>
}

// -----

// expected: V0701 stablehlo.sort: (C3) inputs are tensor<4xf32> and tensor<5xf32>
func.func @main(%a: tensor<4xf32>, %b: tensor<5xf32>) -> (tensor<4xf32>, tensor<5xf32>) {
  %r:2 = "stablehlo.sort"(%a, %b) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %s = "stablehlo.compare"(%x, %y) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
    "stablehlo.return"(%s) : (tensor<i1>) -> ()
  }) : (tensor<4xf32>, tensor<5xf32>) -> (tensor<4xf32>, tensor<5xf32>)
  return %r#0, %r#1 : tensor<4xf32>, tensor<5xf32>
}

// -----

// expected: V0701 stablehlo.sort: (C4) dimension 1 of inputs of rank 1
func.func @main(%a: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "stablehlo.sort"(%a) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %s = "stablehlo.compare"(%x, %y) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
    "stablehlo.return"(%s) : (tensor<i1>) -> ()
  }) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// expected: V0701 stablehlo.sort: (C5) the comparator does not take two scalars of each input
func.func @main(%a: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "stablehlo.sort"(%a) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%x: tensor<i32>, %y: tensor<i32>):
    %s = "stablehlo.compare"(%x, %y) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
    "stablehlo.return"(%s) : (tensor<i1>) -> ()
  }) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// expected: V0701 stablehlo.map: (C1) the result is tensor<2xf32>, and its shape must be [3]
func.func @main(%a: tensor<2xf32>, %b: tensor<3xf32>) -> (tensor<2xf32>) {
  %r = "stablehlo.map"(%a, %b) <{dimensions = array<i64: 0>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %s = "stablehlo.add"(%x, %y) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%s) : (tensor<f32>) -> ()
  }) : (tensor<2xf32>, tensor<3xf32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

// expected: V0701 stablehlo.map: (C3) dimensions are [1, 0], of rank 2
func.func @main(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) -> (tensor<2x3xf32>) {
  %r = "stablehlo.map"(%a, %b) <{dimensions = array<i64: 1, 0>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %s = "stablehlo.add"(%x, %y) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%s) : (tensor<f32>) -> ()
  }) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// expected: V0701 stablehlo.cholesky: (I1) elements of tensor<2x2xi32> are not floating-point, complex
func.func @main(%a: tensor<2x2xi32>) -> (tensor<2x2xi32>) {
  %r = "stablehlo.cholesky"(%a) : (tensor<2x2xi32>) -> tensor<2x2xi32>
  return %r : tensor<2x2xi32>
}

// -----

// expected: V0701 stablehlo.cholesky: (C1) the result is tensor<2x3xf32>, not tensor<2x2xf32>
func.func @main(%a: tensor<2x2xf32>) -> (tensor<2x3xf32>) {
  %r = "stablehlo.cholesky"(%a) : (tensor<2x2xf32>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// expected: V0701 stablehlo.cholesky: (C2) an operand of rank 1
func.func @main(%a: tensor<2xf32>) -> (tensor<2xf32>) {
  %r = "stablehlo.cholesky"(%a) : (tensor<2xf32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

// expected: V0701 stablehlo.cholesky: (C3) matrices of 2 x 3
func.func @main(%a: tensor<2x3xf32>) -> (tensor<2x3xf32>) {
  %r = "stablehlo.cholesky"(%a) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// expected: V0701 stablehlo.triangular_solve: (C1) elements are of different types, tensor<2x2xf32> and tensor<2x3xf64>
func.func @main(%a: tensor<2x2xf32>, %b: tensor<2x3xf64>) -> (tensor<2x3xf64>) {
  %r = "stablehlo.triangular_solve"(%a, %b) <{left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>}> : (tensor<2x2xf32>, tensor<2x3xf64>) -> tensor<2x3xf64>
  return %r : tensor<2x3xf64>
}

// -----

// expected: V0701 stablehlo.triangular_solve: (C2) operands are tensor<2xf32> and tensor<2xf32>
func.func @main(%a: tensor<2xf32>, %b: tensor<2xf32>) -> (tensor<2xf32>) {
  %r = "stablehlo.triangular_solve"(%a, %b) <{left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>}> : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

// expected: V0701 stablehlo.triangular_solve: (C3) tensor<3x3xf32> and tensor<2x3xf32>
func.func @main(%a: tensor<3x3xf32>, %b: tensor<2x3xf32>) -> (tensor<2x3xf32>) {
  %r = "stablehlo.triangular_solve"(%a, %b) <{left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>}> : (tensor<3x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// expected: V0701 stablehlo.triangular_solve: (C4) the result is tensor<3x3xf32>, not tensor<2x3xf32>
func.func @main(%a: tensor<2x2xf32>, %b: tensor<2x3xf32>) -> (tensor<3x3xf32>) {
  %r = "stablehlo.triangular_solve"(%a, %b) <{left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>}> : (tensor<2x2xf32>, tensor<2x3xf32>) -> tensor<3x3xf32>
  return %r : tensor<3x3xf32>
}

// -----

// expected: V0701 stablehlo.triangular_solve: (I1) elements of tensor<2x2xi32> are not floating-point, complex
func.func @main(%a: tensor<2x2xi32>, %b: tensor<2x3xi32>) -> (tensor<2x3xi32>) {
  %r = "stablehlo.triangular_solve"(%a, %b) <{left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>}> : (tensor<2x2xi32>, tensor<2x3xi32>) -> tensor<2x3xi32>
  return %r : tensor<2x3xi32>
}

// -----

// expected: V0701 stablehlo.fft: (C1) a transform of 2 dimensions of an operand of lower rank
func.func @main(%a: tensor<4xcomplex<f32>>) -> (tensor<4xcomplex<f32>>) {
  %r = "stablehlo.fft"(%a) <{fft_type = #stablehlo<fft_type FFT>, fft_length = array<i64: 2, 4>}> : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>
  return %r : tensor<4xcomplex<f32>>
}

// -----

// expected: V0701 stablehlo.fft: (C2) FFT from tensor<4xf32> to tensor<4xcomplex<f32>>
func.func @main(%a: tensor<4xf32>) -> (tensor<4xcomplex<f32>>) {
  %r = "stablehlo.fft"(%a) <{fft_type = #stablehlo<fft_type FFT>, fft_length = array<i64: 4>}> : (tensor<4xf32>) -> tensor<4xcomplex<f32>>
  return %r : tensor<4xcomplex<f32>>
}

// -----

// expected: V0701 stablehlo.fft: (C3) a transform of 4 dimensions
func.func @main(%a: tensor<2x2x2x2xcomplex<f32>>) -> (tensor<2x2x2x2xcomplex<f32>>) {
  %r = "stablehlo.fft"(%a) <{fft_type = #stablehlo<fft_type FFT>, fft_length = array<i64: 2, 2, 2, 2>}> : (tensor<2x2x2x2xcomplex<f32>>) -> tensor<2x2x2x2xcomplex<f32>>
  return %r : tensor<2x2x2x2xcomplex<f32>>
}

// -----

// expected: V0701 stablehlo.fft: (C4) a transform of [8] of tensor<4xf32>
func.func @main(%a: tensor<4xf32>) -> (tensor<5xcomplex<f32>>) {
  %r = "stablehlo.fft"(%a) <{fft_type = #stablehlo<fft_type RFFT>, fft_length = array<i64: 8>}> : (tensor<4xf32>) -> tensor<5xcomplex<f32>>
  return %r : tensor<5xcomplex<f32>>
}

// -----

// expected: V0701 stablehlo.fft: (C5) the result is tensor<4xcomplex<f32>>, and its shape must be [3]
func.func @main(%a: tensor<4xf32>) -> (tensor<4xcomplex<f32>>) {
  %r = "stablehlo.fft"(%a) <{fft_type = #stablehlo<fft_type RFFT>, fft_length = array<i64: 4>}> : (tensor<4xf32>) -> tensor<4xcomplex<f32>>
  return %r : tensor<4xcomplex<f32>>
}

// -----

// expected: V0701 stablehlo.fft: (C5) IRFFT from tensor<3xcomplex<f32>> to tensor<6xf32>
func.func @main(%a: tensor<3xcomplex<f32>>) -> (tensor<6xf32>) {
  %r = "stablehlo.fft"(%a) <{fft_type = #stablehlo<fft_type IRFFT>, fft_length = array<i64: 6>}> : (tensor<3xcomplex<f32>>) -> tensor<6xf32>
  return %r : tensor<6xf32>
}

// -----

// expected: V0701 stablehlo.batch_norm_training: (C1) feature dimension 2 of rank 2
func.func @main(%a: tensor<2x3xf32>, %b: tensor<3xf32>, %c: tensor<3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>) {
  %r:3 = "stablehlo.batch_norm_training"(%a, %b, %c) <{epsilon = 1.0e-3 : f32, feature_index = 2 : i64}> : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>)
  return %r#0, %r#1, %r#2 : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
}

// -----

// expected: V0701 stablehlo.batch_norm_training: (C2) elements are of different types, tensor<2x3xf32> and tensor<3xf64>
func.func @main(%a: tensor<2x3xf32>, %b: tensor<3xf64>, %c: tensor<3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>) {
  %r:3 = "stablehlo.batch_norm_training"(%a, %b, %c) <{epsilon = 1.0e-3 : f32, feature_index = 1 : i64}> : (tensor<2x3xf32>, tensor<3xf64>, tensor<3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>)
  return %r#0, %r#1, %r#2 : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
}

// -----

// expected: V0701 stablehlo.batch_norm_training: (C3) operand 1 is tensor<2xf32>, of 3 features
func.func @main(%a: tensor<2x3xf32>, %b: tensor<2xf32>, %c: tensor<3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>) {
  %r:3 = "stablehlo.batch_norm_training"(%a, %b, %c) <{epsilon = 1.0e-3 : f32, feature_index = 1 : i64}> : (tensor<2x3xf32>, tensor<2xf32>, tensor<3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>)
  return %r#0, %r#1, %r#2 : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
}

// -----

// expected: V0701 stablehlo.batch_norm_training: (C4) operand 2 is tensor<2xf32>, of 3 features
func.func @main(%a: tensor<2x3xf32>, %b: tensor<3xf32>, %c: tensor<2xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>) {
  %r:3 = "stablehlo.batch_norm_training"(%a, %b, %c) <{epsilon = 1.0e-3 : f32, feature_index = 1 : i64}> : (tensor<2x3xf32>, tensor<3xf32>, tensor<2xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>)
  return %r#0, %r#1, %r#2 : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
}

// -----

// expected: V0701 stablehlo.batch_norm_training: (I1) elements of tensor<2x3xi32> are not floating-point
func.func @main(%a: tensor<2x3xi32>, %b: tensor<3xi32>, %c: tensor<3xi32>) -> (tensor<2x3xi32>, tensor<3xi32>, tensor<3xi32>) {
  %r:3 = "stablehlo.batch_norm_training"(%a, %b, %c) <{epsilon = 1.0e-3 : f32, feature_index = 1 : i64}> : (tensor<2x3xi32>, tensor<3xi32>, tensor<3xi32>) -> (tensor<2x3xi32>, tensor<3xi32>, tensor<3xi32>)
  return %r#0, %r#1, %r#2 : tensor<2x3xi32>, tensor<3xi32>, tensor<3xi32>
}

// -----

// expected: V0701 stablehlo.batch_norm_inference: (C5) operand 3 is tensor<2xf32>, of 3 features
func.func @main(%a: tensor<2x3xf32>, %b: tensor<3xf32>, %c: tensor<3xf32>, %d: tensor<2xf32>, %e: tensor<3xf32>) -> (tensor<2x3xf32>) {
  %r = "stablehlo.batch_norm_inference"(%a, %b, %c, %d, %e) <{epsilon = 1.0e-3 : f32, feature_index = 1 : i64}> : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<2xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// expected: V0701 stablehlo.batch_norm_inference: (C6) operand 4 is tensor<2xf32>, of 3 features
func.func @main(%a: tensor<2x3xf32>, %b: tensor<3xf32>, %c: tensor<3xf32>, %d: tensor<3xf32>, %e: tensor<2xf32>) -> (tensor<2x3xf32>) {
  %r = "stablehlo.batch_norm_inference"(%a, %b, %c, %d, %e) <{epsilon = 1.0e-3 : f32, feature_index = 1 : i64}> : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// expected: V0701 stablehlo.batch_norm_grad: (C3) `grad_output` is tensor<3x3xf32>, not tensor<2x3xf32>
func.func @main(%a: tensor<2x3xf32>, %b: tensor<3xf32>, %c: tensor<3xf32>, %d: tensor<3xf32>, %e: tensor<3x3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>) {
  %r:3 = "stablehlo.batch_norm_grad"(%a, %b, %c, %d, %e) <{epsilon = 1.0e-3 : f32, feature_index = 1 : i64}> : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3x3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>)
  return %r#0, %r#1, %r#2 : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
}

// -----

// expected: V0701 stablehlo.batch_norm_grad: (C5) operand 1 is tensor<2xf32>, of 3 features
func.func @main(%a: tensor<2x3xf32>, %b: tensor<2xf32>, %c: tensor<3xf32>, %d: tensor<3xf32>, %e: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>) {
  %r:3 = "stablehlo.batch_norm_grad"(%a, %b, %c, %d, %e) <{epsilon = 1.0e-3 : f32, feature_index = 1 : i64}> : (tensor<2x3xf32>, tensor<2xf32>, tensor<3xf32>, tensor<3xf32>, tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>)
  return %r#0, %r#1, %r#2 : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
}

// -----

// expected: V0701 stablehlo.rng: (C1) elements are of different types, tensor<f32> and tensor<i32>
func.func @main(%a: tensor<f32>, %b: tensor<i32>, %c: tensor<1xi64>) -> (tensor<2xf32>) {
  %r = "stablehlo.rng"(%a, %b, %c) <{rng_distribution = #stablehlo<rng_distribution UNIFORM>}> : (tensor<f32>, tensor<i32>, tensor<1xi64>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

// expected: V0701 stablehlo.rng: (C2) a normal distribution of tensor<i32>
func.func @main(%a: tensor<i32>, %b: tensor<i32>, %c: tensor<1xi64>) -> (tensor<2xi32>) {
  %r = "stablehlo.rng"(%a, %b, %c) <{rng_distribution = #stablehlo<rng_distribution NORMAL>}> : (tensor<i32>, tensor<i32>, tensor<1xi64>) -> tensor<2xi32>
  return %r : tensor<2xi32>
}

// -----

// expected: V0701 stablehlo.rng_bit_generator: (C1) the new state is tensor<3xui64>, not tensor<2xui64>
func.func @main(%a: tensor<2xui64>) -> (tensor<3xui64>, tensor<4xui32>) {
  %r:2 = "stablehlo.rng_bit_generator"(%a) <{rng_algorithm = #stablehlo<rng_algorithm DEFAULT>}> : (tensor<2xui64>) -> (tensor<3xui64>, tensor<4xui32>)
  return %r#0, %r#1 : tensor<3xui64>, tensor<4xui32>
}

// -----

// expected: V0701 stablehlo.rng_bit_generator: (C2) the state is tensor<3xui64>
func.func @main(%a: tensor<3xui64>) -> (tensor<3xui64>, tensor<4xui32>) {
  %r:2 = "stablehlo.rng_bit_generator"(%a) <{rng_algorithm = #stablehlo<rng_algorithm THREE_FRY>}> : (tensor<3xui64>) -> (tensor<3xui64>, tensor<4xui32>)
  return %r#0, %r#1 : tensor<3xui64>, tensor<4xui32>
}

// -----

// expected: V0701 stablehlo.rng_bit_generator: (C2) the state is tensor<4xui64>
func.func @main(%a: tensor<4xui64>) -> (tensor<4xui64>, tensor<4xui32>) {
  %r:2 = "stablehlo.rng_bit_generator"(%a) <{rng_algorithm = #stablehlo<rng_algorithm PHILOX>}> : (tensor<4xui64>) -> (tensor<4xui64>, tensor<4xui32>)
  return %r#0, %r#1 : tensor<4xui64>, tensor<4xui32>
}

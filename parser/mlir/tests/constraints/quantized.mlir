// expected: V0701 stablehlo.add: (C2) tensor<2x!quant.uniform<i8:f32, 0.1>> and tensor<2xf32> to tensor<2x!quant.uniform<i8:f32, 0.1>>
func.func @main(%a0: tensor<2x!quant.uniform<i8:f32, 0.1:0>>, %a1: tensor<2xf32>) -> (tensor<2x!quant.uniform<i8:f32, 0.1:0>>) {
  %r = "stablehlo.add"(%a0, %a1) : (tensor<2x!quant.uniform<i8:f32, 0.1:0>>, tensor<2xf32>) -> tensor<2x!quant.uniform<i8:f32, 0.1:0>>
  return %r : tensor<2x!quant.uniform<i8:f32, 0.1:0>>
}

// -----

// expected: V0701 stablehlo.add: (C3) tensor<2x!quant.uniform<i8:f32, 0.1>> and tensor<2x!quant.uniform<i16:f32, 0.1>> to tensor<2x!quant.uniform<i8:f32, 0.1>>
func.func @main(%a0: tensor<2x!quant.uniform<i8:f32, 0.1:0>>, %a1: tensor<2x!quant.uniform<i16:f32, 0.1:0>>) -> (tensor<2x!quant.uniform<i8:f32, 0.1:0>>) {
  %r = "stablehlo.add"(%a0, %a1) : (tensor<2x!quant.uniform<i8:f32, 0.1:0>>, tensor<2x!quant.uniform<i16:f32, 0.1:0>>) -> tensor<2x!quant.uniform<i8:f32, 0.1:0>>
  return %r : tensor<2x!quant.uniform<i8:f32, 0.1:0>>
}

// -----

// expected: V0701 stablehlo.add: (C4) tensor<2x!quant.uniform<i8:f32, 0.1>> and tensor<2x!quant.uniform<i8:f64, 0.1>> to tensor<2x!quant.uniform<i8:f32, 0.1>>
func.func @main(%a0: tensor<2x!quant.uniform<i8:f32, 0.1:0>>, %a1: tensor<2x!quant.uniform<i8:f64, 0.1:0>>) -> (tensor<2x!quant.uniform<i8:f32, 0.1:0>>) {
  %r = "stablehlo.add"(%a0, %a1) : (tensor<2x!quant.uniform<i8:f32, 0.1:0>>, tensor<2x!quant.uniform<i8:f64, 0.1:0>>) -> tensor<2x!quant.uniform<i8:f32, 0.1:0>>
  return %r : tensor<2x!quant.uniform<i8:f32, 0.1:0>>
}

// -----

// expected: V0701 stablehlo.add: (C5) tensor<2x!quant.uniform<i8:f32:0, {0.1, 0.2}>> and tensor<2x!quant.uniform<i8:f32, 0.1>> to tensor<2x!quant.uniform<i8:f32, 0.1>>
func.func @main(%a0: tensor<2x!quant.uniform<i8:f32:0, {0.1,0.2}>>, %a1: tensor<2x!quant.uniform<i8:f32, 0.1:0>>) -> (tensor<2x!quant.uniform<i8:f32, 0.1:0>>) {
  %r = "stablehlo.add"(%a0, %a1) : (tensor<2x!quant.uniform<i8:f32:0, {0.1,0.2}>>, tensor<2x!quant.uniform<i8:f32, 0.1:0>>) -> tensor<2x!quant.uniform<i8:f32, 0.1:0>>
  return %r : tensor<2x!quant.uniform<i8:f32, 0.1:0>>
}

// -----

// expected: V0701 stablehlo.add: (C5) tensor<2x!quant.uniform<i8:f32, 0.1>> and tensor<2x!quant.uniform<i8:f32, 0.1>> to tensor<2x!quant.uniform<i8:f32:0, {0.1, 0.2}>>
func.func @main(%a0: tensor<2x!quant.uniform<i8:f32, 0.1:0>>, %a1: tensor<2x!quant.uniform<i8:f32, 0.1:0>>) -> (tensor<2x!quant.uniform<i8:f32:0, {0.1,0.2}>>) {
  %r = "stablehlo.add"(%a0, %a1) : (tensor<2x!quant.uniform<i8:f32, 0.1:0>>, tensor<2x!quant.uniform<i8:f32, 0.1:0>>) -> tensor<2x!quant.uniform<i8:f32:0, {0.1,0.2}>>
  return %r : tensor<2x!quant.uniform<i8:f32:0, {0.1,0.2}>>
}

// -----

// expected: V0701 stablehlo.add: (C6) tensor<2x2x!quant.uniform<i8:f32:0, {0.1, 0.2}>> and tensor<2x2x!quant.uniform<i8:f32, 0.1>> to tensor<2x2x!quant.uniform<i8:f32:1, {0.1, 0.2}>>
func.func @main(%a0: tensor<2x2x!quant.uniform<i8:f32:0, {0.1,0.2}>>, %a1: tensor<2x2x!quant.uniform<i8:f32, 0.1:0>>) -> (tensor<2x2x!quant.uniform<i8:f32:1, {0.1,0.2}>>) {
  %r = "stablehlo.add"(%a0, %a1) : (tensor<2x2x!quant.uniform<i8:f32:0, {0.1,0.2}>>, tensor<2x2x!quant.uniform<i8:f32, 0.1:0>>) -> tensor<2x2x!quant.uniform<i8:f32:1, {0.1,0.2}>>
  return %r : tensor<2x2x!quant.uniform<i8:f32:1, {0.1,0.2}>>
}

// -----

// expected: V0701 stablehlo.add: (C7) tensor<2x2x!quant.uniform<i8:f32, 0.1>> and tensor<2x2x!quant.uniform<i8:f32:0, {0.1, 0.2}>> to tensor<2x2x!quant.uniform<i8:f32:1, {0.1, 0.2}>>
func.func @main(%a0: tensor<2x2x!quant.uniform<i8:f32, 0.1:0>>, %a1: tensor<2x2x!quant.uniform<i8:f32:0, {0.1,0.2}>>) -> (tensor<2x2x!quant.uniform<i8:f32:1, {0.1,0.2}>>) {
  %r = "stablehlo.add"(%a0, %a1) : (tensor<2x2x!quant.uniform<i8:f32, 0.1:0>>, tensor<2x2x!quant.uniform<i8:f32:0, {0.1,0.2}>>) -> tensor<2x2x!quant.uniform<i8:f32:1, {0.1,0.2}>>
  return %r : tensor<2x2x!quant.uniform<i8:f32:1, {0.1,0.2}>>
}

// -----

// expected: V0701 stablehlo.uniform_dequantize: (C1) from tensor<2x!quant.uniform<i8:f32, 0.1>> to tensor<3xf32>
func.func @main(%a0: tensor<2x!quant.uniform<i8:f32, 0.1:0>>) -> (tensor<3xf32>) {
  %r = "stablehlo.uniform_dequantize"(%a0) : (tensor<2x!quant.uniform<i8:f32, 0.1:0>>) -> tensor<3xf32>
  return %r : tensor<3xf32>
}

// -----

// expected: V0701 stablehlo.uniform_dequantize: (C2) the result of tensor<2x!quant.uniform<i8:f32, 0.1>> is tensor<2xf64>
func.func @main(%a0: tensor<2x!quant.uniform<i8:f32, 0.1:0>>) -> (tensor<2xf64>) {
  %r = "stablehlo.uniform_dequantize"(%a0) : (tensor<2x!quant.uniform<i8:f32, 0.1:0>>) -> tensor<2xf64>
  return %r : tensor<2xf64>
}

// -----

// expected: V0701 stablehlo.uniform_dequantize: (I1) the operand is tensor<2xf32>
func.func @main(%a0: tensor<2xf32>) -> (tensor<2xf32>) {
  %r = "stablehlo.uniform_dequantize"(%a0) : (tensor<2xf32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

// expected: V0701 stablehlo.uniform_quantize: (C1) from tensor<2xf32> to tensor<3x!quant.uniform<i8:f32, 0.1>>
func.func @main(%a0: tensor<2xf32>) -> (tensor<3x!quant.uniform<i8:f32, 0.1:0>>) {
  %r = "stablehlo.uniform_quantize"(%a0) : (tensor<2xf32>) -> tensor<3x!quant.uniform<i8:f32, 0.1:0>>
  return %r : tensor<3x!quant.uniform<i8:f32, 0.1:0>>
}

// -----

// expected: V0701 stablehlo.uniform_quantize: (C2) the result of tensor<2xf64> is tensor<2x!quant.uniform<i8:f32, 0.1>>
func.func @main(%a0: tensor<2xf64>) -> (tensor<2x!quant.uniform<i8:f32, 0.1:0>>) {
  %r = "stablehlo.uniform_quantize"(%a0) : (tensor<2xf64>) -> tensor<2x!quant.uniform<i8:f32, 0.1:0>>
  return %r : tensor<2x!quant.uniform<i8:f32, 0.1:0>>
}

// -----

// expected: V0701 stablehlo.dot_general: (C14) tensor<2x3x!quant.uniform<i8:f32, 0.1>> and tensor<3x4x!quant.uniform<i8:f32, 0.1>> to tensor<2x4xf32>
func.func @main(%a0: tensor<2x3x!quant.uniform<i8:f32, 0.1:0>>, %a1: tensor<3x4x!quant.uniform<i8:f32, 0.1:0>>) -> (tensor<2x4xf32>) {
  %r = "stablehlo.dot_general"(%a0, %a1) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<2x3x!quant.uniform<i8:f32, 0.1:0>>, tensor<3x4x!quant.uniform<i8:f32, 0.1:0>>) -> tensor<2x4xf32>
  return %r : tensor<2x4xf32>
}

// -----

// expected: V0701 stablehlo.dot_general: (C14) tensor<2x3x!quant.uniform<i8:f32, 0.1>> and tensor<3x4xf32> to tensor<2x4x!quant.uniform<i8:f32, 0.1>>
func.func @main(%a0: tensor<2x3x!quant.uniform<i8:f32, 0.1:0>>, %a1: tensor<3x4xf32>) -> (tensor<2x4x!quant.uniform<i8:f32, 0.1:0>>) {
  %r = "stablehlo.dot_general"(%a0, %a1) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<2x3x!quant.uniform<i8:f32, 0.1:0>>, tensor<3x4xf32>) -> tensor<2x4x!quant.uniform<i8:f32, 0.1:0>>
  return %r : tensor<2x4x!quant.uniform<i8:f32, 0.1:0>>
}

// -----

// expected: V0701 stablehlo.dot_general: (C15) zero points of tensor<3x4x!quant.uniform<i8:f32, 0.1:1>>
func.func @main(%a0: tensor<2x3x!quant.uniform<i8:f32, 0.1:0>>, %a1: tensor<3x4x!quant.uniform<i8:f32, 0.1:1>>) -> (tensor<2x4x!quant.uniform<i8:f32, 0.1:0>>) {
  %r = "stablehlo.dot_general"(%a0, %a1) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<2x3x!quant.uniform<i8:f32, 0.1:0>>, tensor<3x4x!quant.uniform<i8:f32, 0.1:1>>) -> tensor<2x4x!quant.uniform<i8:f32, 0.1:0>>
  return %r : tensor<2x4x!quant.uniform<i8:f32, 0.1:0>>
}

// -----

// expected: V0701 stablehlo.dot_general: (C16) tensor<3x4x!quant.uniform<i8:f32:0, {0.1, 0.2, 0.3}>> is quantized along a dimension that is contracted
func.func @main(%a0: tensor<2x3x!quant.uniform<i8:f32, 0.1:0>>, %a1: tensor<3x4x!quant.uniform<i8:f32:0, {0.1,0.2,0.3}>>) -> (tensor<2x4x!quant.uniform<i8:f32, 0.1:0>>) {
  %r = "stablehlo.dot_general"(%a0, %a1) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<2x3x!quant.uniform<i8:f32, 0.1:0>>, tensor<3x4x!quant.uniform<i8:f32:0, {0.1,0.2,0.3}>>) -> tensor<2x4x!quant.uniform<i8:f32, 0.1:0>>
  return %r : tensor<2x4x!quant.uniform<i8:f32, 0.1:0>>
}

// -----

// expected: V0701 stablehlo.dot_general: (C17) tensor<2x3x!quant.uniform<i8:f32, 0.1>> and tensor<3x4x!quant.uniform<i16:f32, 0.1>> to tensor<2x4x!quant.uniform<i8:f32, 0.1>>
func.func @main(%a0: tensor<2x3x!quant.uniform<i8:f32, 0.1:0>>, %a1: tensor<3x4x!quant.uniform<i16:f32, 0.1:0>>) -> (tensor<2x4x!quant.uniform<i8:f32, 0.1:0>>) {
  %r = "stablehlo.dot_general"(%a0, %a1) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<2x3x!quant.uniform<i8:f32, 0.1:0>>, tensor<3x4x!quant.uniform<i16:f32, 0.1:0>>) -> tensor<2x4x!quant.uniform<i8:f32, 0.1:0>>
  return %r : tensor<2x4x!quant.uniform<i8:f32, 0.1:0>>
}

// -----

// expected: V0701 stablehlo.dot_general: (C18) tensor<2x3x!quant.uniform<i8:f32, 0.1>> and tensor<3x4x!quant.uniform<i8:f32, 0.1>> to tensor<2x4x!quant.uniform<i8:f64, 0.1>>
func.func @main(%a0: tensor<2x3x!quant.uniform<i8:f32, 0.1:0>>, %a1: tensor<3x4x!quant.uniform<i8:f32, 0.1:0>>) -> (tensor<2x4x!quant.uniform<i8:f64, 0.1:0>>) {
  %r = "stablehlo.dot_general"(%a0, %a1) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<2x3x!quant.uniform<i8:f32, 0.1:0>>, tensor<3x4x!quant.uniform<i8:f32, 0.1:0>>) -> tensor<2x4x!quant.uniform<i8:f64, 0.1:0>>
  return %r : tensor<2x4x!quant.uniform<i8:f64, 0.1:0>>
}

// -----

// expected: V0701 stablehlo.dot_general: (C19) tensor<2x3x!quant.uniform<i8:f32, 0.1>> and tensor<3x4x!quant.uniform<i8:f32, 0.1>> to tensor<2x4x!quant.uniform<i8:f32:1, {0.1, 0.2, 0.3, 0.4}>>
func.func @main(%a0: tensor<2x3x!quant.uniform<i8:f32, 0.1:0>>, %a1: tensor<3x4x!quant.uniform<i8:f32, 0.1:0>>) -> (tensor<2x4x!quant.uniform<i8:f32:1, {0.1,0.2,0.3,0.4}>>) {
  %r = "stablehlo.dot_general"(%a0, %a1) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<2x3x!quant.uniform<i8:f32, 0.1:0>>, tensor<3x4x!quant.uniform<i8:f32, 0.1:0>>) -> tensor<2x4x!quant.uniform<i8:f32:1, {0.1,0.2,0.3,0.4}>>
  return %r : tensor<2x4x!quant.uniform<i8:f32:1, {0.1,0.2,0.3,0.4}>>
}

// -----

// expected: V0701 stablehlo.dot_general: (C20) tensor<2x3xf64> and tensor<3x4x!quant.uniform<i8:f32, 0.1>> to tensor<2x4xf32>
func.func @main(%a0: tensor<2x3xf64>, %a1: tensor<3x4x!quant.uniform<i8:f32, 0.1:0>>) -> (tensor<2x4xf32>) {
  %r = "stablehlo.dot_general"(%a0, %a1) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<2x3xf64>, tensor<3x4x!quant.uniform<i8:f32, 0.1:0>>) -> tensor<2x4xf32>
  return %r : tensor<2x4xf32>
}

// -----

// expected: V0701 stablehlo.convolution: (C28) tensor<1x8x8x4x!quant.uniform<i8:f32, 0.1>> and tensor<3x3x4x2x!quant.uniform<i8:f32, 0.1>> to tensor<1x6x6x2xf32>
func.func @main(%a0: tensor<1x8x8x4x!quant.uniform<i8:f32, 0.1:0>>, %a1: tensor<3x3x4x2x!quant.uniform<i8:f32, 0.1:0>>) -> (tensor<1x6x6x2xf32>) {
  %r = "stablehlo.convolution"(%a0, %a1) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 1 : i64}> : (tensor<1x8x8x4x!quant.uniform<i8:f32, 0.1:0>>, tensor<3x3x4x2x!quant.uniform<i8:f32, 0.1:0>>) -> tensor<1x6x6x2xf32>
  return %r : tensor<1x6x6x2xf32>
}

// -----

// expected: V0701 stablehlo.convolution: (C29) tensor<3x3x4x2x!quant.uniform<i8:f32:0, {0.1, 0.2, 0.3}>> is quantized along another dimension than 3, of features
func.func @main(%a0: tensor<1x8x8x4x!quant.uniform<i8:f32, 0.1:0>>, %a1: tensor<3x3x4x2x!quant.uniform<i8:f32:0, {0.1,0.2,0.3}>>) -> (tensor<1x6x6x2x!quant.uniform<i8:f32, 0.1:0>>) {
  %r = "stablehlo.convolution"(%a0, %a1) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 1 : i64}> : (tensor<1x8x8x4x!quant.uniform<i8:f32, 0.1:0>>, tensor<3x3x4x2x!quant.uniform<i8:f32:0, {0.1,0.2,0.3}>>) -> tensor<1x6x6x2x!quant.uniform<i8:f32, 0.1:0>>
  return %r : tensor<1x6x6x2x!quant.uniform<i8:f32, 0.1:0>>
}

// -----

// expected: V0701 stablehlo.convolution: (C30) tensor<1x6x6x2x!quant.uniform<i8:f32:0, {0.1}>> is quantized along another dimension than 3, of features
func.func @main(%a0: tensor<1x8x8x4x!quant.uniform<i8:f32, 0.1:0>>, %a1: tensor<3x3x4x2x!quant.uniform<i8:f32:3, {0.1,0.2}>>) -> (tensor<1x6x6x2x!quant.uniform<i8:f32:0, {0.1}>>) {
  %r = "stablehlo.convolution"(%a0, %a1) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 1 : i64}> : (tensor<1x8x8x4x!quant.uniform<i8:f32, 0.1:0>>, tensor<3x3x4x2x!quant.uniform<i8:f32:3, {0.1,0.2}>>) -> tensor<1x6x6x2x!quant.uniform<i8:f32:0, {0.1}>>
  return %r : tensor<1x6x6x2x!quant.uniform<i8:f32:0, {0.1}>>
}

// -----

// expected: V0701 stablehlo.convolution: (C31) tensor<1x8x8x4x!quant.uniform<i8:f32, 0.1>> and tensor<3x3x4x2x!quant.uniform<i16:f32, 0.1>> to tensor<1x6x6x2x!quant.uniform<i8:f32, 0.1>>
func.func @main(%a0: tensor<1x8x8x4x!quant.uniform<i8:f32, 0.1:0>>, %a1: tensor<3x3x4x2x!quant.uniform<i16:f32, 0.1:0>>) -> (tensor<1x6x6x2x!quant.uniform<i8:f32, 0.1:0>>) {
  %r = "stablehlo.convolution"(%a0, %a1) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 1 : i64}> : (tensor<1x8x8x4x!quant.uniform<i8:f32, 0.1:0>>, tensor<3x3x4x2x!quant.uniform<i16:f32, 0.1:0>>) -> tensor<1x6x6x2x!quant.uniform<i8:f32, 0.1:0>>
  return %r : tensor<1x6x6x2x!quant.uniform<i8:f32, 0.1:0>>
}

// -----

// expected: V0701 stablehlo.convolution: (C32) tensor<1x8x8x4x!quant.uniform<i8:f32, 0.1>> and tensor<3x3x4x2x!quant.uniform<i8:f32, 0.1>> to tensor<1x6x6x2x!quant.uniform<i8:f64, 0.1>>
func.func @main(%a0: tensor<1x8x8x4x!quant.uniform<i8:f32, 0.1:0>>, %a1: tensor<3x3x4x2x!quant.uniform<i8:f32, 0.1:0>>) -> (tensor<1x6x6x2x!quant.uniform<i8:f64, 0.1:0>>) {
  %r = "stablehlo.convolution"(%a0, %a1) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 1 : i64}> : (tensor<1x8x8x4x!quant.uniform<i8:f32, 0.1:0>>, tensor<3x3x4x2x!quant.uniform<i8:f32, 0.1:0>>) -> tensor<1x6x6x2x!quant.uniform<i8:f64, 0.1:0>>
  return %r : tensor<1x6x6x2x!quant.uniform<i8:f64, 0.1:0>>
}

// -----

// expected: V0701 stablehlo.convolution: (C33) tensor<1x8x8x4x!quant.uniform<i8:f32, 0.1>> and tensor<3x3x4x2x!quant.uniform<i8:f32, 0.1>> to tensor<1x6x6x2x!quant.uniform<i8:f32:3, {0.1, 0.2}>>
func.func @main(%a0: tensor<1x8x8x4x!quant.uniform<i8:f32, 0.1:0>>, %a1: tensor<3x3x4x2x!quant.uniform<i8:f32, 0.1:0>>) -> (tensor<1x6x6x2x!quant.uniform<i8:f32:3, {0.1,0.2}>>) {
  %r = "stablehlo.convolution"(%a0, %a1) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 1 : i64}> : (tensor<1x8x8x4x!quant.uniform<i8:f32, 0.1:0>>, tensor<3x3x4x2x!quant.uniform<i8:f32, 0.1:0>>) -> tensor<1x6x6x2x!quant.uniform<i8:f32:3, {0.1,0.2}>>
  return %r : tensor<1x6x6x2x!quant.uniform<i8:f32:3, {0.1,0.2}>>
}

// -----

// expected: V0701 stablehlo.convolution: (C34) tensor<1x8x8x4xf64> and tensor<3x3x4x2x!quant.uniform<i8:f32, 0.1>> to tensor<1x6x6x2xf64>
func.func @main(%a0: tensor<1x8x8x4xf64>, %a1: tensor<3x3x4x2x!quant.uniform<i8:f32, 0.1:0>>) -> (tensor<1x6x6x2xf64>) {
  %r = "stablehlo.convolution"(%a0, %a1) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 1 : i64}> : (tensor<1x8x8x4xf64>, tensor<3x3x4x2x!quant.uniform<i8:f32, 0.1:0>>) -> tensor<1x6x6x2xf64>
  return %r : tensor<1x6x6x2xf64>
}

// -----

// expected: V0701 stablehlo.dynamic_conv: (C28) tensor<1x8x8x4x!quant.uniform<i8:f32, 0.1>> and tensor<3x3x4x2x!quant.uniform<i8:f32, 0.1>> to tensor<1x6x6x2xf32>
func.func @main(%a0: tensor<1x8x8x4x!quant.uniform<i8:f32, 0.1:0>>, %a1: tensor<3x3x4x2x!quant.uniform<i8:f32, 0.1:0>>) -> (tensor<1x6x6x2xf32>) {
  %p = stablehlo.constant dense<0> : tensor<2x2xi64>
  %r = "stablehlo.dynamic_conv"(%a0, %a1, %p) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 1 : i64}> : (tensor<1x8x8x4x!quant.uniform<i8:f32, 0.1:0>>, tensor<3x3x4x2x!quant.uniform<i8:f32, 0.1:0>>, tensor<2x2xi64>) -> tensor<1x6x6x2xf32>
  return %r : tensor<1x6x6x2xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_conv: (C29) tensor<3x3x4x2x!quant.uniform<i8:f32:0, {0.1, 0.2, 0.3}>> is quantized along another dimension than 3, of features
func.func @main(%a0: tensor<1x8x8x4x!quant.uniform<i8:f32, 0.1:0>>, %a1: tensor<3x3x4x2x!quant.uniform<i8:f32:0, {0.1,0.2,0.3}>>) -> (tensor<1x6x6x2x!quant.uniform<i8:f32, 0.1:0>>) {
  %p = stablehlo.constant dense<0> : tensor<2x2xi64>
  %r = "stablehlo.dynamic_conv"(%a0, %a1, %p) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 1 : i64}> : (tensor<1x8x8x4x!quant.uniform<i8:f32, 0.1:0>>, tensor<3x3x4x2x!quant.uniform<i8:f32:0, {0.1,0.2,0.3}>>, tensor<2x2xi64>) -> tensor<1x6x6x2x!quant.uniform<i8:f32, 0.1:0>>
  return %r : tensor<1x6x6x2x!quant.uniform<i8:f32, 0.1:0>>
}

// -----

// expected: V0701 stablehlo.dynamic_conv: (C30) tensor<1x6x6x2x!quant.uniform<i8:f32:0, {0.1}>> is quantized along another dimension than 3, of features
func.func @main(%a0: tensor<1x8x8x4x!quant.uniform<i8:f32, 0.1:0>>, %a1: tensor<3x3x4x2x!quant.uniform<i8:f32:3, {0.1,0.2}>>) -> (tensor<1x6x6x2x!quant.uniform<i8:f32:0, {0.1}>>) {
  %p = stablehlo.constant dense<0> : tensor<2x2xi64>
  %r = "stablehlo.dynamic_conv"(%a0, %a1, %p) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 1 : i64}> : (tensor<1x8x8x4x!quant.uniform<i8:f32, 0.1:0>>, tensor<3x3x4x2x!quant.uniform<i8:f32:3, {0.1,0.2}>>, tensor<2x2xi64>) -> tensor<1x6x6x2x!quant.uniform<i8:f32:0, {0.1}>>
  return %r : tensor<1x6x6x2x!quant.uniform<i8:f32:0, {0.1}>>
}

// -----

// expected: V0701 stablehlo.dynamic_conv: (C31) tensor<1x8x8x4x!quant.uniform<i8:f32, 0.1>> and tensor<3x3x4x2x!quant.uniform<i16:f32, 0.1>> to tensor<1x6x6x2x!quant.uniform<i8:f32, 0.1>>
func.func @main(%a0: tensor<1x8x8x4x!quant.uniform<i8:f32, 0.1:0>>, %a1: tensor<3x3x4x2x!quant.uniform<i16:f32, 0.1:0>>) -> (tensor<1x6x6x2x!quant.uniform<i8:f32, 0.1:0>>) {
  %p = stablehlo.constant dense<0> : tensor<2x2xi64>
  %r = "stablehlo.dynamic_conv"(%a0, %a1, %p) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 1 : i64}> : (tensor<1x8x8x4x!quant.uniform<i8:f32, 0.1:0>>, tensor<3x3x4x2x!quant.uniform<i16:f32, 0.1:0>>, tensor<2x2xi64>) -> tensor<1x6x6x2x!quant.uniform<i8:f32, 0.1:0>>
  return %r : tensor<1x6x6x2x!quant.uniform<i8:f32, 0.1:0>>
}

// -----

// expected: V0701 stablehlo.dynamic_conv: (C32) tensor<1x8x8x4x!quant.uniform<i8:f32, 0.1>> and tensor<3x3x4x2x!quant.uniform<i8:f32, 0.1>> to tensor<1x6x6x2x!quant.uniform<i8:f64, 0.1>>
func.func @main(%a0: tensor<1x8x8x4x!quant.uniform<i8:f32, 0.1:0>>, %a1: tensor<3x3x4x2x!quant.uniform<i8:f32, 0.1:0>>) -> (tensor<1x6x6x2x!quant.uniform<i8:f64, 0.1:0>>) {
  %p = stablehlo.constant dense<0> : tensor<2x2xi64>
  %r = "stablehlo.dynamic_conv"(%a0, %a1, %p) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 1 : i64}> : (tensor<1x8x8x4x!quant.uniform<i8:f32, 0.1:0>>, tensor<3x3x4x2x!quant.uniform<i8:f32, 0.1:0>>, tensor<2x2xi64>) -> tensor<1x6x6x2x!quant.uniform<i8:f64, 0.1:0>>
  return %r : tensor<1x6x6x2x!quant.uniform<i8:f64, 0.1:0>>
}

// -----

// expected: V0701 stablehlo.dynamic_conv: (C33) tensor<1x8x8x4x!quant.uniform<i8:f32, 0.1>> and tensor<3x3x4x2x!quant.uniform<i8:f32, 0.1>> to tensor<1x6x6x2x!quant.uniform<i8:f32:3, {0.1, 0.2}>>
func.func @main(%a0: tensor<1x8x8x4x!quant.uniform<i8:f32, 0.1:0>>, %a1: tensor<3x3x4x2x!quant.uniform<i8:f32, 0.1:0>>) -> (tensor<1x6x6x2x!quant.uniform<i8:f32:3, {0.1,0.2}>>) {
  %p = stablehlo.constant dense<0> : tensor<2x2xi64>
  %r = "stablehlo.dynamic_conv"(%a0, %a1, %p) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 1 : i64}> : (tensor<1x8x8x4x!quant.uniform<i8:f32, 0.1:0>>, tensor<3x3x4x2x!quant.uniform<i8:f32, 0.1:0>>, tensor<2x2xi64>) -> tensor<1x6x6x2x!quant.uniform<i8:f32:3, {0.1,0.2}>>
  return %r : tensor<1x6x6x2x!quant.uniform<i8:f32:3, {0.1,0.2}>>
}

// -----

// expected: V0701 stablehlo.dynamic_conv: (C34) tensor<1x8x8x4xf64> and tensor<3x3x4x2x!quant.uniform<i8:f32, 0.1>> to tensor<1x6x6x2xf64>
func.func @main(%a0: tensor<1x8x8x4xf64>, %a1: tensor<3x3x4x2x!quant.uniform<i8:f32, 0.1:0>>) -> (tensor<1x6x6x2xf64>) {
  %p = stablehlo.constant dense<0> : tensor<2x2xi64>
  %r = "stablehlo.dynamic_conv"(%a0, %a1, %p) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 1 : i64}> : (tensor<1x8x8x4xf64>, tensor<3x3x4x2x!quant.uniform<i8:f32, 0.1:0>>, tensor<2x2xi64>) -> tensor<1x6x6x2xf64>
  return %r : tensor<1x6x6x2xf64>
}

// -----

// expected: V0701 stablehlo.transpose: (C4) from tensor<2x3x!quant.uniform<i8:f32:0, {0.1, 0.2}>> to tensor<3x2x!quant.uniform<i8:f32:0, {0.1, 0.2, 0.3}>>
func.func @main(%a0: tensor<2x3x!quant.uniform<i8:f32:0, {0.1,0.2}>>) -> (tensor<3x2x!quant.uniform<i8:f32:0, {0.1,0.2,0.3}>>) {
  %r = "stablehlo.transpose"(%a0) <{permutation = array<i64: 1, 0>}> : (tensor<2x3x!quant.uniform<i8:f32:0, {0.1,0.2}>>) -> tensor<3x2x!quant.uniform<i8:f32:0, {0.1,0.2,0.3}>>
  return %r : tensor<3x2x!quant.uniform<i8:f32:0, {0.1,0.2,0.3}>>
}

// -----

// expected: V0701 stablehlo.broadcast_in_dim: (C6) from tensor<2x!quant.uniform<i8:f32:0, {0.1, 0.2}>> to tensor<2x2x!quant.uniform<i8:f32:0, {0.1, 0.2}>>
func.func @main(%a0: tensor<2x!quant.uniform<i8:f32:0, {0.1,0.2}>>) -> (tensor<2x2x!quant.uniform<i8:f32:0, {0.1,0.2}>>) {
  %r = "stablehlo.broadcast_in_dim"(%a0) <{broadcast_dimensions = array<i64: 1>}> : (tensor<2x!quant.uniform<i8:f32:0, {0.1,0.2}>>) -> tensor<2x2x!quant.uniform<i8:f32:0, {0.1,0.2}>>
  return %r : tensor<2x2x!quant.uniform<i8:f32:0, {0.1,0.2}>>
}

// -----

// expected: V0701 stablehlo.broadcast_in_dim: (C6) from tensor<1x!quant.uniform<i8:f32:0, {0.1}>> to tensor<2x2x!quant.uniform<i8:f32:1, {0.1, 0.2}>>
func.func @main(%a0: tensor<1x!quant.uniform<i8:f32:0, {0.1}>>) -> (tensor<2x2x!quant.uniform<i8:f32:1, {0.1,0.2}>>) {
  %r = "stablehlo.broadcast_in_dim"(%a0) <{broadcast_dimensions = array<i64: 1>}> : (tensor<1x!quant.uniform<i8:f32:0, {0.1}>>) -> tensor<2x2x!quant.uniform<i8:f32:1, {0.1,0.2}>>
  return %r : tensor<2x2x!quant.uniform<i8:f32:1, {0.1,0.2}>>
}

// -----

// expected: V0701 stablehlo.broadcast_in_dim: (C1) from tensor<2x!quant.uniform<i8:f32:0, {0.1, 0.2}>> to tensor<2x2x!quant.uniform<i8:f32, 0.1>>
func.func @main(%a0: tensor<2x!quant.uniform<i8:f32:0, {0.1,0.2}>>) -> (tensor<2x2x!quant.uniform<i8:f32, 0.1:0>>) {
  %r = "stablehlo.broadcast_in_dim"(%a0) <{broadcast_dimensions = array<i64: 1>}> : (tensor<2x!quant.uniform<i8:f32:0, {0.1,0.2}>>) -> tensor<2x2x!quant.uniform<i8:f32, 0.1:0>>
  return %r : tensor<2x2x!quant.uniform<i8:f32, 0.1:0>>
}

// -----

// expected: V0701 stablehlo.reshape: (C3) from tensor<2x3x!quant.uniform<i8:f32:0, {0.1, 0.2}>> to tensor<3x2x!quant.uniform<i8:f32:1, {0.1, 0.2}>>
func.func @main(%a0: tensor<2x3x!quant.uniform<i8:f32:0, {0.1,0.2}>>) -> (tensor<3x2x!quant.uniform<i8:f32:1, {0.1,0.2}>>) {
  %r = "stablehlo.reshape"(%a0) : (tensor<2x3x!quant.uniform<i8:f32:0, {0.1,0.2}>>) -> tensor<3x2x!quant.uniform<i8:f32:1, {0.1,0.2}>>
  return %r : tensor<3x2x!quant.uniform<i8:f32:1, {0.1,0.2}>>
}

// -----

// expected: V0701 stablehlo.reshape: (C1) from tensor<2x3x!quant.uniform<i8:f32, 0.1>> to tensor<3x2x!quant.uniform<i8:f32, 0.2>>
func.func @main(%a0: tensor<2x3x!quant.uniform<i8:f32, 0.1:0>>) -> (tensor<3x2x!quant.uniform<i8:f32, 0.2:0>>) {
  %r = "stablehlo.reshape"(%a0) : (tensor<2x3x!quant.uniform<i8:f32, 0.1:0>>) -> tensor<3x2x!quant.uniform<i8:f32, 0.2:0>>
  return %r : tensor<3x2x!quant.uniform<i8:f32, 0.2:0>>
}

// -----

// expected: V0701 stablehlo.dynamic_broadcast_in_dim: (C6) from tensor<2x!quant.uniform<i8:f32:0, {0.1, 0.2}>> to tensor<2x2x!quant.uniform<i8:f32:0, {0.1, 0.2}>>
func.func @main(%a0: tensor<2x!quant.uniform<i8:f32:0, {0.1,0.2}>>) -> (tensor<2x2x!quant.uniform<i8:f32:0, {0.1,0.2}>>) {
  %c0 = stablehlo.constant dense<[2, 2]> : tensor<2xi64>
  %r = "stablehlo.dynamic_broadcast_in_dim"(%a0, %c0) <{broadcast_dimensions = array<i64: 1>}> : (tensor<2x!quant.uniform<i8:f32:0, {0.1,0.2}>>, tensor<2xi64>) -> tensor<2x2x!quant.uniform<i8:f32:0, {0.1,0.2}>>
  return %r : tensor<2x2x!quant.uniform<i8:f32:0, {0.1,0.2}>>
}

// -----

// expected: V0701 stablehlo.dynamic_reshape: (C3) from tensor<2x3x!quant.uniform<i8:f32:0, {0.1, 0.2}>> to tensor<3x2x!quant.uniform<i8:f32:1, {0.1, 0.2}>>
func.func @main(%a0: tensor<2x3x!quant.uniform<i8:f32:0, {0.1,0.2}>>) -> (tensor<3x2x!quant.uniform<i8:f32:1, {0.1,0.2}>>) {
  %c0 = stablehlo.constant dense<[3, 2]> : tensor<2xi64>
  %r = "stablehlo.dynamic_reshape"(%a0, %c0) : (tensor<2x3x!quant.uniform<i8:f32:0, {0.1,0.2}>>, tensor<2xi64>) -> tensor<3x2x!quant.uniform<i8:f32:1, {0.1,0.2}>>
  return %r : tensor<3x2x!quant.uniform<i8:f32:1, {0.1,0.2}>>
}

// -----

// expected: V0701 stablehlo.subtract: (C1) types are tensor<2x!quant.uniform<i8:f32, 0.1>> and tensor<2x!quant.uniform<i16:f32, 0.1>>
func.func @main(%a0: tensor<2x!quant.uniform<i8:f32, 0.1:0>>, %a1: tensor<2x!quant.uniform<i16:f32, 0.1:0>>) -> (tensor<2x!quant.uniform<i8:f32, 0.1:0>>) {
  %r = "stablehlo.subtract"(%a0, %a1) : (tensor<2x!quant.uniform<i8:f32, 0.1:0>>, tensor<2x!quant.uniform<i16:f32, 0.1:0>>) -> tensor<2x!quant.uniform<i8:f32, 0.1:0>>
  return %r : tensor<2x!quant.uniform<i8:f32, 0.1:0>>
}

// -----

// expected: V0701 stablehlo.multiply: (C1) types are tensor<2x!quant.uniform<i8:f32, 0.1>> and tensor<2x!quant.uniform<i16:f32, 0.1>>
func.func @main(%a0: tensor<2x!quant.uniform<i8:f32, 0.1:0>>, %a1: tensor<2x!quant.uniform<i16:f32, 0.1:0>>) -> (tensor<2x!quant.uniform<i8:f32, 0.1:0>>) {
  %r = "stablehlo.multiply"(%a0, %a1) : (tensor<2x!quant.uniform<i8:f32, 0.1:0>>, tensor<2x!quant.uniform<i16:f32, 0.1:0>>) -> tensor<2x!quant.uniform<i8:f32, 0.1:0>>
  return %r : tensor<2x!quant.uniform<i8:f32, 0.1:0>>
}

// -----

// expected: V0701 stablehlo.divide: (C1) types are tensor<2x!quant.uniform<i8:f32, 0.1>> and tensor<2x!quant.uniform<i16:f32, 0.1>>
func.func @main(%a0: tensor<2x!quant.uniform<i8:f32, 0.1:0>>, %a1: tensor<2x!quant.uniform<i16:f32, 0.1:0>>) -> (tensor<2x!quant.uniform<i8:f32, 0.1:0>>) {
  %r = "stablehlo.divide"(%a0, %a1) : (tensor<2x!quant.uniform<i8:f32, 0.1:0>>, tensor<2x!quant.uniform<i16:f32, 0.1:0>>) -> tensor<2x!quant.uniform<i8:f32, 0.1:0>>
  return %r : tensor<2x!quant.uniform<i8:f32, 0.1:0>>
}

// -----

// expected: V0701 stablehlo.maximum: (C1) types are tensor<2x!quant.uniform<i8:f32, 0.1>> and tensor<2x!quant.uniform<i16:f32, 0.1>>
func.func @main(%a0: tensor<2x!quant.uniform<i8:f32, 0.1:0>>, %a1: tensor<2x!quant.uniform<i16:f32, 0.1:0>>) -> (tensor<2x!quant.uniform<i8:f32, 0.1:0>>) {
  %r = "stablehlo.maximum"(%a0, %a1) : (tensor<2x!quant.uniform<i8:f32, 0.1:0>>, tensor<2x!quant.uniform<i16:f32, 0.1:0>>) -> tensor<2x!quant.uniform<i8:f32, 0.1:0>>
  return %r : tensor<2x!quant.uniform<i8:f32, 0.1:0>>
}

// -----

// expected: V0701 stablehlo.negate: (C1) types are tensor<2x!quant.uniform<i8:f32, 0.1>> and tensor<3x!quant.uniform<i8:f32, 0.1>>
func.func @main(%a0: tensor<2x!quant.uniform<i8:f32, 0.1:0>>) -> (tensor<3x!quant.uniform<i8:f32, 0.1:0>>) {
  %r = "stablehlo.negate"(%a0) : (tensor<2x!quant.uniform<i8:f32, 0.1:0>>) -> tensor<3x!quant.uniform<i8:f32, 0.1:0>>
  return %r : tensor<3x!quant.uniform<i8:f32, 0.1:0>>
}

// -----

// expected: V0701 stablehlo.clamp: (C3) elements are of different types, tensor<2x!quant.uniform<i16:f32, 0.1>> and tensor<2x!quant.uniform<i8:f32, 0.1>>
func.func @main(%a0: tensor<2x!quant.uniform<i16:f32, 0.1:0>>, %a1: tensor<2x!quant.uniform<i8:f32, 0.1:0>>, %a2: tensor<2x!quant.uniform<i8:f32, 0.1:0>>) -> (tensor<2x!quant.uniform<i8:f32, 0.1:0>>) {
  %r = "stablehlo.clamp"(%a0, %a1, %a2) : (tensor<2x!quant.uniform<i16:f32, 0.1:0>>, tensor<2x!quant.uniform<i8:f32, 0.1:0>>, tensor<2x!quant.uniform<i8:f32, 0.1:0>>) -> tensor<2x!quant.uniform<i8:f32, 0.1:0>>
  return %r : tensor<2x!quant.uniform<i8:f32, 0.1:0>>
}

// -----

// expected: V0701 stablehlo.compare: (C1) elements are of different types, tensor<2x!quant.uniform<i8:f32, 0.1>> and tensor<2x!quant.uniform<i16:f32, 0.1>>
func.func @main(%a0: tensor<2x!quant.uniform<i8:f32, 0.1:0>>, %a1: tensor<2x!quant.uniform<i16:f32, 0.1:0>>) -> (tensor<2xi1>) {
  %r = "stablehlo.compare"(%a0, %a1) <{comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<2x!quant.uniform<i8:f32, 0.1:0>>, tensor<2x!quant.uniform<i16:f32, 0.1:0>>) -> tensor<2xi1>
  return %r : tensor<2xi1>
}

// -----

// expected: V0701 stablehlo.select: (C2) types are tensor<2x!quant.uniform<i8:f32, 0.1>> and tensor<2x!quant.uniform<i16:f32, 0.1>>
func.func @main(%a0: tensor<2xi1>, %a1: tensor<2x!quant.uniform<i8:f32, 0.1:0>>, %a2: tensor<2x!quant.uniform<i16:f32, 0.1:0>>) -> (tensor<2x!quant.uniform<i8:f32, 0.1:0>>) {
  %r = "stablehlo.select"(%a0, %a1, %a2) : (tensor<2xi1>, tensor<2x!quant.uniform<i8:f32, 0.1:0>>, tensor<2x!quant.uniform<i16:f32, 0.1:0>>) -> tensor<2x!quant.uniform<i8:f32, 0.1:0>>
  return %r : tensor<2x!quant.uniform<i8:f32, 0.1:0>>
}

// -----

// expected: V0701 stablehlo.abs: (C2) types are tensor<2x!quant.uniform<i8:f32, 0.1>> and tensor<2x!quant.uniform<i16:f32, 0.1>>
func.func @main(%a0: tensor<2x!quant.uniform<i8:f32, 0.1:0>>) -> (tensor<2x!quant.uniform<i16:f32, 0.1:0>>) {
  %r = "stablehlo.abs"(%a0) : (tensor<2x!quant.uniform<i8:f32, 0.1:0>>) -> tensor<2x!quant.uniform<i16:f32, 0.1:0>>
  return %r : tensor<2x!quant.uniform<i16:f32, 0.1:0>>
}

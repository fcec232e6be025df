// Sums of products of quantized numbers, by hand: storage values are (number / scale) + zero point. Numbers in comments.

// [[1, 2], [0, -2]] x [[1, 2], [0, -1]] = [[1, 0], [0, 2]]
func.func @dot_general_of_tensors() {
  %a = stablehlo.constant() {value = dense<[[3, 5], [1, -3]]> : tensor<2x2xi8>} : () -> tensor<2x2x!quant.uniform<i8:f32, 0.5:1>>
  %b = stablehlo.constant() {value = dense<[[4, 8], [0, -4]]> : tensor<2x2xi8>} : () -> tensor<2x2x!quant.uniform<i8:f32, 0.25>>
  %c = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<2x2x!quant.uniform<i8:f32, 0.5:1>>, tensor<2x2x!quant.uniform<i8:f32, 0.25>>) -> tensor<2x2x!quant.uniform<i8:f32, 0.5:2>>
  %s = stablehlo.bitcast_convert %c : (tensor<2x2x!quant.uniform<i8:f32, 0.5:2>>) -> tensor<2x2xi8>
  check.expect_eq_const %s, dense<[[4, 2], [2, 6]]> : tensor<2x2xi8>
  func.return
}

// -----

// In batches: [1, -2] . [3, 4] = -5, [0.5, 2] . [2, -1] = -1
func.func @dot_general_in_batches() {
  %a = stablehlo.constant() {value = dense<[[2, -4], [1, 4]]> : tensor<2x2xi8>} : () -> tensor<2x2x!quant.uniform<i8:f32, 0.5>>
  %b = stablehlo.constant() {value = dense<[[3, 4], [2, -1]]> : tensor<2x2xi8>} : () -> tensor<2x2x!quant.uniform<i8:f32, 1.0>>
  %c = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [1] x [1] : (tensor<2x2x!quant.uniform<i8:f32, 0.5>>, tensor<2x2x!quant.uniform<i8:f32, 1.0>>) -> tensor<2x!quant.uniform<i16:f32, 0.125:100>>
  %s = stablehlo.bitcast_convert %c : (tensor<2x!quant.uniform<i16:f32, 0.125:100>>) -> tensor<2xi16>
  check.expect_eq_const %s, dense<[60, 92]> : tensor<2xi16>
  func.return
}

// -----

// A scale for each column: [[1, 2], [0, -2]] x [[1, 1], [3, -2]] = [[7, -3], [-6, 4]]
func.func @dot_general_of_axes() {
  %a = stablehlo.constant() {value = dense<[[3, 5], [1, -3]]> : tensor<2x2xi8>} : () -> tensor<2x2x!quant.uniform<i8:f32, 0.5:1>>
  %b = stablehlo.constant() {value = dense<[[2, 4], [6, -8]]> : tensor<2x2xi8>} : () -> tensor<2x2x!quant.uniform<i8<-127:127>:f32:1, {0.5, 0.25}>>
  %c = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<2x2x!quant.uniform<i8:f32, 0.5:1>>, tensor<2x2x!quant.uniform<i8<-127:127>:f32:1, {0.5, 0.25}>>) -> tensor<2x2x!quant.uniform<i16:f32:1, {0.25, 0.125}>>
  %s = stablehlo.bitcast_convert %c : (tensor<2x2x!quant.uniform<i16:f32:1, {0.25, 0.125}>>) -> tensor<2x2xi16>
  check.expect_eq_const %s, dense<[[28, -24], [-24, 32]]> : tensor<2x2xi16>
  func.return
}

// -----

// 2.5, 3.5, -2.5 and -3.5 scales: ties go to even; 50 scales are more than the storage has.
func.func @results_are_rounded_and_clamped() {
  %a = stablehlo.constant() {value = dense<[[5], [7], [-5], [-7], [100], [-100]]> : tensor<6x1xi8>} : () -> tensor<6x1x!quant.uniform<i8:f32, 1.0>>
  %b = stablehlo.constant() {value = dense<[[1]]> : tensor<1x1xi8>} : () -> tensor<1x1x!quant.uniform<i8:f32, 1.0>>
  %c = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<6x1x!quant.uniform<i8:f32, 1.0>>, tensor<1x1x!quant.uniform<i8:f32, 1.0>>) -> tensor<6x1x!quant.uniform<i8<-10:11>:f32, 2.0>>
  %s = stablehlo.bitcast_convert %c : (tensor<6x1x!quant.uniform<i8<-10:11>:f32, 2.0>>) -> tensor<6x1xi8>
  check.expect_eq_const %s, dense<[[2], [4], [-2], [-4], [11], [-10]]> : tensor<6x1xi8>
  func.return
}

// -----

// Numbers and quantized weights: [1, 2] x [[1, 1], [3, -2]] = [7, -3]
func.func @dot_general_of_weights() {
  %a = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %b = stablehlo.constant() {value = dense<[[2, 4], [6, -8]]> : tensor<2x2xi8>} : () -> tensor<2x2x!quant.uniform<i8<-127:127>:f32:1, {0.5, 0.25}>>
  %c = stablehlo.dot_general %a, %b, contracting_dims = [0] x [0] : (tensor<2xf32>, tensor<2x2x!quant.uniform<i8<-127:127>:f32:1, {0.5, 0.25}>>) -> tensor<2xf32>
  check.expect_eq_const %c, dense<[7.0, -3.0]> : tensor<2xf32>
  func.return
}

// -----

func.func @dot() {
  %a = stablehlo.constant() {value = dense<[[3, 5], [1, -3]]> : tensor<2x2xi8>} : () -> tensor<2x2x!quant.uniform<i8:f32, 0.5:1>>
  %b = stablehlo.constant() {value = dense<[[3, 7], [-1, -5]]> : tensor<2x2xi8>} : () -> tensor<2x2x!quant.uniform<i8:f32, 0.25:-1>>
  %c = stablehlo.dot %a, %b : (tensor<2x2x!quant.uniform<i8:f32, 0.5:1>>, tensor<2x2x!quant.uniform<i8:f32, 0.25:-1>>) -> tensor<2x2x!quant.uniform<i8:f32, 0.5:2>>
  %s = stablehlo.bitcast_convert %c : (tensor<2x2x!quant.uniform<i8:f32, 0.5:2>>) -> tensor<2x2xi8>
  check.expect_eq_const %s, dense<[[4, 2], [2, 6]]> : tensor<2x2xi8>
  func.return
}

// -----

// What is padded is the number 0, not the storage value 0: [[1, 2], [3, 4]] by ones.
func.func @convolution_of_tensors() {
  %x = stablehlo.constant() {value = dense<[[[[1], [3]], [[5], [7]]]]> : tensor<1x2x2x1xi8>} : () -> tensor<1x2x2x1x!quant.uniform<i8:f32, 0.5:-1>>
  %w = stablehlo.constant() {value = dense<1> : tensor<2x2x1x1xi8>} : () -> tensor<2x2x1x1x!quant.uniform<i8:f32, 1.0>>
  %y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x2x2x1x!quant.uniform<i8:f32, 0.5:-1>>, tensor<2x2x1x1x!quant.uniform<i8:f32, 1.0>>) -> tensor<1x3x3x1x!quant.uniform<i8:f32, 1.0:10>>
  %s = stablehlo.bitcast_convert %y : (tensor<1x3x3x1x!quant.uniform<i8:f32, 1.0:10>>) -> tensor<1x3x3x1xi8>
  check.expect_eq_const %s, dense<[[[[11], [13], [12]], [[14], [20], [16]], [[13], [17], [14]]]]> : tensor<1x3x3x1xi8>
  func.return
}

// -----

// A scale for each feature: [[1, 2], [3, 4]] by 2 and by 6.
func.func @convolution_of_axes() {
  %x = stablehlo.constant() {value = dense<[[[[1], [3]], [[5], [7]]]]> : tensor<1x2x2x1xi8>} : () -> tensor<1x2x2x1x!quant.uniform<i8:f32, 0.5:-1>>
  %w = stablehlo.constant() {value = dense<[[[[4, 3]]]]> : tensor<1x1x1x2xi8>} : () -> tensor<1x1x1x2x!quant.uniform<i8<-127:127>:f32:3, {0.5, 2.0}>>
  %y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x2x2x1x!quant.uniform<i8:f32, 0.5:-1>>, tensor<1x1x1x2x!quant.uniform<i8<-127:127>:f32:3, {0.5, 2.0}>>) -> tensor<1x2x2x2x!quant.uniform<i16:f32:3, {0.25, 1.0}>>
  %s = stablehlo.bitcast_convert %y : (tensor<1x2x2x2x!quant.uniform<i16:f32:3, {0.25, 1.0}>>) -> tensor<1x2x2x2xi16>
  check.expect_eq_const %s, dense<[[[[8, 6], [16, 12]], [[24, 18], [32, 24]]]]> : tensor<1x2x2x2xi16>
  func.return
}

// -----

// Numbers and quantized weights.
func.func @convolution_of_weights() {
  %x = stablehlo.constant dense<[[[[1.0], [2.0]], [[3.0], [4.5]]]]> : tensor<1x2x2x1xf32>
  %w = stablehlo.constant() {value = dense<[[[[4, 3]]]]> : tensor<1x1x1x2xi8>} : () -> tensor<1x1x1x2x!quant.uniform<i8<-127:127>:f32:3, {0.5, 2.0}>>
  %y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x2x2x1xf32>, tensor<1x1x1x2x!quant.uniform<i8<-127:127>:f32:3, {0.5, 2.0}>>) -> tensor<1x2x2x2xf32>
  check.expect_eq_const %y, dense<[[[[2.0, 6.0], [4.0, 12.0]], [[6.0, 18.0], [9.0, 27.0]]]]> : tensor<1x2x2x2xf32>
  func.return
}

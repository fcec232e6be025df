// expected: V0701 stablehlo.reduce_window: (C1) 3 operands and 1 results
func.func @main(%a0: tensor<4x6xf32>, %a1: tensor<4x6xf32>, %a2: tensor<f32>) -> (tensor<2x6xf32>) {
  %r = "stablehlo.reduce_window"(%a0, %a1, %a2) <{window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 2, 1>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4x6xf32>, tensor<4x6xf32>, tensor<f32>) -> tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}

// -----

// expected: V0701 stablehlo.reduce_window: (C1) 2 operands and 2 results
func.func @main(%a0: tensor<4x6xf32>, %a1: tensor<f32>) -> (tensor<2x6xf32>, tensor<2x6xf32>) {
  %r:2 = "stablehlo.reduce_window"(%a0, %a1) <{window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 2, 1>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4x6xf32>, tensor<f32>) -> (tensor<2x6xf32>, tensor<2x6xf32>)
  return %r#0, %r#1 : tensor<2x6xf32>, tensor<2x6xf32>
}

// -----

// expected: V0701 stablehlo.reduce_window: (C2) inputs are tensor<4x6xf32> and tensor<4x5xf32>
func.func @main(%a0: tensor<4x6xf32>, %a1: tensor<4x5xf32>, %a2: tensor<f32>, %a3: tensor<f32>) -> (tensor<2x6xf32>, tensor<2x6xf32>) {
  %r:2 = "stablehlo.reduce_window"(%a0, %a1, %a2, %a3) <{window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 2, 1>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>, %x2: tensor<f32>, %x3: tensor<f32>):
    %s0 = stablehlo.add %x0, %x2 : tensor<f32>
    %s1 = stablehlo.add %x1, %x3 : tensor<f32>
    stablehlo.return %s0, %s1 : tensor<f32>, tensor<f32>
  }) : (tensor<4x6xf32>, tensor<4x5xf32>, tensor<f32>, tensor<f32>) -> (tensor<2x6xf32>, tensor<2x6xf32>)
  return %r#0, %r#1 : tensor<2x6xf32>, tensor<2x6xf32>
}

// -----

// expected: V0701 stablehlo.reduce_window: (C3) elements are of different types, tensor<4x6xf32> and tensor<i32>
func.func @main(%a0: tensor<4x6xf32>, %a1: tensor<i32>) -> (tensor<2x6xf32>) {
  %r = "stablehlo.reduce_window"(%a0, %a1) <{window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 2, 1>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4x6xf32>, tensor<i32>) -> tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}

// -----

// expected: V0701 stablehlo.reduce_window: (C4) `window_dimensions` has 1 values for 2 dimensions
func.func @main(%a0: tensor<4x6xf32>, %a1: tensor<f32>) -> (tensor<2x6xf32>) {
  %r = "stablehlo.reduce_window"(%a0, %a1) <{window_dimensions = array<i64: 2>, window_strides = array<i64: 2, 1>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4x6xf32>, tensor<f32>) -> tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}

// -----

// expected: V0701 stablehlo.reduce_window: (C5) `window_dimensions` is [0, 1], and must be positive
func.func @main(%a0: tensor<4x6xf32>, %a1: tensor<f32>) -> (tensor<2x6xf32>) {
  %r = "stablehlo.reduce_window"(%a0, %a1) <{window_dimensions = array<i64: 0, 1>, window_strides = array<i64: 2, 1>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4x6xf32>, tensor<f32>) -> tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}

// -----

// expected: V0701 stablehlo.reduce_window: (C6) `window_strides` has 1 values for 2 dimensions
func.func @main(%a0: tensor<4x6xf32>, %a1: tensor<f32>) -> (tensor<2x6xf32>) {
  %r = "stablehlo.reduce_window"(%a0, %a1) <{window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 2>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4x6xf32>, tensor<f32>) -> tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}

// -----

// expected: V0701 stablehlo.reduce_window: (C7) `window_strides` is [0, 1], and must be positive
func.func @main(%a0: tensor<4x6xf32>, %a1: tensor<f32>) -> (tensor<2x6xf32>) {
  %r = "stablehlo.reduce_window"(%a0, %a1) <{window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 0, 1>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4x6xf32>, tensor<f32>) -> tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}

// -----

// expected: V0701 stablehlo.reduce_window: (C8) `base_dilations` has 1 values for 2 dimensions
func.func @main(%a0: tensor<4x6xf32>, %a1: tensor<f32>) -> (tensor<2x6xf32>) {
  %r = "stablehlo.reduce_window"(%a0, %a1) <{window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 2, 1>, base_dilations = array<i64: 1>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4x6xf32>, tensor<f32>) -> tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}

// -----

// expected: V0701 stablehlo.reduce_window: (C9) `base_dilations` is [1, 0], and must be positive
func.func @main(%a0: tensor<4x6xf32>, %a1: tensor<f32>) -> (tensor<2x6xf32>) {
  %r = "stablehlo.reduce_window"(%a0, %a1) <{window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 2, 1>, base_dilations = array<i64: 1, 0>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4x6xf32>, tensor<f32>) -> tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}

// -----

// expected: V0701 stablehlo.reduce_window: (C10) `window_dilations` has 3 values for 2 dimensions
func.func @main(%a0: tensor<4x6xf32>, %a1: tensor<f32>) -> (tensor<2x6xf32>) {
  %r = "stablehlo.reduce_window"(%a0, %a1) <{window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 2, 1>, window_dilations = array<i64: 1, 1, 1>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4x6xf32>, tensor<f32>) -> tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}

// -----

// expected: V0701 stablehlo.reduce_window: (C11) `window_dilations` is [-1, 1], and must be positive
func.func @main(%a0: tensor<4x6xf32>, %a1: tensor<f32>) -> (tensor<2x6xf32>) {
  %r = "stablehlo.reduce_window"(%a0, %a1) <{window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 2, 1>, window_dilations = array<i64: -1, 1>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4x6xf32>, tensor<f32>) -> tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}

// -----

// expected: V0701 stablehlo.reduce_window: (C12) the padding is no list of 2 pairs
func.func @main(%a0: tensor<4x6xf32>, %a1: tensor<f32>) -> (tensor<2x6xf32>) {
  %r = "stablehlo.reduce_window"(%a0, %a1) <{window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 2, 1>, padding = dense<0> : tensor<1x2xi64>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4x6xf32>, tensor<f32>) -> tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}

// -----

// expected: V0701 stablehlo.reduce_window: (C12) the padding is no list of 2 pairs
func.func @main(%a0: tensor<4x6xf32>, %a1: tensor<f32>) -> (tensor<2x6xf32>) {
  %r = "stablehlo.reduce_window"(%a0, %a1) <{window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 2, 1>, padding = dense<0> : tensor<4xi64>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4x6xf32>, tensor<f32>) -> tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}

// -----

// expected: V0701 stablehlo.reduce_window: (C13) the computation is (tensor<f32>, tensor<f32>) -> (tensor<i32>), of elements (f32)
func.func @main(%a0: tensor<4x6xf32>, %a1: tensor<f32>) -> (tensor<2x6xf32>) {
  %r = "stablehlo.reduce_window"(%a0, %a1) <{window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 2, 1>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %c = stablehlo.convert %x0 : (tensor<f32>) -> tensor<i32>
    stablehlo.return %c : tensor<i32>
  }) : (tensor<4x6xf32>, tensor<f32>) -> tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}

// -----

// expected: V0701 stablehlo.reduce_window: (C13) the computation is (tensor<f32>) -> (tensor<f32>), of elements (f32)
func.func @main(%a0: tensor<4x6xf32>, %a1: tensor<f32>) -> (tensor<2x6xf32>) {
  %r = "stablehlo.reduce_window"(%a0, %a1) <{window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 2, 1>}> ({
  ^bb0(%x0: tensor<f32>):
    stablehlo.return %x0 : tensor<f32>
  }) : (tensor<4x6xf32>, tensor<f32>) -> tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}

// -----

// expected: V0701 stablehlo.reduce_window: (C13) the computation is (tensor<f16>, tensor<f16>) -> (tensor<f16>), of elements (f32)
func.func @main(%a0: tensor<4x6xf32>, %a1: tensor<f32>) -> (tensor<2x6xf32>) {
  %r = "stablehlo.reduce_window"(%a0, %a1) <{window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 2, 1>}> ({
  ^bb0(%x0: tensor<f16>, %x1: tensor<f16>):
    %c = stablehlo.add %x0, %x1 : tensor<f16>
    stablehlo.return %c : tensor<f16>
  }) : (tensor<4x6xf32>, tensor<f32>) -> tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}

// -----

// expected: V0701 stablehlo.reduce_window: (C14) results are tensor<2x6xf32> and tensor<2x5xf32>
func.func @main(%a0: tensor<4x6xf32>, %a1: tensor<4x6xf32>, %a2: tensor<f32>, %a3: tensor<f32>) -> (tensor<2x6xf32>, tensor<2x5xf32>) {
  %r:2 = "stablehlo.reduce_window"(%a0, %a1, %a2, %a3) <{window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 2, 1>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>, %x2: tensor<f32>, %x3: tensor<f32>):
    %s0 = stablehlo.add %x0, %x2 : tensor<f32>
    %s1 = stablehlo.add %x1, %x3 : tensor<f32>
    stablehlo.return %s0, %s1 : tensor<f32>, tensor<f32>
  }) : (tensor<4x6xf32>, tensor<4x6xf32>, tensor<f32>, tensor<f32>) -> (tensor<2x6xf32>, tensor<2x5xf32>)
  return %r#0, %r#1 : tensor<2x6xf32>, tensor<2x5xf32>
}

// -----

// expected: V0701 stablehlo.reduce_window: (C15) the result is tensor<3x6xf32>, and its shape must be [2, 6]
func.func @main(%a0: tensor<4x6xf32>, %a1: tensor<f32>) -> (tensor<3x6xf32>) {
  %r = "stablehlo.reduce_window"(%a0, %a1) <{window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 2, 1>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4x6xf32>, tensor<f32>) -> tensor<3x6xf32>
  return %r : tensor<3x6xf32>
}

// -----

// expected: V0701 stablehlo.reduce_window: (C15) the result is tensor<2x6xf32>, and its shape must be [3, 6]
func.func @main(%a0: tensor<4x6xf32>, %a1: tensor<f32>) -> (tensor<2x6xf32>) {
  %r = "stablehlo.reduce_window"(%a0, %a1) <{window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 2, 1>, padding = dense<[[1, 1], [0, 0]]> : tensor<2x2xi64>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4x6xf32>, tensor<f32>) -> tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}

// -----

// expected: V0701 stablehlo.reduce_window: (C15) the result is tensor<2x6xf32>, and its shape must be [3, 6]
func.func @main(%a0: tensor<4x6xf32>, %a1: tensor<f32>) -> (tensor<2x6xf32>) {
  %r = "stablehlo.reduce_window"(%a0, %a1) <{window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 2, 1>, base_dilations = array<i64: 2, 1>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4x6xf32>, tensor<f32>) -> tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}

// -----

// expected: V0701 stablehlo.reduce_window: (C16) the result is tensor<2x6xf64>, and the computation gives f32
func.func @main(%a0: tensor<4x6xf32>, %a1: tensor<f32>) -> (tensor<2x6xf64>) {
  %r = "stablehlo.reduce_window"(%a0, %a1) <{window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 2, 1>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4x6xf32>, tensor<f32>) -> tensor<2x6xf64>
  return %r : tensor<2x6xf64>
}

// -----

// expected: V0701 stablehlo.reduce_window: (C16) the result is tensor<2x6xf32>, and the computation gives f64
func.func @main(%a0: tensor<4x6xf32>, %a1: tensor<f32>) -> (tensor<2x6xf32>) {
  %r = "stablehlo.reduce_window"(%a0, %a1) <{window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 2, 1>}> ({
  ^bb0(%x0: tensor<f64>, %x1: tensor<f64>):
    %c = stablehlo.add %x0, %x1 : tensor<f64>
    stablehlo.return %c : tensor<f64>
  }) : (tensor<4x6xf32>, tensor<f32>) -> tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}

// -----

// expected: V0701 stablehlo.reduce_window: (I2) an initial value is tensor<1xf32>
func.func @main(%a0: tensor<4x6xf32>, %a1: tensor<1xf32>) -> (tensor<2x6xf32>) {
  %r = "stablehlo.reduce_window"(%a0, %a1) <{window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 2, 1>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4x6xf32>, tensor<1xf32>) -> tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}

// -----

// expected: V0701 stablehlo.select_and_scatter: (C1) elements are of different types, tensor<4x6xf32> and tensor<2x6xf64>
func.func @main(%a0: tensor<4x6xf32>, %a1: tensor<2x6xf64>, %a2: tensor<f32>) -> (tensor<4x6xf32>) {
  %r = "stablehlo.select_and_scatter"(%a0, %a1, %a2) <{window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 2, 1>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %c = stablehlo.compare GE, %x0, %x1 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }, {
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4x6xf32>, tensor<2x6xf64>, tensor<f32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// -----

// expected: V0701 stablehlo.select_and_scatter: (C2) the source is tensor<3x6xf32>, and there are [2, 6] windows
func.func @main(%a0: tensor<4x6xf32>, %a1: tensor<3x6xf32>, %a2: tensor<f32>) -> (tensor<4x6xf32>) {
  %r = "stablehlo.select_and_scatter"(%a0, %a1, %a2) <{window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 2, 1>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %c = stablehlo.compare GE, %x0, %x1 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }, {
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4x6xf32>, tensor<3x6xf32>, tensor<f32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// -----

// expected: V0701 stablehlo.select_and_scatter: (C2) the source is tensor<2x6xf32>, and there are [3, 6] windows
func.func @main(%a0: tensor<4x6xf32>, %a1: tensor<2x6xf32>, %a2: tensor<f32>) -> (tensor<4x6xf32>) {
  %r = "stablehlo.select_and_scatter"(%a0, %a1, %a2) <{window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 2, 1>, padding = dense<[[1, 1], [0, 0]]> : tensor<2x2xi64>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %c = stablehlo.compare GE, %x0, %x1 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }, {
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4x6xf32>, tensor<2x6xf32>, tensor<f32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// -----

// expected: V0701 stablehlo.select_and_scatter: (C3) elements are of different types, tensor<f64> and tensor<4x6xf32>
func.func @main(%a0: tensor<4x6xf32>, %a1: tensor<2x6xf32>, %a2: tensor<f64>) -> (tensor<4x6xf32>) {
  %r = "stablehlo.select_and_scatter"(%a0, %a1, %a2) <{window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 2, 1>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %c = stablehlo.compare GE, %x0, %x1 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }, {
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4x6xf32>, tensor<2x6xf32>, tensor<f64>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// -----

// expected: V0701 stablehlo.select_and_scatter: (C4) `window_dimensions` has 1 values for 2 dimensions
func.func @main(%a0: tensor<4x6xf32>, %a1: tensor<2x6xf32>, %a2: tensor<f32>) -> (tensor<4x6xf32>) {
  %r = "stablehlo.select_and_scatter"(%a0, %a1, %a2) <{window_dimensions = array<i64: 2>, window_strides = array<i64: 2, 1>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %c = stablehlo.compare GE, %x0, %x1 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }, {
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4x6xf32>, tensor<2x6xf32>, tensor<f32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// -----

// expected: V0701 stablehlo.select_and_scatter: (C5) `window_dimensions` is [0, 1], and must be positive
func.func @main(%a0: tensor<4x6xf32>, %a1: tensor<2x6xf32>, %a2: tensor<f32>) -> (tensor<4x6xf32>) {
  %r = "stablehlo.select_and_scatter"(%a0, %a1, %a2) <{window_dimensions = array<i64: 0, 1>, window_strides = array<i64: 2, 1>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %c = stablehlo.compare GE, %x0, %x1 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }, {
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4x6xf32>, tensor<2x6xf32>, tensor<f32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// -----

// expected: V0701 stablehlo.select_and_scatter: (C6) `window_strides` has 3 values for 2 dimensions
func.func @main(%a0: tensor<4x6xf32>, %a1: tensor<2x6xf32>, %a2: tensor<f32>) -> (tensor<4x6xf32>) {
  %r = "stablehlo.select_and_scatter"(%a0, %a1, %a2) <{window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 2, 1, 1>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %c = stablehlo.compare GE, %x0, %x1 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }, {
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4x6xf32>, tensor<2x6xf32>, tensor<f32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// -----

// expected: V0701 stablehlo.select_and_scatter: (C7) `window_strides` is [2, 0], and must be positive
func.func @main(%a0: tensor<4x6xf32>, %a1: tensor<2x6xf32>, %a2: tensor<f32>) -> (tensor<4x6xf32>) {
  %r = "stablehlo.select_and_scatter"(%a0, %a1, %a2) <{window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 2, 0>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %c = stablehlo.compare GE, %x0, %x1 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }, {
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4x6xf32>, tensor<2x6xf32>, tensor<f32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// -----

// expected: V0701 stablehlo.select_and_scatter: (C8) the padding is no list of 2 pairs
func.func @main(%a0: tensor<4x6xf32>, %a1: tensor<2x6xf32>, %a2: tensor<f32>) -> (tensor<4x6xf32>) {
  %r = "stablehlo.select_and_scatter"(%a0, %a1, %a2) <{window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 2, 1>, padding = dense<0> : tensor<1x2xi64>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %c = stablehlo.compare GE, %x0, %x1 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }, {
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4x6xf32>, tensor<2x6xf32>, tensor<f32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// -----

// expected: V0701 stablehlo.select_and_scatter: (C9) the selection is (tensor<f32>, tensor<f32>) -> (tensor<f32>)
func.func @main(%a0: tensor<4x6xf32>, %a1: tensor<2x6xf32>, %a2: tensor<f32>) -> (tensor<4x6xf32>) {
  %r = "stablehlo.select_and_scatter"(%a0, %a1, %a2) <{window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 2, 1>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }, {
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4x6xf32>, tensor<2x6xf32>, tensor<f32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// -----

// expected: V0701 stablehlo.select_and_scatter: (C9) the selection is (tensor<f64>, tensor<f64>) -> (tensor<i1>)
func.func @main(%a0: tensor<4x6xf32>, %a1: tensor<2x6xf32>, %a2: tensor<f32>) -> (tensor<4x6xf32>) {
  %r = "stablehlo.select_and_scatter"(%a0, %a1, %a2) <{window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 2, 1>}> ({
  ^bb0(%x0: tensor<f64>, %x1: tensor<f64>):
    %c = stablehlo.compare GE, %x0, %x1 : (tensor<f64>, tensor<f64>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }, {
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4x6xf32>, tensor<2x6xf32>, tensor<f32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// -----

// expected: V0701 stablehlo.select_and_scatter: (C10) the computation is (tensor<f32>, tensor<f32>) -> (tensor<i32>), of elements (f32)
func.func @main(%a0: tensor<4x6xf32>, %a1: tensor<2x6xf32>, %a2: tensor<f32>) -> (tensor<4x6xf32>) {
  %r = "stablehlo.select_and_scatter"(%a0, %a1, %a2) <{window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 2, 1>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %c = stablehlo.compare GE, %x0, %x1 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }, {
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %c = stablehlo.convert %x0 : (tensor<f32>) -> tensor<i32>
    stablehlo.return %c : tensor<i32>
  }) : (tensor<4x6xf32>, tensor<2x6xf32>, tensor<f32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// -----

// expected: V0701 stablehlo.select_and_scatter: (C11) the result is tensor<4x5xf32>, and its shape must be [4, 6]
func.func @main(%a0: tensor<4x6xf32>, %a1: tensor<2x6xf32>, %a2: tensor<f32>) -> (tensor<4x5xf32>) {
  %r = "stablehlo.select_and_scatter"(%a0, %a1, %a2) <{window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 2, 1>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %c = stablehlo.compare GE, %x0, %x1 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }, {
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4x6xf32>, tensor<2x6xf32>, tensor<f32>) -> tensor<4x5xf32>
  return %r : tensor<4x5xf32>
}

// -----

// expected: V0701 stablehlo.select_and_scatter: (C12) the result is tensor<4x6xf64>, and the computation gives f32
func.func @main(%a0: tensor<4x6xf32>, %a1: tensor<2x6xf32>, %a2: tensor<f32>) -> (tensor<4x6xf64>) {
  %r = "stablehlo.select_and_scatter"(%a0, %a1, %a2) <{window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 2, 1>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %c = stablehlo.compare GE, %x0, %x1 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }, {
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4x6xf32>, tensor<2x6xf32>, tensor<f32>) -> tensor<4x6xf64>
  return %r : tensor<4x6xf64>
}

// -----

// expected: V0701 stablehlo.select_and_scatter: (C12) the result is tensor<4x6xf32>, and the computation gives f64
func.func @main(%a0: tensor<4x6xf32>, %a1: tensor<2x6xf32>, %a2: tensor<f32>) -> (tensor<4x6xf32>) {
  %r = "stablehlo.select_and_scatter"(%a0, %a1, %a2) <{window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 2, 1>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %c = stablehlo.compare GE, %x0, %x1 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }, {
  ^bb0(%x0: tensor<f64>, %x1: tensor<f64>):
    %c = stablehlo.add %x0, %x1 : tensor<f64>
    stablehlo.return %c : tensor<f64>
  }) : (tensor<4x6xf32>, tensor<2x6xf32>, tensor<f32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// -----

// expected: V0701 stablehlo.select_and_scatter: (I3) the initial value is tensor<1xf32>
func.func @main(%a0: tensor<4x6xf32>, %a1: tensor<2x6xf32>, %a2: tensor<1xf32>) -> (tensor<4x6xf32>) {
  %r = "stablehlo.select_and_scatter"(%a0, %a1, %a2) <{window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 2, 1>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %c = stablehlo.compare GE, %x0, %x1 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }, {
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4x6xf32>, tensor<2x6xf32>, tensor<1xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// -----

// expected: V0701 stablehlo.convolution: (C1) operands are tensor<1x8x8x4xf32> and tensor<3x4x8xf32>
func.func @main(%a0: tensor<1x8x8x4xf32>, %a1: tensor<3x4x8xf32>) -> (tensor<1x6x6x8xf32>) {
  %r = "stablehlo.convolution"(%a0, %a1) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 1 : i64}> : (tensor<1x8x8x4xf32>, tensor<3x4x8xf32>) -> tensor<1x6x6x8xf32>
  return %r : tensor<1x6x6x8xf32>
}

// -----

// expected: V0701 stablehlo.convolution: (C2) `window_strides` has 1 values for 2 dimensions
func.func @main(%a0: tensor<1x8x8x4xf32>, %a1: tensor<3x3x4x8xf32>) -> (tensor<1x6x6x8xf32>) {
  %r = "stablehlo.convolution"(%a0, %a1) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 1 : i64, window_strides = array<i64: 1>}> : (tensor<1x8x8x4xf32>, tensor<3x3x4x8xf32>) -> tensor<1x6x6x8xf32>
  return %r : tensor<1x6x6x8xf32>
}

// -----

// expected: V0701 stablehlo.convolution: (C3) `window_strides` is [0, 1], and must be positive
func.func @main(%a0: tensor<1x8x8x4xf32>, %a1: tensor<3x3x4x8xf32>) -> (tensor<1x6x6x8xf32>) {
  %r = "stablehlo.convolution"(%a0, %a1) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 1 : i64, window_strides = array<i64: 0, 1>}> : (tensor<1x8x8x4xf32>, tensor<3x3x4x8xf32>) -> tensor<1x6x6x8xf32>
  return %r : tensor<1x6x6x8xf32>
}

// -----

// expected: V0701 stablehlo.convolution: (C4) the padding is no list of 2 pairs
func.func @main(%a0: tensor<1x8x8x4xf32>, %a1: tensor<3x3x4x8xf32>) -> (tensor<1x6x6x8xf32>) {
  %r = "stablehlo.convolution"(%a0, %a1) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 1 : i64, padding = dense<0> : tensor<1x2xi64>}> : (tensor<1x8x8x4xf32>, tensor<3x3x4x8xf32>) -> tensor<1x6x6x8xf32>
  return %r : tensor<1x6x6x8xf32>
}

// -----

// expected: V0701 stablehlo.convolution: (C4) the padding is no list of 2 pairs
func.func @main(%a0: tensor<1x8x8x4xf32>, %a1: tensor<3x3x4x8xf32>) -> (tensor<1x6x6x8xf32>) {
  %r = "stablehlo.convolution"(%a0, %a1) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 1 : i64, padding = dense<0> : tensor<4xi64>}> : (tensor<1x8x8x4xf32>, tensor<3x3x4x8xf32>) -> tensor<1x6x6x8xf32>
  return %r : tensor<1x6x6x8xf32>
}

// -----

// expected: V0701 stablehlo.convolution: (C5) `lhs_dilation` has 1 values for 2 dimensions
func.func @main(%a0: tensor<1x8x8x4xf32>, %a1: tensor<3x3x4x8xf32>) -> (tensor<1x6x6x8xf32>) {
  %r = "stablehlo.convolution"(%a0, %a1) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 1 : i64, lhs_dilation = array<i64: 1>}> : (tensor<1x8x8x4xf32>, tensor<3x3x4x8xf32>) -> tensor<1x6x6x8xf32>
  return %r : tensor<1x6x6x8xf32>
}

// -----

// expected: V0701 stablehlo.convolution: (C6) `lhs_dilation` is [0, 1], and must be positive
func.func @main(%a0: tensor<1x8x8x4xf32>, %a1: tensor<3x3x4x8xf32>) -> (tensor<1x6x6x8xf32>) {
  %r = "stablehlo.convolution"(%a0, %a1) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 1 : i64, lhs_dilation = array<i64: 0, 1>}> : (tensor<1x8x8x4xf32>, tensor<3x3x4x8xf32>) -> tensor<1x6x6x8xf32>
  return %r : tensor<1x6x6x8xf32>
}

// -----

// expected: V0701 stablehlo.convolution: (C7) `rhs_dilation` has 1 values for 2 dimensions
func.func @main(%a0: tensor<1x8x8x4xf32>, %a1: tensor<3x3x4x8xf32>) -> (tensor<1x6x6x8xf32>) {
  %r = "stablehlo.convolution"(%a0, %a1) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 1 : i64, rhs_dilation = array<i64: 1>}> : (tensor<1x8x8x4xf32>, tensor<3x3x4x8xf32>) -> tensor<1x6x6x8xf32>
  return %r : tensor<1x6x6x8xf32>
}

// -----

// expected: V0701 stablehlo.convolution: (C8) `rhs_dilation` is [1, 0], and must be positive
func.func @main(%a0: tensor<1x8x8x4xf32>, %a1: tensor<3x3x4x8xf32>) -> (tensor<1x6x6x8xf32>) {
  %r = "stablehlo.convolution"(%a0, %a1) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 1 : i64, rhs_dilation = array<i64: 1, 0>}> : (tensor<1x8x8x4xf32>, tensor<3x3x4x8xf32>) -> tensor<1x6x6x8xf32>
  return %r : tensor<1x6x6x8xf32>
}

// -----

// expected: V0701 stablehlo.convolution: (C9) `window_reversal` has 1 values for 2 dimensions
func.func @main(%a0: tensor<1x8x8x4xf32>, %a1: tensor<3x3x4x8xf32>) -> (tensor<1x6x6x8xf32>) {
  %r = "stablehlo.convolution"(%a0, %a1) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 1 : i64, window_reversal = array<i1: false>}> : (tensor<1x8x8x4xf32>, tensor<3x3x4x8xf32>) -> tensor<1x6x6x8xf32>
  return %r : tensor<1x6x6x8xf32>
}

// -----

// expected: V0701 stablehlo.convolution: (C10) a batch of size 1 in 2 groups
func.func @main(%a0: tensor<1x8x8x4xf32>, %a1: tensor<3x3x4x8xf32>) -> (tensor<1x6x6x8xf32>) {
  %r = "stablehlo.convolution"(%a0, %a1) <{batch_group_count = 2 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 1 : i64}> : (tensor<1x8x8x4xf32>, tensor<3x3x4x8xf32>) -> tensor<1x6x6x8xf32>
  return %r : tensor<1x6x6x8xf32>
}

// -----

// expected: V0701 stablehlo.convolution: (C11) an input feature of size 4 in 3 groups
func.func @main(%a0: tensor<1x8x8x4xf32>, %a1: tensor<3x3x4x8xf32>) -> (tensor<1x6x6x8xf32>) {
  %r = "stablehlo.convolution"(%a0, %a1) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 3 : i64}> : (tensor<1x8x8x4xf32>, tensor<3x3x4x8xf32>) -> tensor<1x6x6x8xf32>
  return %r : tensor<1x6x6x8xf32>
}

// -----

// expected: V0701 stablehlo.convolution: (C12) 1 spatial dimensions of the input, of rank 4
func.func @main(%a0: tensor<1x8x8x4xf32>, %a1: tensor<3x3x4x8xf32>) -> (tensor<1x6x6x8xf32>) {
  %r = "stablehlo.convolution"(%a0, %a1) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 1 : i64}> : (tensor<1x8x8x4xf32>, tensor<3x3x4x8xf32>) -> tensor<1x6x6x8xf32>
  return %r : tensor<1x6x6x8xf32>
}

// -----

// expected: V0701 stablehlo.convolution: (C13) dimensions of the input are [0, 1, 1, 3], of rank 4
func.func @main(%a0: tensor<1x8x8x4xf32>, %a1: tensor<3x3x4x8xf32>) -> (tensor<1x6x6x8xf32>) {
  %r = "stablehlo.convolution"(%a0, %a1) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 1], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 1 : i64}> : (tensor<1x8x8x4xf32>, tensor<3x3x4x8xf32>) -> tensor<1x6x6x8xf32>
  return %r : tensor<1x6x6x8xf32>
}

// -----

// expected: V0701 stablehlo.convolution: (C13) dimensions of the input are [0, 1, 3, 4], of rank 4
func.func @main(%a0: tensor<1x8x8x4xf32>, %a1: tensor<3x3x4x8xf32>) -> (tensor<1x6x6x8xf32>) {
  %r = "stablehlo.convolution"(%a0, %a1) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 4], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 1 : i64}> : (tensor<1x8x8x4xf32>, tensor<3x3x4x8xf32>) -> tensor<1x6x6x8xf32>
  return %r : tensor<1x6x6x8xf32>
}

// -----

// expected: V0701 stablehlo.convolution: (C14) the kernel has 3 input features, and each group 4
func.func @main(%a0: tensor<1x8x8x4xf32>, %a1: tensor<3x3x3x8xf32>) -> (tensor<1x6x6x8xf32>) {
  %r = "stablehlo.convolution"(%a0, %a1) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 1 : i64}> : (tensor<1x8x8x4xf32>, tensor<3x3x3x8xf32>) -> tensor<1x6x6x8xf32>
  return %r : tensor<1x6x6x8xf32>
}

// -----

// expected: V0701 stablehlo.convolution: (C15) an output feature of size 7 in 2 groups of batches
func.func @main(%a0: tensor<2x8x8x4xf32>, %a1: tensor<3x3x4x7xf32>) -> (tensor<1x6x6x7xf32>) {
  %r = "stablehlo.convolution"(%a0, %a1) <{batch_group_count = 2 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 1 : i64}> : (tensor<2x8x8x4xf32>, tensor<3x3x4x7xf32>) -> tensor<1x6x6x7xf32>
  return %r : tensor<1x6x6x7xf32>
}

// -----

// expected: V0701 stablehlo.convolution: (C16) an output feature of size 7 in 2 groups of features
func.func @main(%a0: tensor<1x8x8x4xf32>, %a1: tensor<3x3x2x7xf32>) -> (tensor<1x6x6x7xf32>) {
  %r = "stablehlo.convolution"(%a0, %a1) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 2 : i64}> : (tensor<1x8x8x4xf32>, tensor<3x3x2x7xf32>) -> tensor<1x6x6x7xf32>
  return %r : tensor<1x6x6x7xf32>
}

// -----

// expected: V0701 stablehlo.convolution: (C17) 1 spatial dimensions of the kernel, of rank 4
func.func @main(%a0: tensor<1x8x8x4xf32>, %a1: tensor<3x3x4x8xf32>) -> (tensor<1x6x6x8xf32>) {
  %r = "stablehlo.convolution"(%a0, %a1) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 1 : i64}> : (tensor<1x8x8x4xf32>, tensor<3x3x4x8xf32>) -> tensor<1x6x6x8xf32>
  return %r : tensor<1x6x6x8xf32>
}

// -----

// expected: V0701 stablehlo.convolution: (C18) dimensions of the kernel are [0, 0, 2, 3], of rank 4
func.func @main(%a0: tensor<1x8x8x4xf32>, %a1: tensor<3x3x4x8xf32>) -> (tensor<1x6x6x8xf32>) {
  %r = "stablehlo.convolution"(%a0, %a1) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 0], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 1 : i64}> : (tensor<1x8x8x4xf32>, tensor<3x3x4x8xf32>) -> tensor<1x6x6x8xf32>
  return %r : tensor<1x6x6x8xf32>
}

// -----

// expected: V0701 stablehlo.convolution: (C19) 1 spatial dimensions of the output, of rank 4
func.func @main(%a0: tensor<1x8x8x4xf32>, %a1: tensor<3x3x4x8xf32>) -> (tensor<1x6x6x8xf32>) {
  %r = "stablehlo.convolution"(%a0, %a1) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1]>, feature_group_count = 1 : i64}> : (tensor<1x8x8x4xf32>, tensor<3x3x4x8xf32>) -> tensor<1x6x6x8xf32>
  return %r : tensor<1x6x6x8xf32>
}

// -----

// expected: V0701 stablehlo.convolution: (C20) dimensions of the output are [0, 1, 3, 3], of rank 4
func.func @main(%a0: tensor<1x8x8x4xf32>, %a1: tensor<3x3x4x8xf32>) -> (tensor<1x6x6x8xf32>) {
  %r = "stablehlo.convolution"(%a0, %a1) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 3]>, feature_group_count = 1 : i64}> : (tensor<1x8x8x4xf32>, tensor<3x3x4x8xf32>) -> tensor<1x6x6x8xf32>
  return %r : tensor<1x6x6x8xf32>
}

// -----

// expected: V0701 stablehlo.convolution: (C20) dimensions of the output are [-1, 0, 1, 3], of rank 4
func.func @main(%a0: tensor<1x8x8x4xf32>, %a1: tensor<3x3x4x8xf32>) -> (tensor<1x6x6x8xf32>) {
  %r = "stablehlo.convolution"(%a0, %a1) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, -1]>, feature_group_count = 1 : i64}> : (tensor<1x8x8x4xf32>, tensor<3x3x4x8xf32>) -> tensor<1x6x6x8xf32>
  return %r : tensor<1x6x6x8xf32>
}

// -----

// expected: V0701 stablehlo.convolution: (C21) `feature_group_count` is 0
func.func @main(%a0: tensor<1x8x8x4xf32>, %a1: tensor<3x3x4x8xf32>) -> (tensor<1x6x6x8xf32>) {
  %r = "stablehlo.convolution"(%a0, %a1) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 0 : i64}> : (tensor<1x8x8x4xf32>, tensor<3x3x4x8xf32>) -> tensor<1x6x6x8xf32>
  return %r : tensor<1x6x6x8xf32>
}

// -----

// expected: V0701 stablehlo.convolution: (C22) `batch_group_count` is 0
func.func @main(%a0: tensor<1x8x8x4xf32>, %a1: tensor<3x3x4x8xf32>) -> (tensor<1x6x6x8xf32>) {
  %r = "stablehlo.convolution"(%a0, %a1) <{batch_group_count = 0 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 1 : i64}> : (tensor<1x8x8x4xf32>, tensor<3x3x4x8xf32>) -> tensor<1x6x6x8xf32>
  return %r : tensor<1x6x6x8xf32>
}

// -----

// expected: V0701 stablehlo.convolution: (C23) 2 groups of features and 2 of batches
func.func @main(%a0: tensor<2x8x8x4xf32>, %a1: tensor<3x3x2x8xf32>) -> (tensor<1x6x6x8xf32>) {
  %r = "stablehlo.convolution"(%a0, %a1) <{batch_group_count = 2 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 2 : i64}> : (tensor<2x8x8x4xf32>, tensor<3x3x2x8xf32>) -> tensor<1x6x6x8xf32>
  return %r : tensor<1x6x6x8xf32>
}

// -----

// expected: V0701 stablehlo.convolution: (C24) 1 precisions of two operands
func.func @main(%a0: tensor<1x8x8x4xf32>, %a1: tensor<3x3x4x8xf32>) -> (tensor<1x6x6x8xf32>) {
  %r = "stablehlo.convolution"(%a0, %a1) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>]}> : (tensor<1x8x8x4xf32>, tensor<3x3x4x8xf32>) -> tensor<1x6x6x8xf32>
  return %r : tensor<1x6x6x8xf32>
}

// -----

// expected: V0701 stablehlo.convolution: (C25) the result is tensor<1x5x6x8xf32>, and its shape must be [1, 6, 6, 8]
func.func @main(%a0: tensor<1x8x8x4xf32>, %a1: tensor<3x3x4x8xf32>) -> (tensor<1x5x6x8xf32>) {
  %r = "stablehlo.convolution"(%a0, %a1) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 1 : i64}> : (tensor<1x8x8x4xf32>, tensor<3x3x4x8xf32>) -> tensor<1x5x6x8xf32>
  return %r : tensor<1x5x6x8xf32>
}

// -----

// expected: V0701 stablehlo.convolution: (C25) the result is tensor<2x6x6x8xf32>, and its shape must be [1, 6, 6, 8]
func.func @main(%a0: tensor<1x8x8x4xf32>, %a1: tensor<3x3x4x8xf32>) -> (tensor<2x6x6x8xf32>) {
  %r = "stablehlo.convolution"(%a0, %a1) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 1 : i64}> : (tensor<1x8x8x4xf32>, tensor<3x3x4x8xf32>) -> tensor<2x6x6x8xf32>
  return %r : tensor<2x6x6x8xf32>
}

// -----

// expected: V0701 stablehlo.convolution: (C25) the result is tensor<1x6x6x4xf32>, and its shape must be [1, 6, 6, 8]
func.func @main(%a0: tensor<1x8x8x4xf32>, %a1: tensor<3x3x4x8xf32>) -> (tensor<1x6x6x4xf32>) {
  %r = "stablehlo.convolution"(%a0, %a1) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 1 : i64}> : (tensor<1x8x8x4xf32>, tensor<3x3x4x8xf32>) -> tensor<1x6x6x4xf32>
  return %r : tensor<1x6x6x4xf32>
}

// -----

// expected: V0701 stablehlo.convolution: (C26) the result is tensor<1x6x6xf32>
func.func @main(%a0: tensor<1x8x8x4xf32>, %a1: tensor<3x3x4x8xf32>) -> (tensor<1x6x6xf32>) {
  %r = "stablehlo.convolution"(%a0, %a1) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 1 : i64}> : (tensor<1x8x8x4xf32>, tensor<3x3x4x8xf32>) -> tensor<1x6x6xf32>
  return %r : tensor<1x6x6xf32>
}

// -----

// expected: V0701 stablehlo.convolution: (C27) elements are of different types, tensor<1x8x8x4xi32> and tensor<3x3x4x8xi8>
func.func @main(%a0: tensor<1x8x8x4xi32>, %a1: tensor<3x3x4x8xi8>) -> (tensor<1x6x6x8xi32>) {
  %r = "stablehlo.convolution"(%a0, %a1) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 1 : i64}> : (tensor<1x8x8x4xi32>, tensor<3x3x4x8xi8>) -> tensor<1x6x6x8xi32>
  return %r : tensor<1x6x6x8xi32>
}

// -----

// expected: V0701 stablehlo.dynamic_conv: (C1) operands are tensor<1x8x8x4xf32> and tensor<3x4x8xf32>
func.func @main(%a0: tensor<1x8x8x4xf32>, %a1: tensor<3x4x8xf32>) -> (tensor<1x6x6x8xf32>) {
  %p = stablehlo.constant dense<0> : tensor<2x2xi64>
  %r = "stablehlo.dynamic_conv"(%a0, %a1, %p) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 1 : i64}> : (tensor<1x8x8x4xf32>, tensor<3x4x8xf32>, tensor<2x2xi64>) -> tensor<1x6x6x8xf32>
  return %r : tensor<1x6x6x8xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_conv: (C2) `window_strides` has 1 values for 2 dimensions
func.func @main(%a0: tensor<1x8x8x4xf32>, %a1: tensor<3x3x4x8xf32>) -> (tensor<1x6x6x8xf32>) {
  %p = stablehlo.constant dense<0> : tensor<2x2xi64>
  %r = "stablehlo.dynamic_conv"(%a0, %a1, %p) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 1 : i64, window_strides = array<i64: 1>}> : (tensor<1x8x8x4xf32>, tensor<3x3x4x8xf32>, tensor<2x2xi64>) -> tensor<1x6x6x8xf32>
  return %r : tensor<1x6x6x8xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_conv: (C3) `window_strides` is [0, 1], and must be positive
func.func @main(%a0: tensor<1x8x8x4xf32>, %a1: tensor<3x3x4x8xf32>) -> (tensor<1x6x6x8xf32>) {
  %p = stablehlo.constant dense<0> : tensor<2x2xi64>
  %r = "stablehlo.dynamic_conv"(%a0, %a1, %p) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 1 : i64, window_strides = array<i64: 0, 1>}> : (tensor<1x8x8x4xf32>, tensor<3x3x4x8xf32>, tensor<2x2xi64>) -> tensor<1x6x6x8xf32>
  return %r : tensor<1x6x6x8xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_conv: (C4) the padding is tensor<1x2xi64>
func.func @main(%a0: tensor<1x8x8x4xf32>, %a1: tensor<3x3x4x8xf32>) -> (tensor<1x6x6x8xf32>) {
  %p = stablehlo.constant dense<0> : tensor<1x2xi64>
  %r = "stablehlo.dynamic_conv"(%a0, %a1, %p) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 1 : i64}> : (tensor<1x8x8x4xf32>, tensor<3x3x4x8xf32>, tensor<1x2xi64>) -> tensor<1x6x6x8xf32>
  return %r : tensor<1x6x6x8xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_conv: (C5) `lhs_dilation` has 1 values for 2 dimensions
func.func @main(%a0: tensor<1x8x8x4xf32>, %a1: tensor<3x3x4x8xf32>) -> (tensor<1x6x6x8xf32>) {
  %p = stablehlo.constant dense<0> : tensor<2x2xi64>
  %r = "stablehlo.dynamic_conv"(%a0, %a1, %p) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 1 : i64, lhs_dilation = array<i64: 1>}> : (tensor<1x8x8x4xf32>, tensor<3x3x4x8xf32>, tensor<2x2xi64>) -> tensor<1x6x6x8xf32>
  return %r : tensor<1x6x6x8xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_conv: (C6) `lhs_dilation` is [0, 1], and must be positive
func.func @main(%a0: tensor<1x8x8x4xf32>, %a1: tensor<3x3x4x8xf32>) -> (tensor<1x6x6x8xf32>) {
  %p = stablehlo.constant dense<0> : tensor<2x2xi64>
  %r = "stablehlo.dynamic_conv"(%a0, %a1, %p) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 1 : i64, lhs_dilation = array<i64: 0, 1>}> : (tensor<1x8x8x4xf32>, tensor<3x3x4x8xf32>, tensor<2x2xi64>) -> tensor<1x6x6x8xf32>
  return %r : tensor<1x6x6x8xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_conv: (C7) `rhs_dilation` has 1 values for 2 dimensions
func.func @main(%a0: tensor<1x8x8x4xf32>, %a1: tensor<3x3x4x8xf32>) -> (tensor<1x6x6x8xf32>) {
  %p = stablehlo.constant dense<0> : tensor<2x2xi64>
  %r = "stablehlo.dynamic_conv"(%a0, %a1, %p) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 1 : i64, rhs_dilation = array<i64: 1>}> : (tensor<1x8x8x4xf32>, tensor<3x3x4x8xf32>, tensor<2x2xi64>) -> tensor<1x6x6x8xf32>
  return %r : tensor<1x6x6x8xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_conv: (C8) `rhs_dilation` is [1, 0], and must be positive
func.func @main(%a0: tensor<1x8x8x4xf32>, %a1: tensor<3x3x4x8xf32>) -> (tensor<1x6x6x8xf32>) {
  %p = stablehlo.constant dense<0> : tensor<2x2xi64>
  %r = "stablehlo.dynamic_conv"(%a0, %a1, %p) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 1 : i64, rhs_dilation = array<i64: 1, 0>}> : (tensor<1x8x8x4xf32>, tensor<3x3x4x8xf32>, tensor<2x2xi64>) -> tensor<1x6x6x8xf32>
  return %r : tensor<1x6x6x8xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_conv: (C9) `window_reversal` has 1 values for 2 dimensions
func.func @main(%a0: tensor<1x8x8x4xf32>, %a1: tensor<3x3x4x8xf32>) -> (tensor<1x6x6x8xf32>) {
  %p = stablehlo.constant dense<0> : tensor<2x2xi64>
  %r = "stablehlo.dynamic_conv"(%a0, %a1, %p) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 1 : i64, window_reversal = array<i1: false>}> : (tensor<1x8x8x4xf32>, tensor<3x3x4x8xf32>, tensor<2x2xi64>) -> tensor<1x6x6x8xf32>
  return %r : tensor<1x6x6x8xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_conv: (C10) a batch of size 1 in 2 groups
func.func @main(%a0: tensor<1x8x8x4xf32>, %a1: tensor<3x3x4x8xf32>) -> (tensor<1x6x6x8xf32>) {
  %p = stablehlo.constant dense<0> : tensor<2x2xi64>
  %r = "stablehlo.dynamic_conv"(%a0, %a1, %p) <{batch_group_count = 2 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 1 : i64}> : (tensor<1x8x8x4xf32>, tensor<3x3x4x8xf32>, tensor<2x2xi64>) -> tensor<1x6x6x8xf32>
  return %r : tensor<1x6x6x8xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_conv: (C11) an input feature of size 4 in 3 groups
func.func @main(%a0: tensor<1x8x8x4xf32>, %a1: tensor<3x3x4x8xf32>) -> (tensor<1x6x6x8xf32>) {
  %p = stablehlo.constant dense<0> : tensor<2x2xi64>
  %r = "stablehlo.dynamic_conv"(%a0, %a1, %p) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 3 : i64}> : (tensor<1x8x8x4xf32>, tensor<3x3x4x8xf32>, tensor<2x2xi64>) -> tensor<1x6x6x8xf32>
  return %r : tensor<1x6x6x8xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_conv: (C12) 1 spatial dimensions of the input, of rank 4
func.func @main(%a0: tensor<1x8x8x4xf32>, %a1: tensor<3x3x4x8xf32>) -> (tensor<1x6x6x8xf32>) {
  %p = stablehlo.constant dense<0> : tensor<2x2xi64>
  %r = "stablehlo.dynamic_conv"(%a0, %a1, %p) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 1 : i64}> : (tensor<1x8x8x4xf32>, tensor<3x3x4x8xf32>, tensor<2x2xi64>) -> tensor<1x6x6x8xf32>
  return %r : tensor<1x6x6x8xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_conv: (C13) dimensions of the input are [0, 1, 1, 3], of rank 4
func.func @main(%a0: tensor<1x8x8x4xf32>, %a1: tensor<3x3x4x8xf32>) -> (tensor<1x6x6x8xf32>) {
  %p = stablehlo.constant dense<0> : tensor<2x2xi64>
  %r = "stablehlo.dynamic_conv"(%a0, %a1, %p) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 1], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 1 : i64}> : (tensor<1x8x8x4xf32>, tensor<3x3x4x8xf32>, tensor<2x2xi64>) -> tensor<1x6x6x8xf32>
  return %r : tensor<1x6x6x8xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_conv: (C13) dimensions of the input are [0, 1, 3, 4], of rank 4
func.func @main(%a0: tensor<1x8x8x4xf32>, %a1: tensor<3x3x4x8xf32>) -> (tensor<1x6x6x8xf32>) {
  %p = stablehlo.constant dense<0> : tensor<2x2xi64>
  %r = "stablehlo.dynamic_conv"(%a0, %a1, %p) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 4], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 1 : i64}> : (tensor<1x8x8x4xf32>, tensor<3x3x4x8xf32>, tensor<2x2xi64>) -> tensor<1x6x6x8xf32>
  return %r : tensor<1x6x6x8xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_conv: (C14) the kernel has 3 input features, and each group 4
func.func @main(%a0: tensor<1x8x8x4xf32>, %a1: tensor<3x3x3x8xf32>) -> (tensor<1x6x6x8xf32>) {
  %p = stablehlo.constant dense<0> : tensor<2x2xi64>
  %r = "stablehlo.dynamic_conv"(%a0, %a1, %p) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 1 : i64}> : (tensor<1x8x8x4xf32>, tensor<3x3x3x8xf32>, tensor<2x2xi64>) -> tensor<1x6x6x8xf32>
  return %r : tensor<1x6x6x8xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_conv: (C15) an output feature of size 7 in 2 groups of batches
func.func @main(%a0: tensor<2x8x8x4xf32>, %a1: tensor<3x3x4x7xf32>) -> (tensor<1x6x6x7xf32>) {
  %p = stablehlo.constant dense<0> : tensor<2x2xi64>
  %r = "stablehlo.dynamic_conv"(%a0, %a1, %p) <{batch_group_count = 2 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 1 : i64}> : (tensor<2x8x8x4xf32>, tensor<3x3x4x7xf32>, tensor<2x2xi64>) -> tensor<1x6x6x7xf32>
  return %r : tensor<1x6x6x7xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_conv: (C16) an output feature of size 7 in 2 groups of features
func.func @main(%a0: tensor<1x8x8x4xf32>, %a1: tensor<3x3x2x7xf32>) -> (tensor<1x6x6x7xf32>) {
  %p = stablehlo.constant dense<0> : tensor<2x2xi64>
  %r = "stablehlo.dynamic_conv"(%a0, %a1, %p) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 2 : i64}> : (tensor<1x8x8x4xf32>, tensor<3x3x2x7xf32>, tensor<2x2xi64>) -> tensor<1x6x6x7xf32>
  return %r : tensor<1x6x6x7xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_conv: (C17) 1 spatial dimensions of the kernel, of rank 4
func.func @main(%a0: tensor<1x8x8x4xf32>, %a1: tensor<3x3x4x8xf32>) -> (tensor<1x6x6x8xf32>) {
  %p = stablehlo.constant dense<0> : tensor<2x2xi64>
  %r = "stablehlo.dynamic_conv"(%a0, %a1, %p) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 1 : i64}> : (tensor<1x8x8x4xf32>, tensor<3x3x4x8xf32>, tensor<2x2xi64>) -> tensor<1x6x6x8xf32>
  return %r : tensor<1x6x6x8xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_conv: (C18) dimensions of the kernel are [0, 0, 2, 3], of rank 4
func.func @main(%a0: tensor<1x8x8x4xf32>, %a1: tensor<3x3x4x8xf32>) -> (tensor<1x6x6x8xf32>) {
  %p = stablehlo.constant dense<0> : tensor<2x2xi64>
  %r = "stablehlo.dynamic_conv"(%a0, %a1, %p) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 0], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 1 : i64}> : (tensor<1x8x8x4xf32>, tensor<3x3x4x8xf32>, tensor<2x2xi64>) -> tensor<1x6x6x8xf32>
  return %r : tensor<1x6x6x8xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_conv: (C19) 1 spatial dimensions of the output, of rank 4
func.func @main(%a0: tensor<1x8x8x4xf32>, %a1: tensor<3x3x4x8xf32>) -> (tensor<1x6x6x8xf32>) {
  %p = stablehlo.constant dense<0> : tensor<2x2xi64>
  %r = "stablehlo.dynamic_conv"(%a0, %a1, %p) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1]>, feature_group_count = 1 : i64}> : (tensor<1x8x8x4xf32>, tensor<3x3x4x8xf32>, tensor<2x2xi64>) -> tensor<1x6x6x8xf32>
  return %r : tensor<1x6x6x8xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_conv: (C20) dimensions of the output are [0, 1, 3, 3], of rank 4
func.func @main(%a0: tensor<1x8x8x4xf32>, %a1: tensor<3x3x4x8xf32>) -> (tensor<1x6x6x8xf32>) {
  %p = stablehlo.constant dense<0> : tensor<2x2xi64>
  %r = "stablehlo.dynamic_conv"(%a0, %a1, %p) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 3]>, feature_group_count = 1 : i64}> : (tensor<1x8x8x4xf32>, tensor<3x3x4x8xf32>, tensor<2x2xi64>) -> tensor<1x6x6x8xf32>
  return %r : tensor<1x6x6x8xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_conv: (C20) dimensions of the output are [-1, 0, 1, 3], of rank 4
func.func @main(%a0: tensor<1x8x8x4xf32>, %a1: tensor<3x3x4x8xf32>) -> (tensor<1x6x6x8xf32>) {
  %p = stablehlo.constant dense<0> : tensor<2x2xi64>
  %r = "stablehlo.dynamic_conv"(%a0, %a1, %p) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, -1]>, feature_group_count = 1 : i64}> : (tensor<1x8x8x4xf32>, tensor<3x3x4x8xf32>, tensor<2x2xi64>) -> tensor<1x6x6x8xf32>
  return %r : tensor<1x6x6x8xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_conv: (C21) `feature_group_count` is 0
func.func @main(%a0: tensor<1x8x8x4xf32>, %a1: tensor<3x3x4x8xf32>) -> (tensor<1x6x6x8xf32>) {
  %p = stablehlo.constant dense<0> : tensor<2x2xi64>
  %r = "stablehlo.dynamic_conv"(%a0, %a1, %p) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 0 : i64}> : (tensor<1x8x8x4xf32>, tensor<3x3x4x8xf32>, tensor<2x2xi64>) -> tensor<1x6x6x8xf32>
  return %r : tensor<1x6x6x8xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_conv: (C22) `batch_group_count` is 0
func.func @main(%a0: tensor<1x8x8x4xf32>, %a1: tensor<3x3x4x8xf32>) -> (tensor<1x6x6x8xf32>) {
  %p = stablehlo.constant dense<0> : tensor<2x2xi64>
  %r = "stablehlo.dynamic_conv"(%a0, %a1, %p) <{batch_group_count = 0 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 1 : i64}> : (tensor<1x8x8x4xf32>, tensor<3x3x4x8xf32>, tensor<2x2xi64>) -> tensor<1x6x6x8xf32>
  return %r : tensor<1x6x6x8xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_conv: (C23) 2 groups of features and 2 of batches
func.func @main(%a0: tensor<2x8x8x4xf32>, %a1: tensor<3x3x2x8xf32>) -> (tensor<1x6x6x8xf32>) {
  %p = stablehlo.constant dense<0> : tensor<2x2xi64>
  %r = "stablehlo.dynamic_conv"(%a0, %a1, %p) <{batch_group_count = 2 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 2 : i64}> : (tensor<2x8x8x4xf32>, tensor<3x3x2x8xf32>, tensor<2x2xi64>) -> tensor<1x6x6x8xf32>
  return %r : tensor<1x6x6x8xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_conv: (C24) 1 precisions of two operands
func.func @main(%a0: tensor<1x8x8x4xf32>, %a1: tensor<3x3x4x8xf32>) -> (tensor<1x6x6x8xf32>) {
  %p = stablehlo.constant dense<0> : tensor<2x2xi64>
  %r = "stablehlo.dynamic_conv"(%a0, %a1, %p) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>]}> : (tensor<1x8x8x4xf32>, tensor<3x3x4x8xf32>, tensor<2x2xi64>) -> tensor<1x6x6x8xf32>
  return %r : tensor<1x6x6x8xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_conv: (C25) the result is tensor<1x5x6x8xf32>, and its shape must be [1, 6, 6, 8]
func.func @main(%a0: tensor<1x8x8x4xf32>, %a1: tensor<3x3x4x8xf32>) -> (tensor<1x5x6x8xf32>) {
  %p = stablehlo.constant dense<0> : tensor<2x2xi64>
  %r = "stablehlo.dynamic_conv"(%a0, %a1, %p) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 1 : i64}> : (tensor<1x8x8x4xf32>, tensor<3x3x4x8xf32>, tensor<2x2xi64>) -> tensor<1x5x6x8xf32>
  return %r : tensor<1x5x6x8xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_conv: (C25) the result is tensor<2x6x6x8xf32>, and its shape must be [1, 6, 6, 8]
func.func @main(%a0: tensor<1x8x8x4xf32>, %a1: tensor<3x3x4x8xf32>) -> (tensor<2x6x6x8xf32>) {
  %p = stablehlo.constant dense<0> : tensor<2x2xi64>
  %r = "stablehlo.dynamic_conv"(%a0, %a1, %p) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 1 : i64}> : (tensor<1x8x8x4xf32>, tensor<3x3x4x8xf32>, tensor<2x2xi64>) -> tensor<2x6x6x8xf32>
  return %r : tensor<2x6x6x8xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_conv: (C25) the result is tensor<1x6x6x4xf32>, and its shape must be [1, 6, 6, 8]
func.func @main(%a0: tensor<1x8x8x4xf32>, %a1: tensor<3x3x4x8xf32>) -> (tensor<1x6x6x4xf32>) {
  %p = stablehlo.constant dense<0> : tensor<2x2xi64>
  %r = "stablehlo.dynamic_conv"(%a0, %a1, %p) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 1 : i64}> : (tensor<1x8x8x4xf32>, tensor<3x3x4x8xf32>, tensor<2x2xi64>) -> tensor<1x6x6x4xf32>
  return %r : tensor<1x6x6x4xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_conv: (C26) the result is tensor<1x6x6xf32>
func.func @main(%a0: tensor<1x8x8x4xf32>, %a1: tensor<3x3x4x8xf32>) -> (tensor<1x6x6xf32>) {
  %p = stablehlo.constant dense<0> : tensor<2x2xi64>
  %r = "stablehlo.dynamic_conv"(%a0, %a1, %p) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 1 : i64}> : (tensor<1x8x8x4xf32>, tensor<3x3x4x8xf32>, tensor<2x2xi64>) -> tensor<1x6x6xf32>
  return %r : tensor<1x6x6xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_conv: (C27) elements are of different types, tensor<1x8x8x4xi32> and tensor<3x3x4x8xi8>
func.func @main(%a0: tensor<1x8x8x4xi32>, %a1: tensor<3x3x4x8xi8>) -> (tensor<1x6x6x8xi32>) {
  %p = stablehlo.constant dense<0> : tensor<2x2xi64>
  %r = "stablehlo.dynamic_conv"(%a0, %a1, %p) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 1 : i64}> : (tensor<1x8x8x4xi32>, tensor<3x3x4x8xi8>, tensor<2x2xi64>) -> tensor<1x6x6x8xi32>
  return %r : tensor<1x6x6x8xi32>
}

// -----

// expected: V0701 stablehlo.reduce: (C6) the computation is (tensor<f32>, tensor<f32>) -> (tensor<i32>), of elements (f32)
func.func @main(%a0: tensor<2x3xf32>, %a1: tensor<f32>) -> (tensor<2xf32>) {
  %r = "stablehlo.reduce"(%a0, %a1) <{dimensions = array<i64: 1>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %c = stablehlo.convert %x0 : (tensor<f32>) -> tensor<i32>
    stablehlo.return %c : tensor<i32>
  }) : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

// expected: V0701 stablehlo.reduce: (C6) the computation is (tensor<f32>) -> (tensor<f32>), of elements (f32)
func.func @main(%a0: tensor<2x3xf32>, %a1: tensor<f32>) -> (tensor<2xf32>) {
  %r = "stablehlo.reduce"(%a0, %a1) <{dimensions = array<i64: 1>}> ({
  ^bb0(%x0: tensor<f32>):
    stablehlo.return %x0 : tensor<f32>
  }) : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

// expected: V0701 stablehlo.reduce: (C6) the computation is (tensor<f32>, tensor<i32>, tensor<i32>, tensor<f32>) -> (tensor<f32>, tensor<i32>), of elements (f32, i32)
func.func @main(%a0: tensor<2x3xf32>, %a1: tensor<2x3xi32>, %a2: tensor<f32>, %a3: tensor<i32>) -> (tensor<2xf32>, tensor<2xi32>) {
  %r:2 = "stablehlo.reduce"(%a0, %a1, %a2, %a3) <{dimensions = array<i64: 1>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<i32>, %x2: tensor<i32>, %x3: tensor<f32>):
    stablehlo.return %x0, %x1 : tensor<f32>, tensor<i32>
  }) : (tensor<2x3xf32>, tensor<2x3xi32>, tensor<f32>, tensor<i32>) -> (tensor<2xf32>, tensor<2xi32>)
  return %r#0, %r#1 : tensor<2xf32>, tensor<2xi32>
}

// -----

// expected: V0701 stablehlo.reduce: (C6) the computation is (tensor<f16>, tensor<f16>) -> (tensor<f16>), of elements (f32)
func.func @main(%a0: tensor<2x3xf32>, %a1: tensor<f32>) -> (tensor<2xf32>) {
  %r = "stablehlo.reduce"(%a0, %a1) <{dimensions = array<i64: 1>}> ({
  ^bb0(%x0: tensor<f16>, %x1: tensor<f16>):
    %c = stablehlo.add %x0, %x1 : tensor<f16>
    stablehlo.return %c : tensor<f16>
  }) : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

// expected: V0701 stablehlo.reduce: (C8) the result is tensor<2xf64>, and the computation gives f32
func.func @main(%a0: tensor<2x3xf32>, %a1: tensor<f32>) -> (tensor<2xf64>) {
  %r = "stablehlo.reduce"(%a0, %a1) <{dimensions = array<i64: 1>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf64>
  return %r : tensor<2xf64>
}

// -----

// expected: V0701 stablehlo.reduce: (C8) the result is tensor<2xf32>, and the computation gives f64
func.func @main(%a0: tensor<2x3xf32>, %a1: tensor<f32>) -> (tensor<2xf32>) {
  %r = "stablehlo.reduce"(%a0, %a1) <{dimensions = array<i64: 1>}> ({
  ^bb0(%x0: tensor<f64>, %x1: tensor<f64>):
    %c = stablehlo.add %x0, %x1 : tensor<f64>
    stablehlo.return %c : tensor<f64>
  }) : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

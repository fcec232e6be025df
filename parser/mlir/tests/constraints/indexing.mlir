// expected: V0701 stablehlo.scatter: (C1) inputs are tensor<4x3xf32> and tensor<4x2xf32>
func.func @main(%a0: tensor<4x3xf32>, %a1: tensor<4x2xf32>, %a2: tensor<2x1xi32>, %a3: tensor<2x3xf32>, %a4: tensor<2x3xf32>) -> (tensor<4x3xf32>, tensor<4x2xf32>) {
  %r:2 = "stablehlo.scatter"(%a0, %a1, %a2, %a3, %a4) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], input_batching_dims = [], scatter_indices_batching_dims = [], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>, %x2: tensor<f32>, %x3: tensor<f32>):
    %s0 = stablehlo.add %x0, %x2 : tensor<f32>
    %s1 = stablehlo.add %x1, %x3 : tensor<f32>
    stablehlo.return %s0, %s1 : tensor<f32>, tensor<f32>
  }) : (tensor<4x3xf32>, tensor<4x2xf32>, tensor<2x1xi32>, tensor<2x3xf32>, tensor<2x3xf32>) -> (tensor<4x3xf32>, tensor<4x2xf32>)
  return %r#0, %r#1 : tensor<4x3xf32>, tensor<4x2xf32>
}

// -----

// expected: V0701 stablehlo.scatter: (C2) 1 dimensions of windows and others of rank 2
func.func @main(%a0: tensor<4x3xf32>, %a1: tensor<2x1xi32>, %a2: tensor<2x3xf32>) -> (tensor<4x3xf32>) {
  %r = "stablehlo.scatter"(%a0, %a1, %a2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [], input_batching_dims = [], scatter_indices_batching_dims = [], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4x3xf32>, tensor<2x1xi32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  return %r : tensor<4x3xf32>
}

// -----

// expected: V0701 stablehlo.scatter: (C3) updates are tensor<2x3xf32> and tensor<2x2xf32>
func.func @main(%a0: tensor<4x3xf32>, %a1: tensor<4x3xf32>, %a2: tensor<2x1xi32>, %a3: tensor<2x3xf32>, %a4: tensor<2x2xf32>) -> (tensor<4x3xf32>, tensor<4x3xf32>) {
  %r:2 = "stablehlo.scatter"(%a0, %a1, %a2, %a3, %a4) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], input_batching_dims = [], scatter_indices_batching_dims = [], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>, %x2: tensor<f32>, %x3: tensor<f32>):
    %s0 = stablehlo.add %x0, %x2 : tensor<f32>
    %s1 = stablehlo.add %x1, %x3 : tensor<f32>
    stablehlo.return %s0, %s1 : tensor<f32>, tensor<f32>
  }) : (tensor<4x3xf32>, tensor<4x3xf32>, tensor<2x1xi32>, tensor<2x3xf32>, tensor<2x2xf32>) -> (tensor<4x3xf32>, tensor<4x3xf32>)
  return %r#0, %r#1 : tensor<4x3xf32>, tensor<4x3xf32>
}

// -----

// expected: V0701 stablehlo.scatter: (C4) updates are tensor<2x4xf32>, of inputs tensor<4x3xf32> at indices tensor<2x1xi32>
func.func @main(%a0: tensor<4x3xf32>, %a1: tensor<2x1xi32>, %a2: tensor<2x4xf32>) -> (tensor<4x3xf32>) {
  %r = "stablehlo.scatter"(%a0, %a1, %a2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], input_batching_dims = [], scatter_indices_batching_dims = [], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4x3xf32>, tensor<2x1xi32>, tensor<2x4xf32>) -> tensor<4x3xf32>
  return %r : tensor<4x3xf32>
}

// -----

// expected: V0701 stablehlo.scatter: (C4) updates are tensor<3x3xf32>, of inputs tensor<4x3xf32> at indices tensor<2x1xi32>
func.func @main(%a0: tensor<4x3xf32>, %a1: tensor<2x1xi32>, %a2: tensor<3x3xf32>) -> (tensor<4x3xf32>) {
  %r = "stablehlo.scatter"(%a0, %a1, %a2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], input_batching_dims = [], scatter_indices_batching_dims = [], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4x3xf32>, tensor<2x1xi32>, tensor<3x3xf32>) -> tensor<4x3xf32>
  return %r : tensor<4x3xf32>
}

// -----

// expected: V0701 stablehlo.scatter: (C5) 4 operands, which are no indices and as many inputs as updates
func.func @main(%a0: tensor<4x3xf32>, %a1: tensor<4x3xf32>, %a2: tensor<2x1xi32>, %a3: tensor<2x3xf32>) -> (tensor<4x3xf32>, tensor<4x3xf32>) {
  %r:2 = "stablehlo.scatter"(%a0, %a1, %a2, %a3) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], input_batching_dims = [], scatter_indices_batching_dims = [], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>, %x2: tensor<f32>, %x3: tensor<f32>):
    %s0 = stablehlo.add %x0, %x2 : tensor<f32>
    %s1 = stablehlo.add %x1, %x3 : tensor<f32>
    stablehlo.return %s0, %s1 : tensor<f32>, tensor<f32>
  }) : (tensor<4x3xf32>, tensor<4x3xf32>, tensor<2x1xi32>, tensor<2x3xf32>) -> (tensor<4x3xf32>, tensor<4x3xf32>)
  return %r#0, %r#1 : tensor<4x3xf32>, tensor<4x3xf32>
}

// -----

// expected: V0701 stablehlo.scatter: (C6) elements are of different types, tensor<2x3xf64> and tensor<4x3xf32>
func.func @main(%a0: tensor<4x3xf32>, %a1: tensor<2x1xi32>, %a2: tensor<2x3xf64>) -> (tensor<4x3xf32>) {
  %r = "stablehlo.scatter"(%a0, %a1, %a2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], input_batching_dims = [], scatter_indices_batching_dims = [], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4x3xf32>, tensor<2x1xi32>, tensor<2x3xf64>) -> tensor<4x3xf32>
  return %r : tensor<4x3xf32>
}

// -----

// expected: V0701 stablehlo.scatter: (C7) window dimensions [1, 1] are not ascending
func.func @main(%a0: tensor<4x3xf32>, %a1: tensor<2x1xi32>, %a2: tensor<2x3xf32>) -> (tensor<4x3xf32>) {
  %r = "stablehlo.scatter"(%a0, %a1, %a2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 1], inserted_window_dims = [], input_batching_dims = [], scatter_indices_batching_dims = [], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4x3xf32>, tensor<2x1xi32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  return %r : tensor<4x3xf32>
}

// -----

// expected: V0701 stablehlo.scatter: (C7) window dimensions [2, 1] are not ascending
func.func @main(%a0: tensor<4x3xf32>, %a1: tensor<2x1xi32>, %a2: tensor<2x1x3xf32>) -> (tensor<4x3xf32>) {
  %r = "stablehlo.scatter"(%a0, %a1, %a2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2, 1], inserted_window_dims = [], input_batching_dims = [], scatter_indices_batching_dims = [], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4x3xf32>, tensor<2x1xi32>, tensor<2x1x3xf32>) -> tensor<4x3xf32>
  return %r : tensor<4x3xf32>
}

// -----

// expected: V0701 stablehlo.scatter: (C8) window dimensions [2] of updates of rank 2
func.func @main(%a0: tensor<4x3xf32>, %a1: tensor<2x1xi32>, %a2: tensor<2x3xf32>) -> (tensor<4x3xf32>) {
  %r = "stablehlo.scatter"(%a0, %a1, %a2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2], inserted_window_dims = [0], input_batching_dims = [], scatter_indices_batching_dims = [], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4x3xf32>, tensor<2x1xi32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  return %r : tensor<4x3xf32>
}

// -----

// expected: V0701 stablehlo.scatter: (C9) dimensions [0, 0] name one twice
func.func @main(%a0: tensor<4x3xf32>, %a1: tensor<2x1xi32>, %a2: tensor<2x3xf32>) -> (tensor<4x3xf32>) {
  %r = "stablehlo.scatter"(%a0, %a1, %a2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [], inserted_window_dims = [0, 0], input_batching_dims = [], scatter_indices_batching_dims = [], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4x3xf32>, tensor<2x1xi32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  return %r : tensor<4x3xf32>
}

// -----

// expected: V0701 stablehlo.scatter: (C10) inserted dimensions [1, 0] are not ascending
func.func @main(%a0: tensor<4x3xf32>, %a1: tensor<2x1xi32>, %a2: tensor<2x3xf32>) -> (tensor<4x3xf32>) {
  %r = "stablehlo.scatter"(%a0, %a1, %a2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [], inserted_window_dims = [1, 0], input_batching_dims = [], scatter_indices_batching_dims = [], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4x3xf32>, tensor<2x1xi32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  return %r : tensor<4x3xf32>
}

// -----

// expected: V0701 stablehlo.scatter: (C11) inserted dimensions [2] of rank 2
func.func @main(%a0: tensor<4x3xf32>, %a1: tensor<2x1xi32>, %a2: tensor<2x3xf32>) -> (tensor<4x3xf32>) {
  %r = "stablehlo.scatter"(%a0, %a1, %a2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [2], input_batching_dims = [], scatter_indices_batching_dims = [], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4x3xf32>, tensor<2x1xi32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  return %r : tensor<4x3xf32>
}

// -----

// expected: V0701 stablehlo.scatter: (C12) batching dimensions [1, 0] are not ascending
func.func @main(%a0: tensor<4x2x3xf32>, %a1: tensor<2x4x1xi32>, %a2: tensor<2x4xf32>) -> (tensor<4x2x3xf32>) {
  %r = "stablehlo.scatter"(%a0, %a1, %a2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [], inserted_window_dims = [2], input_batching_dims = [1, 0], scatter_indices_batching_dims = [0, 1], scatter_dims_to_operand_dims = [2], index_vector_dim = 2>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4x2x3xf32>, tensor<2x4x1xi32>, tensor<2x4xf32>) -> tensor<4x2x3xf32>
  return %r : tensor<4x2x3xf32>
}

// -----

// expected: V0701 stablehlo.scatter: (C13) batching dimensions [3] of rank 3
func.func @main(%a0: tensor<4x2x3xf32>, %a1: tensor<4x1xi32>, %a2: tensor<4x3xf32>) -> (tensor<4x2x3xf32>) {
  %r = "stablehlo.scatter"(%a0, %a1, %a2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [1], input_batching_dims = [3], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 1>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4x2x3xf32>, tensor<4x1xi32>, tensor<4x3xf32>) -> tensor<4x2x3xf32>
  return %r : tensor<4x2x3xf32>
}

// -----

// expected: V0701 stablehlo.scatter: (C14) dimensions [0, 0] name one twice
func.func @main(%a0: tensor<4x2x3xf32>, %a1: tensor<4x2x1xi32>, %a2: tensor<4x2xf32>) -> (tensor<4x2x3xf32>) {
  %r = "stablehlo.scatter"(%a0, %a1, %a2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [], inserted_window_dims = [2], input_batching_dims = [0, 1], scatter_indices_batching_dims = [0, 0], scatter_dims_to_operand_dims = [2], index_vector_dim = 2>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4x2x3xf32>, tensor<4x2x1xi32>, tensor<4x2xf32>) -> tensor<4x2x3xf32>
  return %r : tensor<4x2x3xf32>
}

// -----

// expected: V0701 stablehlo.scatter: (C15) dimensions [2] of indices of rank 2
func.func @main(%a0: tensor<4x2x3xf32>, %a1: tensor<4x1xi32>, %a2: tensor<4x3xf32>) -> (tensor<4x2x3xf32>) {
  %r = "stablehlo.scatter"(%a0, %a1, %a2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [2], scatter_dims_to_operand_dims = [1], index_vector_dim = 1>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4x2x3xf32>, tensor<4x1xi32>, tensor<4x3xf32>) -> tensor<4x2x3xf32>
  return %r : tensor<4x2x3xf32>
}

// -----

// expected: V0701 stablehlo.scatter: (C16) dimension 1 is that of index vectors and of batches
func.func @main(%a0: tensor<4x2x3xf32>, %a1: tensor<4x1xi32>, %a2: tensor<4x3xf32>) -> (tensor<4x2x3xf32>) {
  %r = "stablehlo.scatter"(%a0, %a1, %a2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [1], scatter_dims_to_operand_dims = [1], index_vector_dim = 1>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4x2x3xf32>, tensor<4x1xi32>, tensor<4x3xf32>) -> tensor<4x2x3xf32>
  return %r : tensor<4x2x3xf32>
}

// -----

// expected: V0701 stablehlo.scatter: (C17) batches along [0] and []
func.func @main(%a0: tensor<4x2x3xf32>, %a1: tensor<4x1xi32>, %a2: tensor<4x3xf32>) -> (tensor<4x2x3xf32>) {
  %r = "stablehlo.scatter"(%a0, %a1, %a2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [], scatter_dims_to_operand_dims = [1], index_vector_dim = 1>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4x2x3xf32>, tensor<4x1xi32>, tensor<4x3xf32>) -> tensor<4x2x3xf32>
  return %r : tensor<4x2x3xf32>
}

// -----

// expected: V0701 stablehlo.scatter: (C18) batches of inputs and indices have different sizes
func.func @main(%a0: tensor<4x2x3xf32>, %a1: tensor<5x1xi32>, %a2: tensor<5x3xf32>) -> (tensor<4x2x3xf32>) {
  %r = "stablehlo.scatter"(%a0, %a1, %a2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 1>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4x2x3xf32>, tensor<5x1xi32>, tensor<5x3xf32>) -> tensor<4x2x3xf32>
  return %r : tensor<4x2x3xf32>
}

// -----

// expected: V0701 stablehlo.scatter: (C19) 1 numbers of each index for 2 dimensions
func.func @main(%a0: tensor<4x3xf32>, %a1: tensor<2x1xi32>, %a2: tensor<2x3xf32>) -> (tensor<4x3xf32>) {
  %r = "stablehlo.scatter"(%a0, %a1, %a2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], input_batching_dims = [], scatter_indices_batching_dims = [], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4x3xf32>, tensor<2x1xi32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  return %r : tensor<4x3xf32>
}

// -----

// expected: V0701 stablehlo.scatter: (C20) dimensions [0, 0] name one twice
func.func @main(%a0: tensor<4x3xf32>, %a1: tensor<2x2xi32>, %a2: tensor<2x3xf32>) -> (tensor<4x3xf32>) {
  %r = "stablehlo.scatter"(%a0, %a1, %a2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], input_batching_dims = [], scatter_indices_batching_dims = [], scatter_dims_to_operand_dims = [0, 0], index_vector_dim = 1>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4x3xf32>, tensor<2x2xi32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  return %r : tensor<4x3xf32>
}

// -----

// expected: V0701 stablehlo.scatter: (C21) indices of dimensions [2] of rank 2
func.func @main(%a0: tensor<4x3xf32>, %a1: tensor<2x1xi32>, %a2: tensor<2x3xf32>) -> (tensor<4x3xf32>) {
  %r = "stablehlo.scatter"(%a0, %a1, %a2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], input_batching_dims = [], scatter_indices_batching_dims = [], scatter_dims_to_operand_dims = [2], index_vector_dim = 1>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4x3xf32>, tensor<2x1xi32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  return %r : tensor<4x3xf32>
}

// -----

// expected: V0701 stablehlo.scatter: (C22) index vectors along 3 of rank 2
func.func @main(%a0: tensor<4x3xf32>, %a1: tensor<2x1xi32>, %a2: tensor<2x3xf32>) -> (tensor<4x3xf32>) {
  %r = "stablehlo.scatter"(%a0, %a1, %a2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], input_batching_dims = [], scatter_indices_batching_dims = [], scatter_dims_to_operand_dims = [0], index_vector_dim = 3>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4x3xf32>, tensor<2x1xi32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  return %r : tensor<4x3xf32>
}

// -----

// expected: V0701 stablehlo.scatter: (C23) the computation is (tensor<f32>, tensor<f32>) -> (tensor<i32>), of elements (f32)
func.func @main(%a0: tensor<4x3xf32>, %a1: tensor<2x1xi32>, %a2: tensor<2x3xf32>) -> (tensor<4x3xf32>) {
  %r = "stablehlo.scatter"(%a0, %a1, %a2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], input_batching_dims = [], scatter_indices_batching_dims = [], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %c = stablehlo.convert %x0 : (tensor<f32>) -> tensor<i32>
    stablehlo.return %c : tensor<i32>
  }) : (tensor<4x3xf32>, tensor<2x1xi32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  return %r : tensor<4x3xf32>
}

// -----

// expected: V0701 stablehlo.scatter: (C23) the computation is (tensor<f16>, tensor<f16>) -> (tensor<f16>), of elements (f32)
func.func @main(%a0: tensor<4x3xf32>, %a1: tensor<2x1xi32>, %a2: tensor<2x3xf32>) -> (tensor<4x3xf32>) {
  %r = "stablehlo.scatter"(%a0, %a1, %a2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], input_batching_dims = [], scatter_indices_batching_dims = [], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%x0: tensor<f16>, %x1: tensor<f16>):
    %c = stablehlo.add %x0, %x1 : tensor<f16>
    stablehlo.return %c : tensor<f16>
  }) : (tensor<4x3xf32>, tensor<2x1xi32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  return %r : tensor<4x3xf32>
}

// -----

// expected: V0701 stablehlo.scatter: (C24) the result is tensor<4x2xf32>, of an input tensor<4x3xf32>
func.func @main(%a0: tensor<4x3xf32>, %a1: tensor<2x1xi32>, %a2: tensor<2x3xf32>) -> (tensor<4x2xf32>) {
  %r = "stablehlo.scatter"(%a0, %a1, %a2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], input_batching_dims = [], scatter_indices_batching_dims = [], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4x3xf32>, tensor<2x1xi32>, tensor<2x3xf32>) -> tensor<4x2xf32>
  return %r : tensor<4x2xf32>
}

// -----

// expected: V0701 stablehlo.scatter: (C25) the result is tensor<4x3xf64>, and the computation gives f32
func.func @main(%a0: tensor<4x3xf32>, %a1: tensor<2x1xi32>, %a2: tensor<2x3xf32>) -> (tensor<4x3xf64>) {
  %r = "stablehlo.scatter"(%a0, %a1, %a2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], input_batching_dims = [], scatter_indices_batching_dims = [], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4x3xf32>, tensor<2x1xi32>, tensor<2x3xf32>) -> tensor<4x3xf64>
  return %r : tensor<4x3xf64>
}

// -----

// expected: V0701 stablehlo.scatter: (C25) the result is tensor<4x3xf32>, and the computation gives f64
func.func @main(%a0: tensor<4x3xf32>, %a1: tensor<2x1xi32>, %a2: tensor<2x3xf32>) -> (tensor<4x3xf32>) {
  %r = "stablehlo.scatter"(%a0, %a1, %a2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], input_batching_dims = [], scatter_indices_batching_dims = [], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%x0: tensor<f64>, %x1: tensor<f64>):
    %c = stablehlo.add %x0, %x1 : tensor<f64>
    stablehlo.return %c : tensor<f64>
  }) : (tensor<4x3xf32>, tensor<2x1xi32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  return %r : tensor<4x3xf32>
}

// -----

// expected: V0701 stablehlo.scatter: (I2) elements of tensor<2x1xf32> are not signed integer, unsigned integer
func.func @main(%a0: tensor<4x3xf32>, %a1: tensor<2x1xf32>, %a2: tensor<2x3xf32>) -> (tensor<4x3xf32>) {
  %r = "stablehlo.scatter"(%a0, %a1, %a2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], input_batching_dims = [], scatter_indices_batching_dims = [], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4x3xf32>, tensor<2x1xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  return %r : tensor<4x3xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_gather: (C1) 1 dimensions of slices of an operand of rank 2
func.func @main(%a0: tensor<4x3xf32>, %a1: tensor<2x1xi32>) -> (tensor<2x3xf32>) {
  %s = stablehlo.constant dense<[1, 3]> : tensor<2xi64>
  %r = "stablehlo.dynamic_gather"(%a0, %a1, %s) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [], start_index_map = [0], index_vector_dim = 1>}> : (tensor<4x3xf32>, tensor<2x1xi32>, tensor<2xi64>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_gather: (C2) index vectors along 3 of rank 2
func.func @main(%a0: tensor<4x3xf32>, %a1: tensor<2x1xi32>) -> (tensor<2x3xf32>) {
  %s = stablehlo.constant dense<[1, 3]> : tensor<2xi64>
  %r = "stablehlo.dynamic_gather"(%a0, %a1, %s) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 3>}> : (tensor<4x3xf32>, tensor<2x1xi32>, tensor<2xi64>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_gather: (C3) 1 numbers of each index for 2 dimensions
func.func @main(%a0: tensor<4x3xf32>, %a1: tensor<2x1xi32>) -> (tensor<2x3xf32>) {
  %s = stablehlo.constant dense<[1, 3]> : tensor<2xi64>
  %r = "stablehlo.dynamic_gather"(%a0, %a1, %s) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0, 1], index_vector_dim = 1>}> : (tensor<4x3xf32>, tensor<2x1xi32>, tensor<2xi64>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_gather: (C4) offset dimensions [2, 1] are not ascending
func.func @main(%a0: tensor<4x3xf32>, %a1: tensor<2x1xi32>) -> (tensor<2x1x3xf32>) {
  %s = stablehlo.constant dense<[1, 3]> : tensor<2xi64>
  %r = "stablehlo.dynamic_gather"(%a0, %a1, %s) <{dimension_numbers = #stablehlo.gather<offset_dims = [2, 1], collapsed_slice_dims = [], start_index_map = [0], index_vector_dim = 1>}> : (tensor<4x3xf32>, tensor<2x1xi32>, tensor<2xi64>) -> tensor<2x1x3xf32>
  return %r : tensor<2x1x3xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_gather: (C5) offset dimensions [2] of a result of rank 2
func.func @main(%a0: tensor<4x3xf32>, %a1: tensor<2x1xi32>) -> (tensor<2x3xf32>) {
  %s = stablehlo.constant dense<[1, 3]> : tensor<2xi64>
  %r = "stablehlo.dynamic_gather"(%a0, %a1, %s) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>}> : (tensor<4x3xf32>, tensor<2x1xi32>, tensor<2xi64>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_gather: (C6) collapsed dimensions [1, 0] are not ascending
func.func @main(%a0: tensor<4x3xf32>, %a1: tensor<2x1xi32>) -> (tensor<2xf32>) {
  %s = stablehlo.constant dense<[1, 1]> : tensor<2xi64>
  %r = "stablehlo.dynamic_gather"(%a0, %a1, %s) <{dimension_numbers = #stablehlo.gather<offset_dims = [], collapsed_slice_dims = [1, 0], start_index_map = [0], index_vector_dim = 1>}> : (tensor<4x3xf32>, tensor<2x1xi32>, tensor<2xi64>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_gather: (C6) dimensions [0, 0] name one twice
func.func @main(%a0: tensor<4x3xf32>, %a1: tensor<2x1xi32>) -> (tensor<2xf32>) {
  %s = stablehlo.constant dense<[1, 3]> : tensor<2xi64>
  %r = "stablehlo.dynamic_gather"(%a0, %a1, %s) <{dimension_numbers = #stablehlo.gather<offset_dims = [], collapsed_slice_dims = [0, 0], start_index_map = [0], index_vector_dim = 1>}> : (tensor<4x3xf32>, tensor<2x1xi32>, tensor<2xi64>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_gather: (C7) collapsed dimensions [2] of rank 2
func.func @main(%a0: tensor<4x3xf32>, %a1: tensor<2x1xi32>) -> (tensor<2x3xf32>) {
  %s = stablehlo.constant dense<[1, 3]> : tensor<2xi64>
  %r = "stablehlo.dynamic_gather"(%a0, %a1, %s) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [2], start_index_map = [0], index_vector_dim = 1>}> : (tensor<4x3xf32>, tensor<2x1xi32>, tensor<2xi64>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_gather: (C8) a collapsed dimension of a size over 1
func.func @main(%a0: tensor<4x3xf32>, %a1: tensor<2x1xi32>) -> (tensor<2x3xf32>) {
  %s = stablehlo.constant dense<[2, 3]> : tensor<2xi64>
  %r = "stablehlo.dynamic_gather"(%a0, %a1, %s) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>}> : (tensor<4x3xf32>, tensor<2x1xi32>, tensor<2xi64>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_gather: (C9) dimensions [0, 0] name one twice
func.func @main(%a0: tensor<4x3xf32>, %a1: tensor<2x2xi32>) -> (tensor<2x3xf32>) {
  %s = stablehlo.constant dense<[1, 3]> : tensor<2xi64>
  %r = "stablehlo.dynamic_gather"(%a0, %a1, %s) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0, 0], index_vector_dim = 1>}> : (tensor<4x3xf32>, tensor<2x2xi32>, tensor<2xi64>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_gather: (C10) indices of dimensions [2] of rank 2
func.func @main(%a0: tensor<4x3xf32>, %a1: tensor<2x1xi32>) -> (tensor<2x3xf32>) {
  %s = stablehlo.constant dense<[1, 3]> : tensor<2xi64>
  %r = "stablehlo.dynamic_gather"(%a0, %a1, %s) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [2], index_vector_dim = 1>}> : (tensor<4x3xf32>, tensor<2x1xi32>, tensor<2xi64>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_gather: (C11) slice sizes are tensor<3xi64>, of rank 2
func.func @main(%a0: tensor<4x3xf32>, %a1: tensor<2x1xi32>) -> (tensor<2x3xf32>) {
  %s = stablehlo.constant dense<[1, 3, 1]> : tensor<3xi64>
  %r = "stablehlo.dynamic_gather"(%a0, %a1, %s) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>}> : (tensor<4x3xf32>, tensor<2x1xi32>, tensor<3xi64>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_gather: (C12) slices of [1, 4] of tensor<4x3xf32>
func.func @main(%a0: tensor<4x3xf32>, %a1: tensor<2x1xi32>) -> (tensor<2x4xf32>) {
  %s = stablehlo.constant dense<[1, 4]> : tensor<2xi64>
  %r = "stablehlo.dynamic_gather"(%a0, %a1, %s) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>}> : (tensor<4x3xf32>, tensor<2x1xi32>, tensor<2xi64>) -> tensor<2x4xf32>
  return %r : tensor<2x4xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_gather: (C13) the result is tensor<2x2xf32>, and its shape must be [2, 3]
func.func @main(%a0: tensor<4x3xf32>, %a1: tensor<2x1xi32>) -> (tensor<2x2xf32>) {
  %s = stablehlo.constant dense<[1, 3]> : tensor<2xi64>
  %r = "stablehlo.dynamic_gather"(%a0, %a1, %s) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>}> : (tensor<4x3xf32>, tensor<2x1xi32>, tensor<2xi64>) -> tensor<2x2xf32>
  return %r : tensor<2x2xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_gather: (C14) elements are of different types, tensor<4x3xf32> and tensor<2x3xf64>
func.func @main(%a0: tensor<4x3xf32>, %a1: tensor<2x1xi32>) -> (tensor<2x3xf64>) {
  %s = stablehlo.constant dense<[1, 3]> : tensor<2xi64>
  %r = "stablehlo.dynamic_gather"(%a0, %a1, %s) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>}> : (tensor<4x3xf32>, tensor<2x1xi32>, tensor<2xi64>) -> tensor<2x3xf64>
  return %r : tensor<2x3xf64>
}

// -----

// expected: V0701 stablehlo.dynamic_gather: (I2) elements of tensor<2x1xf32> are not signed integer, unsigned integer
func.func @main(%a0: tensor<4x3xf32>, %a1: tensor<2x1xf32>) -> (tensor<2x3xf32>) {
  %s = stablehlo.constant dense<[1, 3]> : tensor<2xi64>
  %r = "stablehlo.dynamic_gather"(%a0, %a1, %s) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>}> : (tensor<4x3xf32>, tensor<2x1xf32>, tensor<2xi64>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_gather: (I3) elements of tensor<2xf32> are not signed integer, unsigned integer
func.func @main(%a0: tensor<4x3xf32>, %a1: tensor<2x1xi32>) -> (tensor<2x3xf32>) {
  %s = stablehlo.constant dense<[1.0, 3.0]> : tensor<2xf32>
  %r = "stablehlo.dynamic_gather"(%a0, %a1, %s) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>}> : (tensor<4x3xf32>, tensor<2x1xi32>, tensor<2xf32>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_broadcast_in_dim: (C1) elements are of different types, tensor<3xf32> and tensor<2x3xf64>
func.func @main(%a0: tensor<3xf32>) -> (tensor<2x3xf64>) {
  %c0 = stablehlo.constant dense<[2, 3]> : tensor<2xi64>
  %r = "stablehlo.dynamic_broadcast_in_dim"(%a0, %c0) <{broadcast_dimensions = array<i64: 1>}> : (tensor<3xf32>, tensor<2xi64>) -> tensor<2x3xf64>
  return %r : tensor<2x3xf64>
}

// -----

// expected: V0701 stablehlo.dynamic_broadcast_in_dim: (C2) 2 dimensions for an operand of rank 1
func.func @main(%a0: tensor<3xf32>) -> (tensor<2x3xf32>) {
  %c0 = stablehlo.constant dense<[2, 3]> : tensor<2xi64>
  %r = "stablehlo.dynamic_broadcast_in_dim"(%a0, %c0) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<3xf32>, tensor<2xi64>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_broadcast_in_dim: (C3) dimensions [2] of a result of rank 2
func.func @main(%a0: tensor<3xf32>) -> (tensor<2x3xf32>) {
  %c0 = stablehlo.constant dense<[2, 3]> : tensor<2xi64>
  %r = "stablehlo.dynamic_broadcast_in_dim"(%a0, %c0) <{broadcast_dimensions = array<i64: 2>}> : (tensor<3xf32>, tensor<2xi64>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_broadcast_in_dim: (C4) dimensions [1, 1] name one twice
func.func @main(%a0: tensor<3x3xf32>) -> (tensor<3x3xf32>) {
  %c0 = stablehlo.constant dense<[3, 3]> : tensor<2xi64>
  %r = "stablehlo.dynamic_broadcast_in_dim"(%a0, %c0) <{broadcast_dimensions = array<i64: 1, 1>}> : (tensor<3x3xf32>, tensor<2xi64>) -> tensor<3x3xf32>
  return %r : tensor<3x3xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_broadcast_in_dim: (C5) dimension 0 of tensor<4xf32> becomes dimension 1 of tensor<2x3xf32>
func.func @main(%a0: tensor<4xf32>) -> (tensor<2x3xf32>) {
  %c0 = stablehlo.constant dense<[2, 3]> : tensor<2xi64>
  %r = "stablehlo.dynamic_broadcast_in_dim"(%a0, %c0) <{broadcast_dimensions = array<i64: 1>}> : (tensor<4xf32>, tensor<2xi64>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_broadcast_in_dim: (C7) the shape is tensor<3xi64>, of rank 2
func.func @main(%a0: tensor<3xf32>) -> (tensor<2x3xf32>) {
  %c0 = stablehlo.constant dense<[2, 3, 1]> : tensor<3xi64>
  %r = "stablehlo.dynamic_broadcast_in_dim"(%a0, %c0) <{broadcast_dimensions = array<i64: 1>}> : (tensor<3xf32>, tensor<3xi64>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_broadcast_in_dim: (C7) the operand says [2, 4], the type of the result [2, 3]
func.func @main(%a0: tensor<3xf32>) -> (tensor<2x3xf32>) {
  %c0 = stablehlo.constant dense<[2, 4]> : tensor<2xi64>
  %r = "stablehlo.dynamic_broadcast_in_dim"(%a0, %c0) <{broadcast_dimensions = array<i64: 1>}> : (tensor<3xf32>, tensor<2xi64>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_broadcast_in_dim: (C8) dimensions [0, 0] name one twice
func.func @main(%a0: tensor<3xf32>) -> (tensor<2x3xf32>) {
  %c0 = stablehlo.constant dense<[2, 3]> : tensor<2xi64>
  %r = "stablehlo.dynamic_broadcast_in_dim"(%a0, %c0) <{broadcast_dimensions = array<i64: 1>, known_expanding_dimensions = array<i64: 0>, known_nonexpanding_dimensions = array<i64: 0>}> : (tensor<3xf32>, tensor<2xi64>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_broadcast_in_dim: (C9) dimensions [1] of an operand of rank 1
func.func @main(%a0: tensor<3xf32>) -> (tensor<2x3xf32>) {
  %c0 = stablehlo.constant dense<[2, 3]> : tensor<2xi64>
  %r = "stablehlo.dynamic_broadcast_in_dim"(%a0, %c0) <{broadcast_dimensions = array<i64: 1>, known_expanding_dimensions = array<i64: 1>}> : (tensor<3xf32>, tensor<2xi64>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_broadcast_in_dim: (C10) dimensions [-1] of an operand of rank 1
func.func @main(%a0: tensor<3xf32>) -> (tensor<2x3xf32>) {
  %c0 = stablehlo.constant dense<[2, 3]> : tensor<2xi64>
  %r = "stablehlo.dynamic_broadcast_in_dim"(%a0, %c0) <{broadcast_dimensions = array<i64: 1>, known_nonexpanding_dimensions = array<i64: -1>}> : (tensor<3xf32>, tensor<2xi64>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_broadcast_in_dim: (I2) elements of tensor<2xf32> are not signed integer, unsigned integer
func.func @main(%a0: tensor<3xf32>) -> (tensor<2x3xf32>) {
  %c0 = stablehlo.constant dense<[2.0, 3.0]> : tensor<2xf32>
  %r = "stablehlo.dynamic_broadcast_in_dim"(%a0, %c0) <{broadcast_dimensions = array<i64: 1>}> : (tensor<3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_broadcast_in_dim: (I2) the shape is tensor<1x2xi64>
func.func @main(%a0: tensor<3xf32>) -> (tensor<2x3xf32>) {
  %c0 = stablehlo.constant dense<[[2, 3]]> : tensor<1x2xi64>
  %r = "stablehlo.dynamic_broadcast_in_dim"(%a0, %c0) <{broadcast_dimensions = array<i64: 1>}> : (tensor<3xf32>, tensor<1x2xi64>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_iota: (C1) dimension 2 of rank 2
func.func @main() -> (tensor<2x3xf32>) {
  %c0 = stablehlo.constant dense<[2, 3]> : tensor<2xi64>
  %r = "stablehlo.dynamic_iota"(%c0) <{iota_dimension = 2 : i64}> : (tensor<2xi64>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_iota: (C1) dimension -1 of rank 2
func.func @main() -> (tensor<2x3xf32>) {
  %c0 = stablehlo.constant dense<[2, 3]> : tensor<2xi64>
  %r = "stablehlo.dynamic_iota"(%c0) <{iota_dimension = -1 : i64}> : (tensor<2xi64>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_iota: (C2) the result is tensor<2x3xf32>, of 3 sizes
func.func @main() -> (tensor<2x3xf32>) {
  %c0 = stablehlo.constant dense<[2, 3, 1]> : tensor<3xi64>
  %r = "stablehlo.dynamic_iota"(%c0) <{iota_dimension = 0 : i64}> : (tensor<3xi64>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_iota: (I1) elements of tensor<2xf32> are not signed integer, unsigned integer
func.func @main() -> (tensor<2x3xf32>) {
  %c0 = stablehlo.constant dense<[2.0, 3.0]> : tensor<2xf32>
  %r = "stablehlo.dynamic_iota"(%c0) <{iota_dimension = 0 : i64}> : (tensor<2xf32>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_iota: (C2) the operand says [2, 4], the type of the result [2, 3]
func.func @main() -> (tensor<2x3xf32>) {
  %c0 = stablehlo.constant dense<[2, 4]> : tensor<2xi64>
  %r = "stablehlo.dynamic_iota"(%c0) <{iota_dimension = 0 : i64}> : (tensor<2xi64>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_reshape: (C1) elements are of different types, tensor<6xf32> and tensor<2x3xf64>
func.func @main(%a0: tensor<6xf32>) -> (tensor<2x3xf64>) {
  %c0 = stablehlo.constant dense<[2, 3]> : tensor<2xi64>
  %r = "stablehlo.dynamic_reshape"(%a0, %c0) : (tensor<6xf32>, tensor<2xi64>) -> tensor<2x3xf64>
  return %r : tensor<2x3xf64>
}

// -----

// expected: V0701 stablehlo.dynamic_reshape: (C2) from tensor<5xf32> to tensor<2x3xf32>
func.func @main(%a0: tensor<5xf32>) -> (tensor<2x3xf32>) {
  %c0 = stablehlo.constant dense<[2, 3]> : tensor<2xi64>
  %r = "stablehlo.dynamic_reshape"(%a0, %c0) : (tensor<5xf32>, tensor<2xi64>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_reshape: (C4) the shape is tensor<3xi64>, of rank 2
func.func @main(%a0: tensor<6xf32>) -> (tensor<2x3xf32>) {
  %c0 = stablehlo.constant dense<[2, 3, 1]> : tensor<3xi64>
  %r = "stablehlo.dynamic_reshape"(%a0, %c0) : (tensor<6xf32>, tensor<3xi64>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_reshape: (I2) elements of tensor<2xf32> are not signed integer, unsigned integer
func.func @main(%a0: tensor<6xf32>) -> (tensor<2x3xf32>) {
  %c0 = stablehlo.constant dense<[2.0, 3.0]> : tensor<2xf32>
  %r = "stablehlo.dynamic_reshape"(%a0, %c0) : (tensor<6xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_pad: (C1) elements are of different types, tensor<3xf32> and tensor<f64>
func.func @main(%a0: tensor<3xf32>, %a1: tensor<f64>) -> (tensor<5xf32>) {
  %c0 = stablehlo.constant dense<1> : tensor<1xi64>
  %c1 = stablehlo.constant dense<1> : tensor<1xi64>
  %c2 = stablehlo.constant dense<0> : tensor<1xi64>
  %r = "stablehlo.dynamic_pad"(%a0, %a1, %c0, %c1, %c2) : (tensor<3xf32>, tensor<f64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<5xf32>
  return %r : tensor<5xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_pad: (C1) elements are of different types, tensor<3xf32> and tensor<5xf64>
func.func @main(%a0: tensor<3xf32>, %a1: tensor<f32>) -> (tensor<5xf64>) {
  %c0 = stablehlo.constant dense<1> : tensor<1xi64>
  %c1 = stablehlo.constant dense<1> : tensor<1xi64>
  %c2 = stablehlo.constant dense<0> : tensor<1xi64>
  %r = "stablehlo.dynamic_pad"(%a0, %a1, %c0, %c1, %c2) : (tensor<3xf32>, tensor<f32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<5xf64>
  return %r : tensor<5xf64>
}

// -----

// expected: V0701 stablehlo.dynamic_pad: (C2) a list of padding is tensor<2xi64>, of rank 1
func.func @main(%a0: tensor<3xf32>, %a1: tensor<f32>) -> (tensor<5xf32>) {
  %c0 = stablehlo.constant dense<1> : tensor<2xi64>
  %c1 = stablehlo.constant dense<1> : tensor<1xi64>
  %c2 = stablehlo.constant dense<0> : tensor<1xi64>
  %r = "stablehlo.dynamic_pad"(%a0, %a1, %c0, %c1, %c2) : (tensor<3xf32>, tensor<f32>, tensor<2xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<5xf32>
  return %r : tensor<5xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_pad: (C3) interior padding [-1]
func.func @main(%a0: tensor<3xf32>, %a1: tensor<f32>) -> (tensor<5xf32>) {
  %c0 = stablehlo.constant dense<1> : tensor<1xi64>
  %c1 = stablehlo.constant dense<1> : tensor<1xi64>
  %c2 = stablehlo.constant dense<-1> : tensor<1xi64>
  %r = "stablehlo.dynamic_pad"(%a0, %a1, %c0, %c1, %c2) : (tensor<3xf32>, tensor<f32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<5xf32>
  return %r : tensor<5xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_pad: (C4) the result is tensor<6xf32>, and its shape must be [5]
func.func @main(%a0: tensor<3xf32>, %a1: tensor<f32>) -> (tensor<6xf32>) {
  %c0 = stablehlo.constant dense<1> : tensor<1xi64>
  %c1 = stablehlo.constant dense<1> : tensor<1xi64>
  %c2 = stablehlo.constant dense<0> : tensor<1xi64>
  %r = "stablehlo.dynamic_pad"(%a0, %a1, %c0, %c1, %c2) : (tensor<3xf32>, tensor<f32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<6xf32>
  return %r : tensor<6xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_pad: (I2) the padding value is tensor<1xf32>
func.func @main(%a0: tensor<3xf32>, %a1: tensor<1xf32>) -> (tensor<5xf32>) {
  %c0 = stablehlo.constant dense<1> : tensor<1xi64>
  %c1 = stablehlo.constant dense<1> : tensor<1xi64>
  %c2 = stablehlo.constant dense<0> : tensor<1xi64>
  %r = "stablehlo.dynamic_pad"(%a0, %a1, %c0, %c1, %c2) : (tensor<3xf32>, tensor<1xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<5xf32>
  return %r : tensor<5xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_pad: (I3) elements of tensor<1xf32> are not signed integer, unsigned integer
func.func @main(%a0: tensor<3xf32>, %a1: tensor<f32>) -> (tensor<5xf32>) {
  %c0 = stablehlo.constant dense<1.0> : tensor<1xf32>
  %c1 = stablehlo.constant dense<1> : tensor<1xi64>
  %c2 = stablehlo.constant dense<0> : tensor<1xi64>
  %r = "stablehlo.dynamic_pad"(%a0, %a1, %c0, %c1, %c2) : (tensor<3xf32>, tensor<f32>, tensor<1xf32>, tensor<1xi64>, tensor<1xi64>) -> tensor<5xf32>
  return %r : tensor<5xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_pad: (I4) elements of tensor<1xf32> are not signed integer, unsigned integer
func.func @main(%a0: tensor<3xf32>, %a1: tensor<f32>) -> (tensor<5xf32>) {
  %c0 = stablehlo.constant dense<1> : tensor<1xi64>
  %c1 = stablehlo.constant dense<1.0> : tensor<1xf32>
  %c2 = stablehlo.constant dense<0> : tensor<1xi64>
  %r = "stablehlo.dynamic_pad"(%a0, %a1, %c0, %c1, %c2) : (tensor<3xf32>, tensor<f32>, tensor<1xi64>, tensor<1xf32>, tensor<1xi64>) -> tensor<5xf32>
  return %r : tensor<5xf32>
}

// -----

// expected: V0701 stablehlo.dynamic_pad: (I5) elements of tensor<1xf32> are not signed integer, unsigned integer
func.func @main(%a0: tensor<3xf32>, %a1: tensor<f32>) -> (tensor<5xf32>) {
  %c0 = stablehlo.constant dense<1> : tensor<1xi64>
  %c1 = stablehlo.constant dense<1> : tensor<1xi64>
  %c2 = stablehlo.constant dense<1.0> : tensor<1xf32>
  %r = "stablehlo.dynamic_pad"(%a0, %a1, %c0, %c1, %c2) : (tensor<3xf32>, tensor<f32>, tensor<1xi64>, tensor<1xi64>, tensor<1xf32>) -> tensor<5xf32>
  return %r : tensor<5xf32>
}

// expected: V0701 stablehlo.all_gather: (C1) gathered dimension 2 of rank 2
func.func @main(%a0: tensor<2x2xf32>) -> (tensor<2x4xf32>) {
  %r = "stablehlo.all_gather"(%a0) <{all_gather_dim = 2 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<2x2xf32>) -> tensor<2x4xf32>
  return %r : tensor<2x4xf32>
}

// -----

// expected: V0701 stablehlo.all_gather: (C1) gathered dimension -1 of rank 2
func.func @main(%a0: tensor<2x2xf32>) -> (tensor<2x4xf32>) {
  %r = "stablehlo.all_gather"(%a0) <{all_gather_dim = -1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<2x2xf32>) -> tensor<2x4xf32>
  return %r : tensor<2x4xf32>
}

// -----

// expected: V0701 stablehlo.all_gather: (C2) device 0 is in groups twice
func.func @main(%a0: tensor<2x2xf32>) -> (tensor<2x4xf32>) {
  %r = "stablehlo.all_gather"(%a0) <{all_gather_dim = 1 : i64, replica_groups = dense<[[0, 0]]> : tensor<1x2xi64>}> : (tensor<2x2xf32>) -> tensor<2x4xf32>
  return %r : tensor<2x4xf32>
}

// -----

// expected: V0701 stablehlo.all_gather: (C3) groups have 2 devices, and there are 4
module @m attributes {mhlo.num_replicas = 4 : i32, mhlo.num_partitions = 1 : i32} {
  func.func @main(%a0: tensor<2x2xf32>) -> (tensor<2x4xf32>) {
    %r = "stablehlo.all_gather"(%a0) <{all_gather_dim = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<2x2xf32>) -> tensor<2x4xf32>
    return %r : tensor<2x4xf32>
  }
}

// -----

// expected: V0701 stablehlo.all_gather: (C3) groups have 2 devices, and there are 4
module @m attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 4 : i32} {
  func.func @main(%a0: tensor<2x2xf32>) -> (tensor<2x4xf32>) {
    %r = "stablehlo.all_gather"(%a0) <{all_gather_dim = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> : (tensor<2x2xf32>) -> tensor<2x4xf32>
    return %r : tensor<2x4xf32>
  }
}

// -----

// expected: V0701 stablehlo.all_gather: (C4) groups name device 2 of 2
func.func @main(%a0: tensor<2x2xf32>) -> (tensor<2x4xf32>) {
  %r = "stablehlo.all_gather"(%a0) <{all_gather_dim = 1 : i64, replica_groups = dense<[[0, 2]]> : tensor<1x2xi64>}> : (tensor<2x2xf32>) -> tensor<2x4xf32>
  return %r : tensor<2x4xf32>
}

// -----

// expected: V0701 stablehlo.all_gather: (C4) groups name device -2 of 3
func.func @main(%a0: tensor<2x2xf32>) -> (tensor<2x4xf32>) {
  %r = "stablehlo.all_gather"(%a0) <{all_gather_dim = 1 : i64, replica_groups = dense<[[0, -2], [1, -1]]> : tensor<2x2xi64>}> : (tensor<2x2xf32>) -> tensor<2x4xf32>
  return %r : tensor<2x4xf32>
}

// -----

// expected: V0701 stablehlo.all_gather: (C5) `use_global_device_ids` without a channel
func.func @main(%a0: tensor<2x2xf32>) -> (tensor<2x4xf32>) {
  %r = "stablehlo.all_gather"(%a0) <{all_gather_dim = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> : (tensor<2x2xf32>) -> tensor<2x4xf32>
  return %r : tensor<2x4xf32>
}

// -----

// expected: V0701 stablehlo.all_gather: (C6) the result is tensor<2x3xf32>, and its shape must be [2, 4]
func.func @main(%a0: tensor<2x2xf32>) -> (tensor<2x3xf32>) {
  %r = "stablehlo.all_gather"(%a0) <{all_gather_dim = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<2x2xf32>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// expected: V0701 stablehlo.all_gather: (C6) elements are of different types, tensor<2x2xf32> and tensor<2x4xf64>
func.func @main(%a0: tensor<2x2xf32>) -> (tensor<2x4xf64>) {
  %r = "stablehlo.all_gather"(%a0) <{all_gather_dim = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<2x2xf32>) -> tensor<2x4xf64>
  return %r : tensor<2x4xf64>
}

// -----

// expected: V0701 stablehlo.all_reduce: (C1) device 1 is in groups twice
func.func @main(%a0: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "stablehlo.all_reduce"(%a0) <{replica_groups = dense<[[0, 1], [1, 2]]> : tensor<2x2xi64>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// expected: V0701 stablehlo.all_reduce: (C2) groups have 2 devices, and there are 4
module @m attributes {mhlo.num_replicas = 4 : i32, mhlo.num_partitions = 1 : i32} {
  func.func @main(%a0: tensor<4xf32>) -> (tensor<4xf32>) {
    %r = "stablehlo.all_reduce"(%a0) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
    ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
      %s0 = stablehlo.add %x0, %x1 : tensor<f32>
      stablehlo.return %s0 : tensor<f32>
    }) : (tensor<4xf32>) -> tensor<4xf32>
    return %r : tensor<4xf32>
  }
}

// -----

// expected: V0701 stablehlo.all_reduce: (C3) groups name device 3 of 2
func.func @main(%a0: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "stablehlo.all_reduce"(%a0) <{replica_groups = dense<[[0, 3]]> : tensor<1x2xi64>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// expected: V0701 stablehlo.all_reduce: (C4) `use_global_device_ids` without a channel
func.func @main(%a0: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "stablehlo.all_reduce"(%a0) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// expected: V0701 stablehlo.all_reduce: (C5) the computation is (tensor<f32>, tensor<f32>) -> (tensor<i32>), of elements (f32)
func.func @main(%a0: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "stablehlo.all_reduce"(%a0) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %c = stablehlo.convert %x0 : (tensor<f32>) -> tensor<i32>
    stablehlo.return %c : tensor<i32>
  }) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// expected: V0701 stablehlo.all_reduce: (C5) the computation is (tensor<f16>, tensor<f16>) -> (tensor<f16>), of elements (f32)
func.func @main(%a0: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "stablehlo.all_reduce"(%a0) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%x0: tensor<f16>, %x1: tensor<f16>):
    %c = stablehlo.add %x0, %x1 : tensor<f16>
    stablehlo.return %c : tensor<f16>
  }) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// expected: V0701 stablehlo.all_reduce: (C6) the result is tensor<5xf32>, and its shape must be [4]
func.func @main(%a0: tensor<4xf32>) -> (tensor<5xf32>) {
  %r = "stablehlo.all_reduce"(%a0) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4xf32>) -> tensor<5xf32>
  return %r : tensor<5xf32>
}

// -----

// expected: V0701 stablehlo.all_reduce: (C7) the result is tensor<4xf64>, and the computation gives f32
func.func @main(%a0: tensor<4xf32>) -> (tensor<4xf64>) {
  %r = "stablehlo.all_reduce"(%a0) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4xf32>) -> tensor<4xf64>
  return %r : tensor<4xf64>
}

// -----

// expected: V0701 stablehlo.all_reduce: (C7) the result is tensor<4xf32>, and the computation gives f64
func.func @main(%a0: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "stablehlo.all_reduce"(%a0) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%x0: tensor<f64>, %x1: tensor<f64>):
    %c = stablehlo.add %x0, %x1 : tensor<f64>
    stablehlo.return %c : tensor<f64>
  }) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// expected: V0701 stablehlo.all_to_all: (C1) split dimension 2 of rank 2
func.func @main(%a0: tensor<4x4xf32>) -> (tensor<2x8xf32>) {
  %r = "stablehlo.all_to_all"(%a0) <{split_dimension = 2 : i64, concat_dimension = 1 : i64, split_count = 2 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4x4xf32>) -> tensor<2x8xf32>
  return %r : tensor<2x8xf32>
}

// -----

// expected: V0701 stablehlo.all_to_all: (C2) dimension 0 of tensor<3x4xf32> is not split into 2 parts
func.func @main(%a0: tensor<3x4xf32>) -> (tensor<2x8xf32>) {
  %r = "stablehlo.all_to_all"(%a0) <{split_dimension = 0 : i64, concat_dimension = 1 : i64, split_count = 2 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<3x4xf32>) -> tensor<2x8xf32>
  return %r : tensor<2x8xf32>
}

// -----

// expected: V0701 stablehlo.all_to_all: (C3) joined dimension -1 of rank 2
func.func @main(%a0: tensor<4x4xf32>) -> (tensor<2x8xf32>) {
  %r = "stablehlo.all_to_all"(%a0) <{split_dimension = 0 : i64, concat_dimension = -1 : i64, split_count = 2 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4x4xf32>) -> tensor<2x8xf32>
  return %r : tensor<2x8xf32>
}

// -----

// expected: V0701 stablehlo.all_to_all: (C4) a split into 0 parts
func.func @main(%a0: tensor<4x4xf32>) -> (tensor<2x8xf32>) {
  %r = "stablehlo.all_to_all"(%a0) <{split_dimension = 0 : i64, concat_dimension = 1 : i64, split_count = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4x4xf32>) -> tensor<2x8xf32>
  return %r : tensor<2x8xf32>
}

// -----

// expected: V0701 stablehlo.all_to_all: (C5) device 1 is in groups twice
func.func @main(%a0: tensor<4x4xf32>) -> (tensor<2x8xf32>) {
  %r = "stablehlo.all_to_all"(%a0) <{split_dimension = 0 : i64, concat_dimension = 1 : i64, split_count = 2 : i64, replica_groups = dense<[[1, 1]]> : tensor<1x2xi64>}> : (tensor<4x4xf32>) -> tensor<2x8xf32>
  return %r : tensor<2x8xf32>
}

// -----

// expected: V0701 stablehlo.all_to_all: (C6) groups have 2 devices, and there are 4
module @m attributes {mhlo.num_replicas = 4 : i32, mhlo.num_partitions = 1 : i32} {
  func.func @main(%a0: tensor<4x4xf32>) -> (tensor<2x8xf32>) {
    %r = "stablehlo.all_to_all"(%a0) <{split_dimension = 0 : i64, concat_dimension = 1 : i64, split_count = 2 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4x4xf32>) -> tensor<2x8xf32>
    return %r : tensor<2x8xf32>
  }
}

// -----

// expected: V0701 stablehlo.all_to_all: (C6) groups have 2 devices, and there are 4
module @m attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 4 : i32} {
  func.func @main(%a0: tensor<4x4xf32>) -> (tensor<2x8xf32>) {
    %r = "stablehlo.all_to_all"(%a0) <{split_dimension = 0 : i64, concat_dimension = 1 : i64, split_count = 2 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>}> : (tensor<4x4xf32>) -> tensor<2x8xf32>
    return %r : tensor<2x8xf32>
  }
}

// -----

// expected: V0701 stablehlo.all_to_all: (C7) groups name device 5 of 2
func.func @main(%a0: tensor<4x4xf32>) -> (tensor<2x8xf32>) {
  %r = "stablehlo.all_to_all"(%a0) <{split_dimension = 0 : i64, concat_dimension = 1 : i64, split_count = 2 : i64, replica_groups = dense<[[0, 5]]> : tensor<1x2xi64>}> : (tensor<4x4xf32>) -> tensor<2x8xf32>
  return %r : tensor<2x8xf32>
}

// -----

// expected: V0701 stablehlo.all_to_all: (C8) groups of 2 and a split into 4 parts
func.func @main(%a0: tensor<4x4xf32>) -> (tensor<1x16xf32>) {
  %r = "stablehlo.all_to_all"(%a0) <{split_dimension = 0 : i64, concat_dimension = 1 : i64, split_count = 4 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4x4xf32>) -> tensor<1x16xf32>
  return %r : tensor<1x16xf32>
}

// -----

// expected: V0701 stablehlo.all_to_all: (C9) the result is tensor<4x4xf32>, and its shape must be [2, 8]
func.func @main(%a0: tensor<4x4xf32>) -> (tensor<4x4xf32>) {
  %r = "stablehlo.all_to_all"(%a0) <{split_dimension = 0 : i64, concat_dimension = 1 : i64, split_count = 2 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}

// -----

// expected: V0701 stablehlo.all_to_all: (C9) elements are of different types, tensor<4x4xf32> and tensor<2x8xf64>
func.func @main(%a0: tensor<4x4xf32>) -> (tensor<2x8xf64>) {
  %r = "stablehlo.all_to_all"(%a0) <{split_dimension = 0 : i64, concat_dimension = 1 : i64, split_count = 2 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4x4xf32>) -> tensor<2x8xf64>
  return %r : tensor<2x8xf64>
}

// -----

// expected: V0701 stablehlo.reduce_scatter: (C1) dimension 0 of tensor<3x2xf32> is not split among 2
func.func @main(%a0: tensor<3x2xf32>) -> (tensor<1x2xf32>) {
  %r = "stablehlo.reduce_scatter"(%a0) <{scatter_dimension = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<3x2xf32>) -> tensor<1x2xf32>
  return %r : tensor<1x2xf32>
}

// -----

// expected: V0701 stablehlo.reduce_scatter: (C2) scattered dimension 2 of rank 2
func.func @main(%a0: tensor<4x2xf32>) -> (tensor<2x2xf32>) {
  %r = "stablehlo.reduce_scatter"(%a0) <{scatter_dimension = 2 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4x2xf32>) -> tensor<2x2xf32>
  return %r : tensor<2x2xf32>
}

// -----

// expected: V0701 stablehlo.reduce_scatter: (C3) device 1 is in groups twice
func.func @main(%a0: tensor<4x2xf32>) -> (tensor<2x2xf32>) {
  %r = "stablehlo.reduce_scatter"(%a0) <{scatter_dimension = 0 : i64, replica_groups = dense<[[1, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4x2xf32>) -> tensor<2x2xf32>
  return %r : tensor<2x2xf32>
}

// -----

// expected: V0701 stablehlo.reduce_scatter: (C4) groups have 2 devices, and there are 4
module @m attributes {mhlo.num_replicas = 4 : i32, mhlo.num_partitions = 1 : i32} {
  func.func @main(%a0: tensor<4x2xf32>) -> (tensor<2x2xf32>) {
    %r = "stablehlo.reduce_scatter"(%a0) <{scatter_dimension = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
    ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
      %s0 = stablehlo.add %x0, %x1 : tensor<f32>
      stablehlo.return %s0 : tensor<f32>
    }) : (tensor<4x2xf32>) -> tensor<2x2xf32>
    return %r : tensor<2x2xf32>
  }
}

// -----

// expected: V0701 stablehlo.reduce_scatter: (C5) groups name device 2 of 2
func.func @main(%a0: tensor<4x2xf32>) -> (tensor<2x2xf32>) {
  %r = "stablehlo.reduce_scatter"(%a0) <{scatter_dimension = 0 : i64, replica_groups = dense<[[1, 2]]> : tensor<1x2xi64>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4x2xf32>) -> tensor<2x2xf32>
  return %r : tensor<2x2xf32>
}

// -----

// expected: V0701 stablehlo.reduce_scatter: (C6) `use_global_device_ids` without a channel
func.func @main(%a0: tensor<4x2xf32>) -> (tensor<2x2xf32>) {
  %r = "stablehlo.reduce_scatter"(%a0) <{scatter_dimension = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4x2xf32>) -> tensor<2x2xf32>
  return %r : tensor<2x2xf32>
}

// -----

// expected: V0701 stablehlo.reduce_scatter: (C7) the computation is (tensor<f32>, tensor<f32>) -> (tensor<i32>), of elements (f32)
func.func @main(%a0: tensor<4x2xf32>) -> (tensor<2x2xf32>) {
  %r = "stablehlo.reduce_scatter"(%a0) <{scatter_dimension = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %c = stablehlo.convert %x0 : (tensor<f32>) -> tensor<i32>
    stablehlo.return %c : tensor<i32>
  }) : (tensor<4x2xf32>) -> tensor<2x2xf32>
  return %r : tensor<2x2xf32>
}

// -----

// expected: V0701 stablehlo.reduce_scatter: (C8) the result is tensor<4x2xf32>, and its shape must be [2, 2]
func.func @main(%a0: tensor<4x2xf32>) -> (tensor<4x2xf32>) {
  %r = "stablehlo.reduce_scatter"(%a0) <{scatter_dimension = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4x2xf32>) -> tensor<4x2xf32>
  return %r : tensor<4x2xf32>
}

// -----

// expected: V0701 stablehlo.reduce_scatter: (C9) the result is tensor<2x2xf64>, and the computation gives f32
func.func @main(%a0: tensor<4x2xf32>) -> (tensor<2x2xf64>) {
  %r = "stablehlo.reduce_scatter"(%a0) <{scatter_dimension = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4x2xf32>) -> tensor<2x2xf64>
  return %r : tensor<2x2xf64>
}

// -----

// expected: V0701 stablehlo.reduce_scatter: (C9) the result is tensor<2x2xf32>, and the computation gives f64
func.func @main(%a0: tensor<4x2xf32>) -> (tensor<2x2xf32>) {
  %r = "stablehlo.reduce_scatter"(%a0) <{scatter_dimension = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%x0: tensor<f64>, %x1: tensor<f64>):
    %c = stablehlo.add %x0, %x1 : tensor<f64>
    stablehlo.return %c : tensor<f64>
  }) : (tensor<4x2xf32>) -> tensor<2x2xf32>
  return %r : tensor<2x2xf32>
}

// -----

// expected: V0701 stablehlo.collective_broadcast: (C1) device 1 is in groups twice
func.func @main(%a0: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "stablehlo.collective_broadcast"(%a0) <{replica_groups = dense<[[1, 1]]> : tensor<1x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// expected: V0701 stablehlo.collective_broadcast: (C2) groups name device 2 of 2
module @m attributes {mhlo.num_replicas = 2 : i32, mhlo.num_partitions = 1 : i32} {
  func.func @main(%a0: tensor<4xf32>) -> (tensor<4xf32>) {
    %r = "stablehlo.collective_broadcast"(%a0) <{replica_groups = dense<[[0, 2]]> : tensor<1x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
    return %r : tensor<4xf32>
  }
}

// -----

// expected: V0701 stablehlo.collective_broadcast: (C2) groups name device -3 of 9223372036854775807
func.func @main(%a0: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "stablehlo.collective_broadcast"(%a0) <{replica_groups = dense<[[0, -3]]> : tensor<1x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// expected: V0701 stablehlo.collective_broadcast: (C3) the result is tensor<5xf32>, not tensor<4xf32>
func.func @main(%a0: tensor<4xf32>) -> (tensor<5xf32>) {
  %r = "stablehlo.collective_broadcast"(%a0) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4xf32>) -> tensor<5xf32>
  return %r : tensor<5xf32>
}

// -----

// expected: V0701 stablehlo.collective_broadcast: (C3) 0 operands
func.func @main() -> (tensor<4xf32>) {
  %r = "stablehlo.collective_broadcast"() <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : () -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// expected: V0701 stablehlo.collective_broadcast: (C4) the roots are tensor<2xi32>
func.func @main(%a0: tensor<4xf32>, %a1: tensor<2xi32>) -> (tensor<4xf32>) {
  %r = "stablehlo.collective_broadcast"(%a0, %a1) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, has_dynamic_root = true}> : (tensor<4xf32>, tensor<2xi32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// expected: V0701 stablehlo.collective_broadcast: (C4) the roots are tensor<1xi64>
func.func @main(%a0: tensor<4xf32>, %a1: tensor<1xi64>) -> (tensor<4xf32>) {
  %r = "stablehlo.collective_broadcast"(%a0, %a1) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, has_dynamic_root = true}> : (tensor<4xf32>, tensor<1xi64>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// expected: V0701 stablehlo.collective_broadcast: (C4) 1 operands
func.func @main(%a0: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "stablehlo.collective_broadcast"(%a0) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, has_dynamic_root = true}> : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// expected: V0701 stablehlo.collective_broadcast: (C4) the result is tensor<3xf32>, not tensor<4xf32>
func.func @main(%a0: tensor<4xf32>, %a1: tensor<1xi32>) -> (tensor<3xf32>) {
  %r = "stablehlo.collective_broadcast"(%a0, %a1) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, has_dynamic_root = true}> : (tensor<4xf32>, tensor<1xi32>) -> tensor<3xf32>
  return %r : tensor<3xf32>
}

// -----

// expected: V0701 stablehlo.collective_broadcast: (C5) operands are (tensor<4xf32>, tensor<4xf32>), results (tensor<4xf32>)
func.func @main(%a0: tensor<4xf32>, %a1: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "stablehlo.collective_broadcast"(%a0, %a1) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// expected: V0701 stablehlo.collective_broadcast: (C5) operands are (tensor<4xf32>, tensor<1xi32>), results (tensor<4xf32>, tensor<1xi32>)
func.func @main(%a0: tensor<4xf32>, %a1: tensor<1xi32>) -> (tensor<4xf32>, tensor<1xi32>) {
  %r:2 = "stablehlo.collective_broadcast"(%a0, %a1) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, has_dynamic_root = true}> : (tensor<4xf32>, tensor<1xi32>) -> (tensor<4xf32>, tensor<1xi32>)
  return %r#0, %r#1 : tensor<4xf32>, tensor<1xi32>
}

// -----

// expected: V0701 stablehlo.collective_broadcast: (C6) roots [2] of groups of 2
func.func @main(%a0: tensor<4xf32>) -> (tensor<4xf32>) {
  %c = stablehlo.constant dense<2> : tensor<1xi32>
  %r = "stablehlo.collective_broadcast"(%a0, %c) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, has_dynamic_root = true}> : (tensor<4xf32>, tensor<1xi32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// expected: V0701 stablehlo.collective_reduce: (C1) device 1 is in groups twice
func.func @main(%a0: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "stablehlo.collective_reduce"(%a0) <{replica_groups = dense<[[1, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// expected: V0701 stablehlo.collective_reduce: (C2) groups name device 2 of 2
module @m attributes {mhlo.num_replicas = 2 : i32, mhlo.num_partitions = 1 : i32} {
  func.func @main(%a0: tensor<4xf32>) -> (tensor<4xf32>) {
    %r = "stablehlo.collective_reduce"(%a0) <{replica_groups = dense<[[0, 2]]> : tensor<1x2xi64>}> ({
    ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
      %s0 = stablehlo.add %x0, %x1 : tensor<f32>
      stablehlo.return %s0 : tensor<f32>
    }) : (tensor<4xf32>) -> tensor<4xf32>
    return %r : tensor<4xf32>
  }
}

// -----

// expected: V0701 stablehlo.collective_reduce: (C3) operands are (tensor<4xf32>), results (tensor<5xf32>)
func.func @main(%a0: tensor<4xf32>) -> (tensor<5xf32>) {
  %r = "stablehlo.collective_reduce"(%a0) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %s0 = stablehlo.add %x0, %x1 : tensor<f32>
    stablehlo.return %s0 : tensor<f32>
  }) : (tensor<4xf32>) -> tensor<5xf32>
  return %r : tensor<5xf32>
}

// -----

// expected: V0701 stablehlo.collective_reduce: (C4) the computation is (tensor<f32>, tensor<f32>) -> (tensor<i32>), of elements (f32)
func.func @main(%a0: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "stablehlo.collective_reduce"(%a0) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>):
    %c = stablehlo.convert %x0 : (tensor<f32>) -> tensor<i32>
    stablehlo.return %c : tensor<i32>
  }) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// expected: V0701 stablehlo.collective_permute: (C1) `source_target_pairs` is no list of pairs
func.func @main(%a0: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "stablehlo.collective_permute"(%a0) <{source_target_pairs = dense<[[0, 1, 2]]> : tensor<1x3xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// expected: V0701 stablehlo.collective_permute: (C2) device 0 is the source twice
func.func @main(%a0: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "stablehlo.collective_permute"(%a0) <{source_target_pairs = dense<[[0, 1], [0, 2]]> : tensor<2x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// expected: V0701 stablehlo.collective_permute: (C3) device 1 is the target twice
func.func @main(%a0: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "stablehlo.collective_permute"(%a0) <{source_target_pairs = dense<[[0, 1], [2, 1]]> : tensor<2x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// expected: V0701 stablehlo.collective_permute: (C4) device -1
func.func @main(%a0: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "stablehlo.collective_permute"(%a0) <{source_target_pairs = dense<[[0, -1]]> : tensor<1x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// expected: V0701 stablehlo.collective_permute: (C4) device 2 of 2
module @m attributes {mhlo.num_replicas = 2 : i32, mhlo.num_partitions = 1 : i32} {
  func.func @main(%a0: tensor<4xf32>) -> (tensor<4xf32>) {
    %r = "stablehlo.collective_permute"(%a0) <{source_target_pairs = dense<[[0, 2]]> : tensor<1x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
    return %r : tensor<4xf32>
  }
}

// -----

// expected: V0701 stablehlo.collective_permute: (C4) device 2 of 2
module @m attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 2 : i32} {
  func.func @main(%a0: tensor<4xf32>) -> (tensor<4xf32>) {
    %r = "stablehlo.collective_permute"(%a0) <{source_target_pairs = dense<[[0, 2]]> : tensor<1x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>}> : (tensor<4xf32>) -> tensor<4xf32>
    return %r : tensor<4xf32>
  }
}

// -----

// expected: V0701 stablehlo.collective_permute: (C5) the result is tensor<5xf32>, not tensor<4xf32>
func.func @main(%a0: tensor<4xf32>) -> (tensor<5xf32>) {
  %r = "stablehlo.collective_permute"(%a0) <{source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4xf32>) -> tensor<5xf32>
  return %r : tensor<5xf32>
}

// -----

// expected: V0701 stablehlo.send: (C1) `source_target_pairs` is no list of pairs
func.func @main(%a0: tensor<4xf32>, %a1: !stablehlo.token) -> (!stablehlo.token) {
  %r = "stablehlo.send"(%a0, %a1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, is_host_transfer = false, source_target_pairs = dense<[[0, 1, 2]]> : tensor<1x3xi64>}> : (tensor<4xf32>, !stablehlo.token) -> !stablehlo.token
  return %r : !stablehlo.token
}

// -----

// expected: V0701 stablehlo.send: (C2) device 0 is the source twice
func.func @main(%a0: tensor<4xf32>, %a1: !stablehlo.token) -> (!stablehlo.token) {
  %r = "stablehlo.send"(%a0, %a1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, is_host_transfer = false, source_target_pairs = dense<[[0, 1], [0, 2]]> : tensor<2x2xi64>}> : (tensor<4xf32>, !stablehlo.token) -> !stablehlo.token
  return %r : !stablehlo.token
}

// -----

// expected: V0701 stablehlo.send: (C3) device 1 is the target twice
func.func @main(%a0: tensor<4xf32>, %a1: !stablehlo.token) -> (!stablehlo.token) {
  %r = "stablehlo.send"(%a0, %a1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, is_host_transfer = false, source_target_pairs = dense<[[0, 1], [2, 1]]> : tensor<2x2xi64>}> : (tensor<4xf32>, !stablehlo.token) -> !stablehlo.token
  return %r : !stablehlo.token
}

// -----

// expected: V0701 stablehlo.send: (C4) device -1
func.func @main(%a0: tensor<4xf32>, %a1: !stablehlo.token) -> (!stablehlo.token) {
  %r = "stablehlo.send"(%a0, %a1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, is_host_transfer = false, source_target_pairs = dense<[[0, -1]]> : tensor<1x2xi64>}> : (tensor<4xf32>, !stablehlo.token) -> !stablehlo.token
  return %r : !stablehlo.token
}

// -----

// expected: V0701 stablehlo.send: (C5) a channel of type 1, to or from the host
func.func @main(%a0: tensor<4xf32>, %a1: !stablehlo.token) -> (!stablehlo.token) {
  %r = "stablehlo.send"(%a0, %a1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, is_host_transfer = true}> : (tensor<4xf32>, !stablehlo.token) -> !stablehlo.token
  return %r : !stablehlo.token
}

// -----

// expected: V0701 stablehlo.send: (C5) a channel of type 2, not to or from the host
func.func @main(%a0: tensor<4xf32>, %a1: !stablehlo.token) -> (!stablehlo.token) {
  %r = "stablehlo.send"(%a0, %a1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 2>, is_host_transfer = false}> : (tensor<4xf32>, !stablehlo.token) -> !stablehlo.token
  return %r : !stablehlo.token
}

// -----

// expected: V0701 stablehlo.recv: (C1) `source_target_pairs` is no list of pairs
func.func @main(%a0: !stablehlo.token) -> (tensor<4xf32>, !stablehlo.token) {
  %r:2 = "stablehlo.recv"(%a0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, is_host_transfer = false, source_target_pairs = dense<[[0, 1, 2]]> : tensor<1x3xi64>}> : (!stablehlo.token) -> (tensor<4xf32>, !stablehlo.token)
  return %r#0, %r#1 : tensor<4xf32>, !stablehlo.token
}

// -----

// expected: V0701 stablehlo.recv: (C2) device 0 is the source twice
func.func @main(%a0: !stablehlo.token) -> (tensor<4xf32>, !stablehlo.token) {
  %r:2 = "stablehlo.recv"(%a0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, is_host_transfer = false, source_target_pairs = dense<[[0, 1], [0, 2]]> : tensor<2x2xi64>}> : (!stablehlo.token) -> (tensor<4xf32>, !stablehlo.token)
  return %r#0, %r#1 : tensor<4xf32>, !stablehlo.token
}

// -----

// expected: V0701 stablehlo.recv: (C3) device 1 is the target twice
func.func @main(%a0: !stablehlo.token) -> (tensor<4xf32>, !stablehlo.token) {
  %r:2 = "stablehlo.recv"(%a0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, is_host_transfer = false, source_target_pairs = dense<[[0, 1], [2, 1]]> : tensor<2x2xi64>}> : (!stablehlo.token) -> (tensor<4xf32>, !stablehlo.token)
  return %r#0, %r#1 : tensor<4xf32>, !stablehlo.token
}

// -----

// expected: V0701 stablehlo.recv: (C4) device -1
func.func @main(%a0: !stablehlo.token) -> (tensor<4xf32>, !stablehlo.token) {
  %r:2 = "stablehlo.recv"(%a0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, is_host_transfer = false, source_target_pairs = dense<[[0, -1]]> : tensor<1x2xi64>}> : (!stablehlo.token) -> (tensor<4xf32>, !stablehlo.token)
  return %r#0, %r#1 : tensor<4xf32>, !stablehlo.token
}

// -----

// expected: V0701 stablehlo.recv: (C5) a channel of type 1, to or from the host
func.func @main(%a0: !stablehlo.token) -> (tensor<4xf32>, !stablehlo.token) {
  %r:2 = "stablehlo.recv"(%a0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, is_host_transfer = true}> : (!stablehlo.token) -> (tensor<4xf32>, !stablehlo.token)
  return %r#0, %r#1 : tensor<4xf32>, !stablehlo.token
}

// -----

// expected: V0701 stablehlo.recv: (C5) a channel of type 2, not to or from the host
func.func @main(%a0: !stablehlo.token) -> (tensor<4xf32>, !stablehlo.token) {
  %r:2 = "stablehlo.recv"(%a0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 2>, is_host_transfer = false}> : (!stablehlo.token) -> (tensor<4xf32>, !stablehlo.token)
  return %r#0, %r#1 : tensor<4xf32>, !stablehlo.token
}

// -----

// expected: V0701 stablehlo.send: (I2) the last operand is tensor<4xf32>, no token
func.func @main(%a0: tensor<4xf32>, %a1: tensor<4xf32>) -> (!stablehlo.token) {
  %r = "stablehlo.send"(%a0, %a1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, is_host_transfer = false}> : (tensor<4xf32>, tensor<4xf32>) -> !stablehlo.token
  return %r : !stablehlo.token
}

// -----

// expected: V0701 stablehlo.recv: (I1) the operand is tensor<4xf32>, no token
func.func @main(%a0: tensor<4xf32>) -> (tensor<4xf32>, !stablehlo.token) {
  %r:2 = "stablehlo.recv"(%a0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, is_host_transfer = false}> : (tensor<4xf32>) -> (tensor<4xf32>, !stablehlo.token)
  return %r#0, %r#1 : tensor<4xf32>, !stablehlo.token
}

#mesh = loc("m")
module @forms attributes {mhlo.num_partitions = 1 : i32, text = "a\22b\\\0A"} {
  func.func public @main(%x: tensor<4x6xf32> {mhlo.sharding = "{replicated}"}, %i: tensor<i32> loc(#at)) -> (tensor<4xf32> {jax.result_info = "r"}, tensor<2x2xf32>) {
    %zero = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %rows = stablehlo.constant dense<[[0], [2]]> : tensor<2x1xi32>
    %c = stablehlo.constant {tag} dense<"0x0000803F00000040"> : tensor<2xf32>
    %q = stablehlo.uniform_quantize %c : (tensor<2xf32>) -> tensor<2x!quant.uniform<i8:f32, 5.000000e-01:1>>
    %d = stablehlo.uniform_dequantize %q : (tensor<2x!quant.uniform<i8:f32, 5.000000e-01:1>>) -> tensor<2xf32>
    %g = "stablehlo.gather"(%x, %rows) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 6>}> : (tensor<4x6xf32>, tensor<2x1xi32>) -> tensor<2x6xf32>
    %s = "stablehlo.scatter"(%x, %rows, %g) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %t = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %t : tensor<f32>
    }) : (tensor<4x6xf32>, tensor<2x1xi32>, tensor<2x6xf32>) -> tensor<4x6xf32>
    %r = stablehlo.reduce(%s init: %zero) applies stablehlo.maximum across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
    %r2:2 = stablehlo.reduce(%s init: %zero), (%x init: %zero) across dimensions = [0, 1] : (tensor<4x6xf32>, tensor<4x6xf32>, tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
     reducer(%a: tensor<f32>, %b: tensor<f32>) (%p: tensor<f32>, %o: tensor<f32>) {
      %t = stablehlo.add %a, %b : tensor<f32>
      %u = stablehlo.multiply %p, %o : tensor<f32>
      stablehlo.return %t, %u : tensor<f32>, tensor<f32>
    }
    %w:2 = stablehlo.while(%k = %i, %v = %r) : tensor<i32>, tensor<4xf32>
    cond {
      %lt = stablehlo.compare LT, %k, %i, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %lt : tensor<i1>
    } do {
      %n = stablehlo.add %k, %i : tensor<i32>
      %v2 = func.call @double(%v) : (tensor<4xf32>) -> tensor<4xf32>
      stablehlo.return %n, %v2 : tensor<i32>, tensor<4xf32>
    }
    %e = "stablehlo.case"(%i) ({
      stablehlo.return %w#1 : tensor<4xf32>
    }, {
      %t = chlo.sinh %r : tensor<4xf32> -> tensor<4xf32>
      stablehlo.return %t : tensor<4xf32>
    }) : (tensor<i32>) -> tensor<4xf32>
    %f = stablehlo.dynamic_slice %x, %i, %i, sizes = [2, 2] : (tensor<4x6xf32>, tensor<i32>, tensor<i32>) -> tensor<2x2xf32> loc("f"(#mesh))
    %h:2 = "stablehlo.sort"(%f, %f) <{dimension = 1 : i64, is_stable = true}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>, %m: tensor<f32>, %n: tensor<f32>):
      %t = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %t : tensor<i1>
    }) : (tensor<2x2xf32>, tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2x2xf32>)
    %j = stablehlo.dot_general %h#0, %f, contracting_dims = [1] x [0], precision = [HIGHEST, DEFAULT] : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    %l = stablehlo.custom_call @Sharding(%j) {backend_config = "", mhlo.sharding = "{replicated}"} : (tensor<2x2xf32>) -> tensor<2x2xf32>
    return %e, %l : tensor<4xf32>, tensor<2x2xf32>
  } loc(#mesh)
  func.func private @double(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.add %x, %x : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
} loc(unknown)
#at = loc("f.py":1:2)

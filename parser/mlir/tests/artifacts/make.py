"""Makes the artifacts of this folder with jaxlib: NAME.VERSION.bc of each program at several versions, and NAME.mlir,
what jaxlib reads from the newest of them, in the generic form. `export.bin` is what jax.export serializes.

    python make.py        (jax and jaxlib 0.10.2, flatbuffers)
"""

import jax
import jax.numpy as jnp
from jax import export
from jax._src.interpreters import mlir as lowering
from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _stablehlo as stablehlo

PROGRAMS = {
    "control": (
        ["0.9.0", "0.12.0", "0.14.0", "1.17.0"],
        """
module @control attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%n: tensor<i32> loc("n"), %x: tensor<4xf32> {jax.buffer_donor = true, mhlo.layout_mode = "default"})
      -> (tensor<4xf32> {jax.result_info = "result"}, tensor<i1>) {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %r:2 = stablehlo.while(%i = %zero, %y = %x) : tensor<i32>, tensor<4xf32>
      cond {
        %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
      } do {
        %j = stablehlo.add %i, %one : tensor<i32>
        %z = func.call @double(%y) : (tensor<4xf32>) -> tensor<4xf32> loc(callsite("double"("f.py":3:4) at "g.py":5:6))
        stablehlo.return %j, %z : tensor<i32>, tensor<4xf32>
      }
    %odd = stablehlo.constant dense<true> : tensor<i1>
    %s = "stablehlo.if"(%odd) ({
      %t = stablehlo.negate %r#1 : tensor<4xf32>
      stablehlo.return %t : tensor<4xf32>
    }, {
      stablehlo.return %r#1 : tensor<4xf32>
    }) : (tensor<i1>) -> tensor<4xf32>
    %c = "stablehlo.case"(%r#0) ({
      stablehlo.return %s : tensor<4xf32>
    }, {
      %u = stablehlo.constant dense<[1.0, -2.5, 0x7FC00000, 3.0e38]> : tensor<4xf32>
      stablehlo.return %u : tensor<4xf32>
    }) : (tensor<i32>) -> tensor<4xf32>
    return %c, %odd : tensor<4xf32>, tensor<i1>
  }
  func.func private @double(%x: tensor<4xf32>) -> tensor<4xf32> {
    %y = stablehlo.add %x, %x : tensor<4xf32> loc(fused["a", "b.py":1:2])
    return %y : tensor<4xf32>
  }
}
""",
    ),
    "constants": (
        ["0.9.0", "1.17.0"],
        """
module {
  func.func @main() -> tensor<3xi1> {
    %0 = stablehlo.constant dense<[true, false, true]> : tensor<3xi1>
    %1 = stablehlo.constant dense<true> : tensor<9xi1>
    %2 = stablehlo.constant dense<[1, -1, 7, -8]> : tensor<4xi4>
    %3 = stablehlo.constant dense<[1, 15]> : tensor<2xui4>
    %4 = stablehlo.constant dense<[[1, -1], [127, -128]]> : tensor<2x2xi8>
    %5 = stablehlo.constant dense<[0, 65535]> : tensor<2xui16>
    %6 = stablehlo.constant dense<[-9223372036854775808, 1]> : tensor<2xi64>
    %7 = stablehlo.constant dense<[(1.0, 2.0), (-3.0, 0x7F800000)]> : tensor<2xcomplex<f32>>
    %8 = stablehlo.constant dense<1.5> : tensor<2x3xbf16>
    %9 = stablehlo.constant dense<> : tensor<0x4xf64>
    %10 = stablehlo.constant dense<[1.0, -0.0]> : tensor<2xf8E4M3FN>
    %11 = stablehlo.constant dense<2.0> : tensor<f16>
    %12 = stablehlo.constant dense<[true, true, false, true, false, false, true, false, true]> : tensor<9xi1>
    return %0 : tensor<3xi1>
  }
}
""",
    ),
    "records": (
        ["1.17.0"],
        """
module @records {
  func.func private @scale(%x: tensor<f32>) -> tensor<f32> {
    return %x : tensor<f32>
  }
  func.func @main(%a: tensor<2x4x9xf32>, %i: tensor<1x5x2xi32>, %img: tensor<1x8x8x3xf32>, %k: tensor<3x3x3x2xf32>,
      %m: tensor<4x4xf32>, %s: tensor<f32>, %d: tensor<?x4xf32, #stablehlo.bounds<8, ?>>, %t: !stablehlo.token)
      -> (tensor<f32>, !stablehlo.token) {
    %g = "stablehlo.gather"(%a, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0, 1],
      start_index_map = [0, 1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1, 1>}>
      : (tensor<2x4x9xf32>, tensor<1x5x2xi32>) -> tensor<1x5x1xf32>
    %c = stablehlo.convolution(%img, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
      window = {stride = [2, 2], pad = [[1, 1], [0, 2]], reverse = [true, false]}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x8x3xf32>, tensor<3x3x3x2xf32>) -> tensor<1x4x4x2xf32>
    %p = stablehlo.dot_general %m, %m, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT],
      algorithm = <lhs_precision_type = tf32, rhs_precision_type = tf32, accumulation_type = f32, lhs_component_count = 1,
        rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false>
      : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %e = stablehlo.exponential %m {result_accuracy = #stablehlo.result_accuracy<atol = 1.0e-5, rtol = 0.0, ulps = 2,
      mode = #stablehlo.result_accuracy_mode<TOLERANCE>>} : tensor<4x4xf32>
    %f:2 = stablehlo.custom_call @target(%s, %m) {api_version = 4 : i32, backend_config = {flag = true, name = "x", n = 3 : i64},
      called_computations = [@scale], has_side_effect = true, mhlo.frontend_attributes = {key = "value"},
      operand_layouts = [dense<> : tensor<0xindex>, dense<[0, 1]> : tensor<2xindex>],
      output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [1], operand_index = 1,
        operand_tuple_indices = []>],
      result_layouts = [dense<> : tensor<0xindex>, dense<[1, 0]> : tensor<2xindex>]}
      : (tensor<f32>, tensor<4x4xf32>) -> (tensor<f32>, tensor<4x4xf32>)
    %r = stablehlo.reduce(%m init: %s) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x4xf32>, tensor<f32>) -> tensor<f32>
    %w = "stablehlo.reduce_window"(%m, %s) <{padding = dense<[[1, 0], [0, 1]]> : tensor<2x2xi64>,
      window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 1, 1>}> ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %z = stablehlo.maximum %x, %y : tensor<f32>
      stablehlo.return %z : tensor<f32>
    }) : (tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
    %o:2 = "stablehlo.sort"(%m, %e) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>, %u: tensor<f32>, %v: tensor<f32>):
      %z = stablehlo.compare LT, %x, %y, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %z : tensor<i1>
    }) : (tensor<4x4xf32>, tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>)
    %ar = "stablehlo.all_reduce"(%s) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>,
      replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %z = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %z : tensor<f32>
    }) : (tensor<f32>) -> tensor<f32>
    %send = "stablehlo.send"(%s, %t) <{channel_handle = #stablehlo.channel_handle<handle = 5, type = 2>, is_host_transfer = true}>
      : (tensor<f32>, !stablehlo.token) -> !stablehlo.token
    %tt = stablehlo.tuple %s, %m : tuple<tensor<f32>, tensor<4x4xf32>>
    %bits, %state = stablehlo.rng_bit_generator %seed, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)
    return %f#0, %send : tensor<f32>, !stablehlo.token
  }
}
""".replace("    %bits, %state = stablehlo.rng_bit_generator %seed,", "    %seed = stablehlo.constant dense<[1, 2]> : tensor<2xui64>\n    %bits, %state = stablehlo.rng_bit_generator %seed,"),
    ),
    "sharded": (
        ["1.11.0", "1.17.0"],
        """
module @sharded {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  sdy.mesh @one = <[], device_ids=[3]>
  func.func @main(%a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y":(1)2, ?}p1, {?}], replicated={"y":(2)2}>})
      -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<mesh<["x"=2, "y"=4]>, [{}, {"y"}], unreduced={"x"}>}) {
    %0 = sdy.sharding_constraint %a <@mesh, [{"x"}, {}]> : tensor<8x4xf32>
    %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{"x"}, {}]>]
        manual_axes={"x"} (%b: tensor<4x4xf32>) {
      %c = stablehlo.add %b, %b : tensor<4x4xf32>
      sdy.return %c : tensor<4x4xf32>
    } : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %2 = stablehlo.add %1, %1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {}]>]>} : tensor<8x4xf32>
    sdy.sharding_group %2 group_id=5 : tensor<8x4xf32>
    %3 = stablehlo.custom_call @foo(%2) {mhlo.sharding = "{replicated}",
      sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, jk]) {i=8, j=2, k=2} need_replication={k} permutation={i}, custom>}
      : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %4 = sdy.sharding_constraint %3 <@mesh, [{"x"}, {}]> : tensor<8x4xf32>
    %5 = sdy.all_gather [{"x"}, {}] %4 out_sharding=<@mesh, [{}, {}]> : tensor<8x4xf32>
    return %5 : tensor<8x4xf32>
  }
}
""",
    ),
}


def generic(module):
    return module.operation.get_asm(print_generic_op_form=True, enable_debug_info=True, large_elements_limit=None)


for name, (versions, text) in PROGRAMS.items():
    with lowering.make_ir_context() as context:
        for version in versions:
            bytes_ = stablehlo.serialize_portable_artifact(ir.Module.parse(text), version, True)
            with open(f"{name}.{version}.bc", "wb") as file:
                file.write(bytes_)
        with open(f"{name}.mlir", "w") as file:
            file.write(generic(stablehlo.deserialize_portable_artifact(context, bytes_)) + "\n")

exported = export.export(jax.jit(lambda x, y: (jnp.sin(x) @ y, {"sum": y.sum()})))(
    jax.ShapeDtypeStruct((3, 4), jnp.float32), jax.ShapeDtypeStruct((4, 2), jnp.float32)
)
with open("export.bin", "wb") as file:
    file.write(exported.serialize())
(size,) = export.symbolic_shape("n")
polymorphic = export.export(jax.jit(lambda x: x * 2))(jax.ShapeDtypeStruct((size, 4), jnp.int8))
with open("export_polymorphic.bin", "wb") as file:
    file.write(polymorphic.serialize())

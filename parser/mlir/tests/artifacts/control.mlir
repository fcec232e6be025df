#loc2 = loc("n")
#loc3 = loc("-":3:52)
#loc7 = loc("-":7:28)
#loc8 = loc("-":7:40)
#loc26 = loc("-":31:29)
"builtin.module"() <{sym_name = "control"}> ({
  "func.func"() <{arg_attrs = [{}, {jax.buffer_donor = true, mhlo.layout_mode = "default"}], function_type = (tensor<i32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<i1>), res_attrs = [{jax.result_info = "result"}, {}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg1: tensor<i32> loc("n"), %arg2: tensor<4xf32> loc("-":3:52)):
    %1 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32> loc(#loc4)
    %2 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32> loc(#loc5)
    %3:2 = "stablehlo.while"(%1, %arg2) ({
    ^bb0(%arg5: tensor<i32> loc("-":7:28), %arg6: tensor<4xf32> loc("-":7:40)):
      %11 = "stablehlo.compare"(%arg5, %arg1) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1> loc(#loc9)
      "stablehlo.return"(%11) : (tensor<i1>) -> () loc(#loc10)
    }, {
    ^bb0(%arg3: tensor<i32> loc("-":7:28), %arg4: tensor<4xf32> loc("-":7:40)):
      %9 = "stablehlo.add"(%arg3, %2) : (tensor<i32>, tensor<i32>) -> tensor<i32> loc(#loc11)
      %10 = "func.call"(%arg4) <{callee = @double}> : (tensor<4xf32>) -> tensor<4xf32> loc(#loc32)
      "stablehlo.return"(%9, %10) : (tensor<i32>, tensor<4xf32>) -> () loc(#loc14)
    }) : (tensor<i32>, tensor<4xf32>) -> (tensor<i32>, tensor<4xf32>) loc(#loc6)
    %4 = "stablehlo.constant"() <{value = dense<true> : tensor<i1>}> : () -> tensor<i1> loc(#loc15)
    %5 = "stablehlo.if"(%4) ({
      %8 = "stablehlo.negate"(%3#1) : (tensor<4xf32>) -> tensor<4xf32> loc(#loc17)
      "stablehlo.return"(%8) : (tensor<4xf32>) -> () loc(#loc18)
    }, {
      "stablehlo.return"(%3#1) : (tensor<4xf32>) -> () loc(#loc19)
    }) : (tensor<i1>) -> tensor<4xf32> loc(#loc16)
    %6 = "stablehlo.case"(%3#0) ({
      "stablehlo.return"(%5) : (tensor<4xf32>) -> () loc(#loc21)
    }, {
      %7 = "stablehlo.constant"() <{value = dense<[1.000000e+00, -2.500000e+00, 0x7FC00000, 3.000000e+38]> : tensor<4xf32>}> : () -> tensor<4xf32> loc(#loc22)
      "stablehlo.return"(%7) : (tensor<4xf32>) -> () loc(#loc23)
    }) : (tensor<i32>) -> tensor<4xf32> loc(#loc20)
    "func.return"(%6, %4) : (tensor<4xf32>, tensor<i1>) -> () loc(#loc24)
  }) : () -> () loc(#loc1)
  "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "double", sym_visibility = "private"}> ({
  ^bb0(%arg0: tensor<4xf32> loc("-":31:29)):
    %0 = "stablehlo.add"(%arg0, %arg0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc(#loc31)
    "func.return"(%0) : (tensor<4xf32>) -> () loc(#loc29)
  }) : () -> () loc(#loc25)
}) {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} : () -> () loc(#loc)
#loc = loc("-":2:1)
#loc1 = loc("-":3:3)
#loc4 = loc("-":5:13)
#loc5 = loc("-":6:12)
#loc6 = loc("-":7:12)
#loc9 = loc("-":9:14)
#loc10 = loc("-":10:9)
#loc11 = loc("-":12:14)
#loc12 = loc("f.py":3:4)
#loc13 = loc("g.py":5:6)
#loc14 = loc("-":14:9)
#loc15 = loc("-":16:12)
#loc16 = loc("-":17:10)
#loc17 = loc("-":18:12)
#loc18 = loc("-":19:7)
#loc19 = loc("-":21:7)
#loc20 = loc("-":23:10)
#loc21 = loc("-":24:7)
#loc22 = loc("-":26:12)
#loc23 = loc("-":27:7)
#loc24 = loc("-":29:5)
#loc25 = loc("-":31:3)
#loc27 = loc("a")
#loc28 = loc("b.py":1:2)
#loc29 = loc("-":33:5)
#loc30 = loc("double"(#loc12))
#loc31 = loc(fused[#loc27, #loc28])
#loc32 = loc(callsite(#loc30 at #loc13))


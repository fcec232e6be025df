// expected: V0701 stablehlo.while: (C1) the condition is (tensor<i32>) -> (tensor<i32>), of (tensor<i32>)
func.func @main(%a0: tensor<i32>) -> (tensor<i32>) {
  %r = "stablehlo.while"(%a0) ({
  ^bb0(%x0: tensor<i32>):
    stablehlo.return %x0 : tensor<i32>
  }, {
  ^bb0(%x0: tensor<i32>):
    stablehlo.return %x0 : tensor<i32>
  }) : (tensor<i32>) -> tensor<i32>
  return %r : tensor<i32>
}

// -----

// expected: V0701 stablehlo.while: (C1) the condition is (tensor<i64>) -> (tensor<i1>), of (tensor<i32>)
func.func @main(%a0: tensor<i32>) -> (tensor<i32>) {
  %r = "stablehlo.while"(%a0) ({
  ^bb0(%x0: tensor<i64>):
    %c = stablehlo.constant dense<1> : tensor<i64>
    %p = stablehlo.compare LT, %x0, %c : (tensor<i64>, tensor<i64>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }, {
  ^bb0(%x0: tensor<i32>):
    stablehlo.return %x0 : tensor<i32>
  }) : (tensor<i32>) -> tensor<i32>
  return %r : tensor<i32>
}

// -----

// expected: V0701 stablehlo.while: (C2) the body is (tensor<i64>) -> (tensor<i64>), of (tensor<i32>)
func.func @main(%a0: tensor<i32>) -> (tensor<i32>) {
  %r = "stablehlo.while"(%a0) ({
  ^bb0(%x0: tensor<i32>):
    %c = stablehlo.constant dense<1> : tensor<i32>
    %p = stablehlo.compare LT, %x0, %c : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }, {
  ^bb0(%x0: tensor<i64>):
    stablehlo.return %x0 : tensor<i64>
  }) : (tensor<i32>) -> tensor<i32>
  return %r : tensor<i32>
}

// -----

// expected: V0701 stablehlo.while: (C2) the body is (tensor<i32>) -> (tensor<i64>), of (tensor<i32>)
func.func @main(%a0: tensor<i32>) -> (tensor<i32>) {
  %r = "stablehlo.while"(%a0) ({
  ^bb0(%x0: tensor<i32>):
    %c = stablehlo.constant dense<1> : tensor<i32>
    %p = stablehlo.compare LT, %x0, %c : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }, {
  ^bb0(%x0: tensor<i32>):
    %c = stablehlo.convert %x0 : (tensor<i32>) -> tensor<i64>
    stablehlo.return %c : tensor<i64>
  }) : (tensor<i32>) -> tensor<i32>
  return %r : tensor<i32>
}

// -----

// expected: V0701 stablehlo.while: (C3) results are (tensor<i64>), of (tensor<i32>)
func.func @main(%a0: tensor<i32>) -> (tensor<i64>) {
  %r = "stablehlo.while"(%a0) ({
  ^bb0(%x0: tensor<i32>):
    %c = stablehlo.constant dense<1> : tensor<i32>
    %p = stablehlo.compare LT, %x0, %c : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }, {
  ^bb0(%x0: tensor<i32>):
    stablehlo.return %x0 : tensor<i32>
  }) : (tensor<i32>) -> tensor<i64>
  return %r : tensor<i64>
}

// -----

// expected: V0701 stablehlo.if: (C1) a branch takes (tensor<i32>)
func.func @main(%a0: tensor<i1>) -> (tensor<i32>) {
  %r = "stablehlo.if"(%a0) ({
  ^bb0(%x0: tensor<i32>):
    stablehlo.return %x0 : tensor<i32>
  }, {
    %c = stablehlo.constant dense<1> : tensor<i32>
    stablehlo.return %c : tensor<i32>
  }) : (tensor<i1>) -> tensor<i32>
  return %r : tensor<i32>
}

// -----

// expected: V0701 stablehlo.if: (C2) branches give (tensor<i32>) and (tensor<i64>)
func.func @main(%a0: tensor<i1>) -> (tensor<i32>) {
  %r = "stablehlo.if"(%a0) ({
    %c = stablehlo.constant dense<1> : tensor<i32>
    stablehlo.return %c : tensor<i32>
  }, {
    %c = stablehlo.constant dense<1> : tensor<i64>
    stablehlo.return %c : tensor<i64>
  }) : (tensor<i1>) -> tensor<i32>
  return %r : tensor<i32>
}

// -----

// expected: V0701 stablehlo.if: (C3) results are (tensor<i64>), and branches give (tensor<i32>)
func.func @main(%a0: tensor<i1>) -> (tensor<i64>) {
  %r = "stablehlo.if"(%a0) ({
    %c = stablehlo.constant dense<1> : tensor<i32>
    stablehlo.return %c : tensor<i32>
  }, {
    %c = stablehlo.constant dense<1> : tensor<i32>
    stablehlo.return %c : tensor<i32>
  }) : (tensor<i1>) -> tensor<i64>
  return %r : tensor<i64>
}

// -----

// expected: V0701 stablehlo.if: (I1) the predicate is tensor<i32>
func.func @main(%a0: tensor<i32>) -> (tensor<i32>) {
  %r = "stablehlo.if"(%a0) ({
    %c = stablehlo.constant dense<1> : tensor<i32>
    stablehlo.return %c : tensor<i32>
  }, {
    %c = stablehlo.constant dense<1> : tensor<i32>
    stablehlo.return %c : tensor<i32>
  }) : (tensor<i32>) -> tensor<i32>
  return %r : tensor<i32>
}

// -----

// expected: V0701 stablehlo.case: (C1) there is no branch
func.func @main(%a0: tensor<i32>) -> (tensor<i32>) {
  %r = "stablehlo.case"(%a0) : (tensor<i32>) -> tensor<i32>
  return %r : tensor<i32>
}

// -----

// expected: V0701 stablehlo.case: (C2) a branch takes (tensor<i32>)
func.func @main(%a0: tensor<i32>) -> (tensor<i32>) {
  %r = "stablehlo.case"(%a0) ({
    %c = stablehlo.constant dense<1> : tensor<i32>
    stablehlo.return %c : tensor<i32>
  }, {
  ^bb0(%x0: tensor<i32>):
    stablehlo.return %x0 : tensor<i32>
  }) : (tensor<i32>) -> tensor<i32>
  return %r : tensor<i32>
}

// -----

// expected: V0701 stablehlo.case: (C3) branches give (tensor<i32>) and (tensor<2xi32>)
func.func @main(%a0: tensor<i32>) -> (tensor<i32>) {
  %r = "stablehlo.case"(%a0) ({
    %c = stablehlo.constant dense<1> : tensor<i32>
    stablehlo.return %c : tensor<i32>
  }, {
    %c = stablehlo.constant dense<1> : tensor<2xi32>
    stablehlo.return %c : tensor<2xi32>
  }) : (tensor<i32>) -> tensor<i32>
  return %r : tensor<i32>
}

// -----

// expected: V0701 stablehlo.case: (C4) results are (tensor<2xi32>), and branches give (tensor<i32>)
func.func @main(%a0: tensor<i32>) -> (tensor<2xi32>) {
  %r = "stablehlo.case"(%a0) ({
    %c = stablehlo.constant dense<1> : tensor<i32>
    stablehlo.return %c : tensor<i32>
  }, {
    %c = stablehlo.constant dense<1> : tensor<i32>
    stablehlo.return %c : tensor<i32>
  }) : (tensor<i32>) -> tensor<2xi32>
  return %r : tensor<2xi32>
}

// -----

// expected: V0701 stablehlo.case: (I1) the index is tensor<i64>
func.func @main(%a0: tensor<i64>) -> (tensor<i32>) {
  %r = "stablehlo.case"(%a0) ({
    %c = stablehlo.constant dense<1> : tensor<i32>
    stablehlo.return %c : tensor<i32>
  }) : (tensor<i64>) -> tensor<i32>
  return %r : tensor<i32>
}

// -----

// expected: V0701 stablehlo.case: (I1) the index is tensor<1xi32>
func.func @main(%a0: tensor<1xi32>) -> (tensor<i32>) {
  %r = "stablehlo.case"(%a0) ({
    %c = stablehlo.constant dense<1> : tensor<i32>
    stablehlo.return %c : tensor<i32>
  }) : (tensor<1xi32>) -> tensor<i32>
  return %r : tensor<i32>
}

// -----

// expected: V0701 stablehlo.composite: (C1) the name "op" has no namespace
func.func private @f(%x: tensor<2xf32>) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}
func.func @main(%a0: tensor<2xf32>) -> (tensor<2xf32>) {
  %r = "stablehlo.composite"(%a0) <{name = "op", decomposition = @f, composite_attributes = {}}> : (tensor<2xf32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

// expected: V0701 stablehlo.composite: (C1) the name "1.op" has no namespace
func.func private @f(%x: tensor<2xf32>) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}
func.func @main(%a0: tensor<2xf32>) -> (tensor<2xf32>) {
  %r = "stablehlo.composite"(%a0) <{name = "1.op", decomposition = @f, composite_attributes = {}}> : (tensor<2xf32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

// expected: V0701 stablehlo.composite: (C2) the module has no function @g
func.func private @f(%x: tensor<2xf32>) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}
func.func @main(%a0: tensor<2xf32>) -> (tensor<2xf32>) {
  %r = "stablehlo.composite"(%a0) <{name = "my.op", decomposition = @g, composite_attributes = {}}> : (tensor<2xf32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

// expected: V0701 stablehlo.composite: (C3) operands are (tensor<3xf32>), of (tensor<2xf32>)
func.func private @f(%x: tensor<2xf32>) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}
func.func @main(%a0: tensor<3xf32>) -> (tensor<2xf32>) {
  %r = "stablehlo.composite"(%a0) <{name = "my.op", decomposition = @f, composite_attributes = {}}> : (tensor<3xf32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

// expected: V0701 stablehlo.composite: (C4) results are (tensor<3xf32>), of (tensor<2xf32>)
func.func private @f(%x: tensor<2xf32>) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}
func.func @main(%a0: tensor<2xf32>) -> (tensor<3xf32>) {
  %r = "stablehlo.composite"(%a0) <{name = "my.op", decomposition = @f, composite_attributes = {}}> : (tensor<2xf32>) -> tensor<3xf32>
  return %r : tensor<3xf32>
}

// -----

// expected: V0701 stablehlo.tuple: (C1) the result is (tuple<tensor<2xf32>, tensor<i64>>), of (tensor<2xf32>, tensor<i32>)
func.func @main(%a0: tensor<2xf32>, %a1: tensor<i32>) -> (tuple<tensor<2xf32>, tensor<i64>>) {
  %r = "stablehlo.tuple"(%a0, %a1) : (tensor<2xf32>, tensor<i32>) -> tuple<tensor<2xf32>, tensor<i64>>
  return %r : tuple<tensor<2xf32>, tensor<i64>>
}

// -----

// expected: V0701 stablehlo.get_tuple_element: (C1) index 2 of a tuple of 2
func.func @main(%a0: tuple<tensor<2xf32>, tensor<i32>>) -> (tensor<i32>) {
  %r = "stablehlo.get_tuple_element"(%a0) <{index = 2 : i32}> : (tuple<tensor<2xf32>, tensor<i32>>) -> tensor<i32>
  return %r : tensor<i32>
}

// -----

// expected: V0701 stablehlo.get_tuple_element: (C2) element 0 is tensor<2xf32>, not tensor<i32>
func.func @main(%a0: tuple<tensor<2xf32>, tensor<i32>>) -> (tensor<i32>) {
  %r = "stablehlo.get_tuple_element"(%a0) <{index = 0 : i32}> : (tuple<tensor<2xf32>, tensor<i32>>) -> tensor<i32>
  return %r : tensor<i32>
}

// -----

// expected: V0701 stablehlo.get_tuple_element: (I1) the operand is tensor<2xf32>
func.func @main(%a0: tensor<2xf32>) -> (tensor<2xf32>) {
  %r = "stablehlo.get_tuple_element"(%a0) <{index = 0 : i32}> : (tensor<2xf32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

// expected: V0701 stablehlo.optimization_barrier: (C1) results are (tensor<2xf32>, tensor<i64>), of (tensor<2xf32>, tensor<i32>)
func.func @main(%a0: tensor<2xf32>, %a1: tensor<i32>) -> (tensor<2xf32>, tensor<i64>) {
  %r:2 = "stablehlo.optimization_barrier"(%a0, %a1) : (tensor<2xf32>, tensor<i32>) -> (tensor<2xf32>, tensor<i64>)
  return %r#0, %r#1 : tensor<2xf32>, tensor<i64>
}

// -----

// expected: V0701 stablehlo.after_all: (I1) operands are (tensor<f32>), and must be tokens
func.func @main(%a0: tensor<f32>) -> (!stablehlo.token) {
  %r = "stablehlo.after_all"(%a0) : (tensor<f32>) -> !stablehlo.token
  return %r : !stablehlo.token
}

// -----

// expected: V0701 stablehlo.infeed: (C1) there is no result
func.func @main(%a0: !stablehlo.token) -> () {
  "stablehlo.infeed"(%a0) <{infeed_config = ""}> : (!stablehlo.token) -> ()
  return
}

// -----

// expected: V0701 stablehlo.infeed: (C2) results are (!stablehlo.token, !stablehlo.token), and all but the last must be tensors
func.func @main(%a0: !stablehlo.token) -> (!stablehlo.token, !stablehlo.token) {
  %r:2 = "stablehlo.infeed"(%a0) <{infeed_config = ""}> : (!stablehlo.token) -> (!stablehlo.token, !stablehlo.token)
  return %r#0, %r#1 : !stablehlo.token, !stablehlo.token
}

// -----

// expected: V0701 stablehlo.infeed: (C3) the last result is tensor<2xf32>, no token
func.func @main(%a0: !stablehlo.token) -> (tensor<2xf32>, tensor<2xf32>) {
  %r:2 = "stablehlo.infeed"(%a0) <{infeed_config = ""}> : (!stablehlo.token) -> (tensor<2xf32>, tensor<2xf32>)
  return %r#0, %r#1 : tensor<2xf32>, tensor<2xf32>
}

// -----

// expected: V0701 stablehlo.infeed: (I1) the operand is tensor<f32>, no token
func.func @main(%a0: tensor<f32>) -> (tensor<2xf32>, !stablehlo.token) {
  %r:2 = "stablehlo.infeed"(%a0) <{infeed_config = ""}> : (tensor<f32>) -> (tensor<2xf32>, !stablehlo.token)
  return %r#0, %r#1 : tensor<2xf32>, !stablehlo.token
}

// -----

// expected: V0701 stablehlo.outfeed: (I2) the last operand is tensor<f32>, no token
func.func @main(%a0: tensor<f32>, %a1: tensor<f32>) -> (!stablehlo.token) {
  %r = "stablehlo.outfeed"(%a0, %a1) <{outfeed_config = ""}> : (tensor<f32>, tensor<f32>) -> !stablehlo.token
  return %r : !stablehlo.token
}

// -----

// expected: V0701 stablehlo.sort: (C1) there is no input
func.func @main() -> () {
  "stablehlo.sort"() <{dimension = 0 : i64}> ({
    %c = stablehlo.constant dense<true> : tensor<i1>
    stablehlo.return %c : tensor<i1>
  }) : () -> ()
  return
}

// -----

// expected: V0701 stablehlo.async_start: (C1) its body has 3 operations, not one and a return
func.func @main(%a0: tensor<4xf32>) -> (!stablehlo.future<tensor<2xf32>>) {
  %r = "stablehlo.async_start"(%a0) ({
  ^bb0(%x0: tensor<4xf32>):
    %s = stablehlo.slice %x0 [0:2] : (tensor<4xf32>) -> tensor<2xf32>
    %t = stablehlo.add %s, %s : tensor<2xf32>
    stablehlo.return %t : tensor<2xf32>
  }) : (tensor<4xf32>) -> !stablehlo.future<tensor<2xf32>>
  return %r : !stablehlo.future<tensor<2xf32>>
}

// -----

// expected: V0701 stablehlo.async_start: (C1) its body has 1 operations, not one and a return
func.func @main(%a0: tensor<4xf32>) -> (!stablehlo.future<tensor<4xf32>>) {
  %r = "stablehlo.async_start"(%a0) ({
  ^bb0(%x0: tensor<4xf32>):
    stablehlo.return %x0 : tensor<4xf32>
  }) : (tensor<4xf32>) -> !stablehlo.future<tensor<4xf32>>
  return %r : !stablehlo.future<tensor<4xf32>>
}

// -----

// expected: V0701 stablehlo.async_start: (C2) its body is negate
func.func @main(%a0: tensor<4xf32>) -> (!stablehlo.future<tensor<4xf32>>) {
  %r = "stablehlo.async_start"(%a0) ({
  ^bb0(%x0: tensor<4xf32>):
    %s = stablehlo.negate %x0 : tensor<4xf32>
    stablehlo.return %s : tensor<4xf32>
  }) : (tensor<4xf32>) -> !stablehlo.future<tensor<4xf32>>
  return %r : !stablehlo.future<tensor<4xf32>>
}

// -----

// expected: V0701 stablehlo.async_start: (C3) operands are (tensor<5xf32>), and its body takes (tensor<4xf32>)
func.func @main(%a0: tensor<5xf32>) -> (!stablehlo.future<tensor<2xf32>>) {
  %r = "stablehlo.async_start"(%a0) ({
  ^bb0(%x0: tensor<4xf32>):
    %s = stablehlo.slice %x0 [0:2] : (tensor<4xf32>) -> tensor<2xf32>
    stablehlo.return %s : tensor<2xf32>
  }) : (tensor<5xf32>) -> !stablehlo.future<tensor<2xf32>>
  return %r : !stablehlo.future<tensor<2xf32>>
}

// -----

// expected: V0701 stablehlo.async_start: (C4) the result is (!stablehlo.future<tensor<3xf32>>), and its body gives (tensor<2xf32>)
func.func @main(%a0: tensor<4xf32>) -> (!stablehlo.future<tensor<3xf32>>) {
  %r = "stablehlo.async_start"(%a0) ({
  ^bb0(%x0: tensor<4xf32>):
    %s = stablehlo.slice %x0 [0:2] : (tensor<4xf32>) -> tensor<2xf32>
    stablehlo.return %s : tensor<2xf32>
  }) : (tensor<4xf32>) -> !stablehlo.future<tensor<3xf32>>
  return %r : !stablehlo.future<tensor<3xf32>>
}

// -----

// expected: V0701 stablehlo.async_done: (C1) results are (tensor<3xf32>), of a future of (tensor<2xf32>)
func.func @main(%a0: tensor<4xf32>) -> (tensor<3xf32>) {
  %f = "stablehlo.async_start"(%a0) ({
  ^bb0(%x0: tensor<4xf32>):
    %s = stablehlo.slice %x0 [0:2] : (tensor<4xf32>) -> tensor<2xf32>
    stablehlo.return %s : tensor<2xf32>
  }) : (tensor<4xf32>) -> !stablehlo.future<tensor<2xf32>>
  %r = "stablehlo.async_done"(%f) : (!stablehlo.future<tensor<2xf32>>) -> tensor<3xf32>
  return %r : tensor<3xf32>
}

// -----

// expected: V0701 stablehlo.async_done: (I1) the operand is tensor<4xf32>, no future
func.func @main(%a0: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "stablehlo.async_done"(%a0) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

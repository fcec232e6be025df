// expected: V0701 stablehlo.add: (C3 of quantized types) tensor<2x2x!quant.uniform<i8<5:5>:f32, 0.1:5>> has a range of storage that is empty, or wider than its storage
func.func @main(%a0: tensor<2x2x!quant.uniform<i8<5:5>:f32, 0.1:5>>, %a1: tensor<2x2x!quant.uniform<i8<5:5>:f32, 0.1:5>>) -> (tensor<2x2x!quant.uniform<i8<5:5>:f32, 0.1:5>>) {
  %r = "stablehlo.add"(%a0, %a1) : (tensor<2x2x!quant.uniform<i8<5:5>:f32, 0.1:5>>, tensor<2x2x!quant.uniform<i8<5:5>:f32, 0.1:5>>) -> tensor<2x2x!quant.uniform<i8<5:5>:f32, 0.1:5>>
  return %r : tensor<2x2x!quant.uniform<i8<5:5>:f32, 0.1:5>>
}

// -----

// expected: V0701 stablehlo.add: (C3 of quantized types) tensor<2x2x!quant.uniform<i8<-129:127>:f32, 0.1:5>> has a range of storage that is empty, or wider than its storage
func.func @main(%a0: tensor<2x2x!quant.uniform<i8<-129:127>:f32, 0.1:5>>, %a1: tensor<2x2x!quant.uniform<i8<-129:127>:f32, 0.1:5>>) -> (tensor<2x2x!quant.uniform<i8<-129:127>:f32, 0.1:5>>) {
  %r = "stablehlo.add"(%a0, %a1) : (tensor<2x2x!quant.uniform<i8<-129:127>:f32, 0.1:5>>, tensor<2x2x!quant.uniform<i8<-129:127>:f32, 0.1:5>>) -> tensor<2x2x!quant.uniform<i8<-129:127>:f32, 0.1:5>>
  return %r : tensor<2x2x!quant.uniform<i8<-129:127>:f32, 0.1:5>>
}

// -----

// expected: V0701 stablehlo.add: (C5 of quantized types) tensor<2x2x!quant.uniform<i8:f32, 0.0>> has a scale that is not positive
func.func @main(%a0: tensor<2x2x!quant.uniform<i8:f32, 0.0:0>>, %a1: tensor<2x2x!quant.uniform<i8:f32, 0.0:0>>) -> (tensor<2x2x!quant.uniform<i8:f32, 0.0:0>>) {
  %r = "stablehlo.add"(%a0, %a1) : (tensor<2x2x!quant.uniform<i8:f32, 0.0:0>>, tensor<2x2x!quant.uniform<i8:f32, 0.0:0>>) -> tensor<2x2x!quant.uniform<i8:f32, 0.0:0>>
  return %r : tensor<2x2x!quant.uniform<i8:f32, 0.0:0>>
}

// -----

// expected: V0701 stablehlo.add: (C5 of quantized types) tensor<2x2x!quant.uniform<i8:f32, -0.5>> has a scale that is not positive
func.func @main(%a0: tensor<2x2x!quant.uniform<i8:f32, -0.5:0>>, %a1: tensor<2x2x!quant.uniform<i8:f32, -0.5:0>>) -> (tensor<2x2x!quant.uniform<i8:f32, -0.5:0>>) {
  %r = "stablehlo.add"(%a0, %a1) : (tensor<2x2x!quant.uniform<i8:f32, -0.5:0>>, tensor<2x2x!quant.uniform<i8:f32, -0.5:0>>) -> tensor<2x2x!quant.uniform<i8:f32, -0.5:0>>
  return %r : tensor<2x2x!quant.uniform<i8:f32, -0.5:0>>
}

// -----

// expected: V0701 stablehlo.add: (C5 of quantized types) tensor<2x2x!quant.uniform<i8:f32:0, {0.5, -0.5}>> has a scale that is not positive
func.func @main(%a0: tensor<2x2x!quant.uniform<i8:f32:0, {0.5,-0.5}>>, %a1: tensor<2x2x!quant.uniform<i8:f32:0, {0.5,-0.5}>>) -> (tensor<2x2x!quant.uniform<i8:f32:0, {0.5,-0.5}>>) {
  %r = "stablehlo.add"(%a0, %a1) : (tensor<2x2x!quant.uniform<i8:f32:0, {0.5,-0.5}>>, tensor<2x2x!quant.uniform<i8:f32:0, {0.5,-0.5}>>) -> tensor<2x2x!quant.uniform<i8:f32:0, {0.5,-0.5}>>
  return %r : tensor<2x2x!quant.uniform<i8:f32:0, {0.5,-0.5}>>
}

// -----

// expected: V0701 stablehlo.add: (C6 of quantized types) tensor<2x2x!quant.uniform<i8:f32, inf>> has a scale that is not finite
func.func @main(%a0: tensor<2x2x!quant.uniform<i8:f32, 0x7FF0000000000000:0>>, %a1: tensor<2x2x!quant.uniform<i8:f32, 0x7FF0000000000000:0>>) -> (tensor<2x2x!quant.uniform<i8:f32, 0x7FF0000000000000:0>>) {
  %r = "stablehlo.add"(%a0, %a1) : (tensor<2x2x!quant.uniform<i8:f32, 0x7FF0000000000000:0>>, tensor<2x2x!quant.uniform<i8:f32, 0x7FF0000000000000:0>>) -> tensor<2x2x!quant.uniform<i8:f32, 0x7FF0000000000000:0>>
  return %r : tensor<2x2x!quant.uniform<i8:f32, 0x7FF0000000000000:0>>
}

// -----

// expected: V0701 stablehlo.add: (C7 of quantized types) tensor<2x2x!quant.uniform<i8:f32, 0.1:128>> has a zero point out of the range of storage
func.func @main(%a0: tensor<2x2x!quant.uniform<i8:f32, 0.1:128>>, %a1: tensor<2x2x!quant.uniform<i8:f32, 0.1:128>>) -> (tensor<2x2x!quant.uniform<i8:f32, 0.1:128>>) {
  %r = "stablehlo.add"(%a0, %a1) : (tensor<2x2x!quant.uniform<i8:f32, 0.1:128>>, tensor<2x2x!quant.uniform<i8:f32, 0.1:128>>) -> tensor<2x2x!quant.uniform<i8:f32, 0.1:128>>
  return %r : tensor<2x2x!quant.uniform<i8:f32, 0.1:128>>
}

// -----

// expected: V0701 stablehlo.add: (C7 of quantized types) tensor<2x2x!quant.uniform<i8<-10:10>:f32, 0.1:11>> has a zero point out of the range of storage
func.func @main(%a0: tensor<2x2x!quant.uniform<i8<-10:10>:f32, 0.1:11>>, %a1: tensor<2x2x!quant.uniform<i8<-10:10>:f32, 0.1:11>>) -> (tensor<2x2x!quant.uniform<i8<-10:10>:f32, 0.1:11>>) {
  %r = "stablehlo.add"(%a0, %a1) : (tensor<2x2x!quant.uniform<i8<-10:10>:f32, 0.1:11>>, tensor<2x2x!quant.uniform<i8<-10:10>:f32, 0.1:11>>) -> tensor<2x2x!quant.uniform<i8<-10:10>:f32, 0.1:11>>
  return %r : tensor<2x2x!quant.uniform<i8<-10:10>:f32, 0.1:11>>
}

// -----

// expected: V0701 stablehlo.add: (C11 of quantized types) tensor<2x2x!quant.uniform<i8:f32:-1, {0.1}>> has a negative quantized dimension
func.func @main(%a0: tensor<2x2x!quant.uniform<i8:f32:-1, {0.1}>>, %a1: tensor<2x2x!quant.uniform<i8:f32:-1, {0.1}>>) -> (tensor<2x2x!quant.uniform<i8:f32:-1, {0.1}>>) {
  %r = "stablehlo.add"(%a0, %a1) : (tensor<2x2x!quant.uniform<i8:f32:-1, {0.1}>>, tensor<2x2x!quant.uniform<i8:f32:-1, {0.1}>>) -> tensor<2x2x!quant.uniform<i8:f32:-1, {0.1}>>
  return %r : tensor<2x2x!quant.uniform<i8:f32:-1, {0.1}>>
}

// -----

// expected: V0701 stablehlo.add: (C12 of quantized types) tensor<2x2x!quant.uniform<i8:f32:2, {0.1, 0.2}>> has a quantized dimension beyond its rank
func.func @main(%a0: tensor<2x2x!quant.uniform<i8:f32:2, {0.1,0.2}>>, %a1: tensor<2x2x!quant.uniform<i8:f32:2, {0.1,0.2}>>) -> (tensor<2x2x!quant.uniform<i8:f32:2, {0.1,0.2}>>) {
  %r = "stablehlo.add"(%a0, %a1) : (tensor<2x2x!quant.uniform<i8:f32:2, {0.1,0.2}>>, tensor<2x2x!quant.uniform<i8:f32:2, {0.1,0.2}>>) -> tensor<2x2x!quant.uniform<i8:f32:2, {0.1,0.2}>>
  return %r : tensor<2x2x!quant.uniform<i8:f32:2, {0.1,0.2}>>
}

// -----

// expected: V0701 stablehlo.add: (C13 of quantized types) tensor<2x2x!quant.uniform<i8:f32:1, {0.1, 0.2, 0.3}>> has another number of scales than of slices
func.func @main(%a0: tensor<2x2x!quant.uniform<i8:f32:1, {0.1,0.2,0.3}>>, %a1: tensor<2x2x!quant.uniform<i8:f32:1, {0.1,0.2,0.3}>>) -> (tensor<2x2x!quant.uniform<i8:f32:1, {0.1,0.2,0.3}>>) {
  %r = "stablehlo.add"(%a0, %a1) : (tensor<2x2x!quant.uniform<i8:f32:1, {0.1,0.2,0.3}>>, tensor<2x2x!quant.uniform<i8:f32:1, {0.1,0.2,0.3}>>) -> tensor<2x2x!quant.uniform<i8:f32:1, {0.1,0.2,0.3}>>
  return %r : tensor<2x2x!quant.uniform<i8:f32:1, {0.1,0.2,0.3}>>
}

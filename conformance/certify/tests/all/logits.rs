//! Softmax and cross entropy of generated logits, whose bounds need that the maximum was taken away.

/// How a program takes the maximum away.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
    /// As the report has it: a maximum, broadcast.
    Plain,
    /// As JAX does: not less than minus infinity, 0 if it is not finite, with the dimension kept.
    Jax,
    /// Through layouts that are not those of the operand, in a fusion.
    Transposed,
}

/// Logits of 8 rows and 10 columns in some type, with what programs make of them.
pub(crate) fn logits(ty: &str, scale: f64, form: Form) -> String {
    let max = match form {
        Form::Plain => "mb = TY[8,10] broadcast(m), dimensions={0}",
        Form::Jax => {
            "low8 = TY[8] broadcast(low), dimensions={}\n mm = TY[8] maximum(low8, m)\n fin = pred[8] is-finite(mm)\n z8 = TY[8] broadcast(zero), dimensions={}
 ms = TY[8] select(fin, mm, z8)\n m1 = TY[8,1] reshape(ms)\n m2 = TY[8] reshape(m1)\n mb = TY[8,10] broadcast(m2), dimensions={0}"
        }
        Form::Transposed => {
            "ma = TY[10,8] broadcast(m), dimensions={1}\n mb = TY[8,10] transpose(ma), dimensions={1,0}"
        }
    };
    let difference = match form {
        Form::Plain | Form::Jax => "s = TY[8,10] subtract(x, mb)",
        Form::Transposed => "s = TY[8,10] fusion(mb, x), kind=kLoop, calls=less",
    };
    let text = format!(
        "HloModule m
max {{ a = TY[] parameter(0)\n b = TY[] parameter(1)\n ROOT c = TY[] maximum(a, b) }}
add {{ a = TY[] parameter(0)\n b = TY[] parameter(1)\n ROOT c = TY[] add(a, b) }}
less {{ a = TY[8,10] parameter(0)\n b = TY[8,10] parameter(1)\n ROOT c = TY[8,10] subtract(b, a) }}
ENTRY e {{
 w32 = f32[8,16] parameter(0)\n v32 = f32[16,10] parameter(1)\n hot32 = f32[8,10] parameter(2)
 w = TY[8,16] convert(w32)\n v = TY[16,10] convert(v32)\n hot = TY[8,10] convert(hot32)
 zero = TY[] constant(0)\n low = TY[] constant(-inf)\n c = TY[] constant({scale})\n cb = TY[8,10] broadcast(c), dimensions={{}}
 d = TY[8,10] dot(w, v), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
 x = TY[8,10] multiply(d, cb)
 m = TY[8] reduce(x, low), dimensions={{1}}, to_apply=max
 {max}
 {difference}
 e = TY[8,10] exponential(s)
 t = TY[8] reduce(e, zero), dimensions={{1}}, to_apply=add
 l = TY[8] log(t)\n lse = TY[8] add(l, m)
 lb = TY[8,10] broadcast(l), dimensions={{0}}\n y = TY[8,10] subtract(s, lb)\n p = TY[8,10] exponential(y)
 tb = TY[8,10] broadcast(t), dimensions={{0}}\n q = TY[8,10] divide(e, tb)
 chosen = TY[8,10] multiply(hot, y)\n sum = TY[] reduce(chosen, zero), dimensions={{0,1}}, to_apply=add\n loss = TY[] negate(sum)
 g = TY[8,10] subtract(p, hot)\n vt = TY[10,16] transpose(v), dimensions={{1,0}}\n gw = TY[8,16] dot(g, vt), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
 ROOT r = (TY[8,10], TY[8], TY[8,10], TY[8,10], TY[], TY[8,16], TY[8]) tuple(e, t, p, q, loss, gw, lse) }}"
    );
    text.replace("TY", ty)
}

/// The operands of [`logits`].
pub(crate) fn inputs(seed: u64) -> [Vec<f32>; 3] {
    let hot = (0..80).map(|i| f32::from(u8::from(i % 10 == i / 10))).collect();
    [some(128, seed), some(160, seed + 50), hot]
}

/// Numbers between -1 and 1.
pub(crate) fn some(n: usize, seed: u64) -> Vec<f32> {
    let next = |i: usize| hlo::elided::splitmix64(seed.wrapping_mul(1 << 20).wrapping_add(i as u64)) >> 40;
    (0..n).map(|i| next(i) as f32 / (1 << 23) as f32 - 1.0).collect()
}

//! Sorts, scatters, transforms and the like at every level and for every architecture.

use crate::support;
use crate::support::Tolerance;
use hlo::ArrayLiteral;
use hlo_gpu::arch::Arch;
use hlo_gpu::compile::Options;

const LESS: &str = "less {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT l = pred[] compare(a, b), direction=LT\n}\nadd {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = f32[] add(a, b)\n}\n";

const PROGRAMS: [&str; 8] = [
    "  x = f32[2500] parameter(0)\n  ROOT s = f32[2500] sort(x), dimensions={0}, to_apply=less",
    "  x = f32[2,1500] parameter(0)\n  ROOT t = (f32[2,9], s32[2,9]) topk(x), k=9, largest=true",
    "  x = f32[9] parameter(0)\n  i = s32[80,1] parameter(1)\n  u = f32[80] parameter(2)\n  ROOT s = f32[9] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add",
    "  x = s32[9] parameter(0)\n  i = s32[80,1] parameter(1)\n  u = s32[80] parameter(2)\n  ROOT s = s32[9] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=max",
    "  x = f32[3,60] parameter(0)\n  ROOT f = c64[3,31] fft(x), fft_type=RFFT, fft_length={60}",
    "  s = u64[3] parameter(0)\n  ROOT r = (u64[3], f16[50]) rng-bit-generator(s), algorithm=rng_philox",
    "  x = f32[5,5] parameter(0)\n  t = f32[5,5] transpose(x), dimensions={1,0}\n  d = f32[5,5] add(x, t)\n  i = s32[5,5] iota(), iota_dimension=0\n  j = s32[5,5] iota(), iota_dimension=1\n  e = pred[5,5] compare(i, j), direction=EQ\n  f = f32[5,5] convert(e)\n  k = f32[] constant(30)\n  b = f32[5,5] broadcast(k), dimensions={}\n  m = f32[5,5] multiply(f, b)\n  a = f32[5,5] add(d, m)\n  c = f32[5,5] cholesky(a), lower=true\n  ROOT r = f32[5,5] triangular-solve(c, x), left_side=true, lower=true, unit_diagonal=false, transpose_a=ADJOINT",
    "  x = bf16[70,40] parameter(0)\n  t = bf16[40,70] transpose(x), dimensions={1,0}\n  ROOT c = f32[40,70] convert(t)",
];

#[test]
fn all_levels_and_architectures() {
    let max =
        "max {\n  a = s32[] parameter(0)\n  b = s32[] parameter(1)\n  ROOT s = s32[] maximum(a, b)\n}\n";
    for body in PROGRAMS {
        let text = format!("HloModule m\n{LESS}{max}ENTRY e {{\n{body}\n}}\n");
        let module = support::parse(&text);
        let arguments = support::arguments(&module, 1);
        let expected: Vec<ArrayLiteral> =
            hlo_interp::Interpreter::new(&module, hlo_interp::Options::default())
                .run(arguments.iter().cloned().map(hlo_interp::Value::from_literal).collect())
                .unwrap()
                .arrays()
                .into_iter()
                .map(hlo_interp::value::Tensor::to_literal)
                .collect();
        let levels = [0, 1, 3].map(|level| (level, Arch::Sm90));
        let architectures = Arch::ALL.map(|arch| (2, arch));
        for (opt_level, arch) in levels.into_iter().chain(architectures) {
            let options = Options { arch, opt_level, ..Options::default() };
            let program = support::compiled_with(&module, &options);
            let got = support::interpreted(&program, &arguments);
            for (a, b) in got.iter().zip(&expected) {
                support::assert_close(a, b, Tolerance(2e-6), &format!("level {opt_level}, {arch}:\n{text}"));
            }
        }
    }
}

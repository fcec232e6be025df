//! Dimensions shrunk and dropped through instructions of every kind.

use hlo::verify::verify;
use hlo::{Opcode, Shape};

use super::{candidate, generated, run};
use crate::reduce::Candidate;
use crate::reduce::moves::MOVES;
use crate::reduce::program::{Tidy, all_instructions, finished};
use crate::reduce::search::Context;
use hlo_generate::generate;

/// All programs that the edits of a move make, with the number of edits that applied but gave something that
/// does not verify.
fn all(c: &Candidate, done: &str) -> (Vec<Candidate>, usize) {
    let c = finished(c, Tidy::Parameters);
    let context = Context::new(&c, 1 << 16);
    let mut programs = Vec::new();
    let mut invalid = 0;
    for m in MOVES.iter().filter(|m| m.done == done) {
        for edit in (m.plan)(&context) {
            let mut c = c.clone();
            if edit(&mut c) {
                let c = finished(&c, Tidy::Parameters);
                let shapes = c.inputs.iter().all(|device| {
                    let arrays = hlo_engines::inputs::parameter_arrays(&c.module);
                    arrays.len() == device.len()
                        && arrays.iter().zip(device).all(|(a, b)| a.same_dims(&b.shape()))
                });
                assert!(shapes, "inputs do not fit:\n{}", crate::reduce::text(&c.module));
                if verify(&c.module).has_errors() {
                    invalid += 1;
                } else {
                    programs.push(c);
                }
            }
        }
    }
    (programs, invalid)
}

fn shapes(c: &Candidate) -> String {
    let shape = |s: &Shape| s.without_layout().to_string();
    all_instructions(&c.module).map(|id| shape(&c.module.instr(id).shape)).collect::<Vec<_>>().join(" ")
}

fn shrinks(instructions: &str, expected: &[&str]) {
    changes("dimensions shrunk", instructions, expected);
}

fn changes(done: &str, instructions: &str, expected: &[&str]) {
    let add = "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }";
    let add = if instructions.contains("to_apply") { add } else { "" };
    let c = candidate(&format!("HloModule m\n{add}\nENTRY main {{\n{instructions}\n}}\n"));
    let (programs, _) = all(&c, done);
    let texts: Vec<String> =
        programs.iter().map(|c| format!("{} | {}", shapes(c), crate::reduce::text(&c.module))).collect();
    for e in expected {
        assert!(texts.iter().any(|t| t.contains(e)), "none has `{e}`:\n{}", texts.join("\n"));
    }
    for c in &programs {
        assert!(run(c).is_some(), "does not run:\n{}", crate::reduce::text(&c.module));
    }
}

#[test]
fn sizes_follow_through_movement() {
    shrinks(
        "p = f32[8,6] parameter(0)\n t = f32[6,8] transpose(p), dimensions={1,0}\n ROOT n = f32[6,8] negate(t)",
        &["f32[1,6] f32[6,1] f32[6,1]", "f32[8,3] f32[3,8] f32[3,8]"],
    );
    shrinks(
        "p = f32[6] parameter(0)\n ROOT r = f32[2,3] reshape(p)",
        &["f32[3] f32[1,3]", "f32[2] f32[2,1]", "f32[5] f32[5,1]"],
    );
    shrinks(
        "p = f32[8] parameter(0)\n q = f32[5] parameter(1)\n ROOT c = f32[13] concatenate(p, q), dimensions={0}",
        &["f32[1] f32[5] f32[6]", "f32[8] f32[2] f32[10]"],
    );
    shrinks(
        "p = f32[9] parameter(0)\n ROOT s = f32[4] slice(p), slice={[1:8:2]}",
        &["slice={[1:4:2]}", "slice={[0:1:2]}"],
    );
    shrinks(
        "p = f32[4] parameter(0)\n z = f32[] constant(0)\n q = f32[9] pad(p, z), padding=2_3\n ROOT n = f32[9] negate(q)",
        &["f32[1] f32[] f32[6] f32[6]", "padding=2_1"],
    );
    shrinks(
        "p = f32[7] parameter(0)\n i = s32[] parameter(1)\n ROOT s = f32[4] dynamic-slice(p, i), dynamic_slice_sizes={4}",
        &["dynamic_slice_sizes={1}", "f32[2] s32[] f32[2]", "f32[4] s32[] f32[4]"],
    );
    shrinks(
        "p = f32[] parameter(0)\n b = f32[7,5] broadcast(p), dimensions={}\n i = f32[7,5] iota(), iota_dimension=1\n ROOT a = f32[7,5] add(b, i)",
        &["f32[] f32[2,5] f32[2,5] f32[2,5]"],
    );
}

#[test]
fn sizes_follow_through_contractions_and_windows() {
    shrinks(
        "p = f32[4,8] parameter(0)\n q = f32[8,3] parameter(1)\n ROOT d = f32[4,3] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        &["f32[4,2] f32[2,3] f32[4,3]", "f32[1,8] f32[8,3] f32[1,3]"],
    );
    shrinks(
        "p = f32[2,9,3] parameter(0)\n k = f32[3,3,4] parameter(1)\n ROOT c = f32[2,9,4] convolution(p, k), window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f",
        &[
            "f32[2,1,3] f32[3,3,4] f32[2,1,4]",
            "f32[2,9,3] f32[1,3,4] f32[2,11,4]",
            "f32[2,9,1] f32[3,1,4] f32[2,9,4]",
            "f32[1,9,3] f32[3,3,4] f32[1,9,4]",
        ],
    );
    shrinks(
        "p = f32[9] parameter(0)\n z = f32[] constant(0)\n ROOT r = f32[4] reduce-window(p, z), window={size=3 stride=2}, to_apply=add",
        &["f32[] f32[] f32[] f32[3] f32[] f32[1]"],
    );
    shrinks(
        "p = f32[8] parameter(0)\n ROOT f = c64[5] fft(p), fft_type=RFFT, fft_length={8}",
        &["f32[4] c64[3]", "fft_length={4}"],
    );
    shrinks("p = f32[5,5] parameter(0)\n ROOT c = f32[5,5] cholesky(p), lower=true", &["f32[2,2] f32[2,2]"]);
}

#[test]
fn sizes_follow_through_indices() {
    let gather = "p = f32[9,4] parameter(0)\n i = s32[5,1] parameter(1)\n ROOT g = f32[5,4] gather(p, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,4}";
    shrinks(
        gather,
        &[
            "f32[1,4] s32[5,1] f32[5,4]",
            "f32[9,2] s32[5,1] f32[5,2]",
            "f32[9,4] s32[1,1] f32[1,4]",
            "slice_sizes={1,2}",
        ],
    );
    changes("dimensions dropped", gather, &["f32[9,4] s32[5] f32[5,4]", "index_vector_dim=1"]);
    let scatter = "p = f32[9,4] parameter(0)\n i = s32[5,1] parameter(1)\n u = f32[5,4] parameter(2)\n ROOT s = f32[9,4] scatter(p, i, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add";
    shrinks(scatter, &["f32[9,4] s32[1,1] f32[1,4] f32[9,4]", "f32[9,2] s32[5,1] f32[5,2] f32[9,2]"]);
}

#[test]
fn dimensions_of_size_one_are_dropped() {
    changes(
        "dimensions dropped",
        "p = f32[1,8] parameter(0)\n t = f32[8,1] transpose(p), dimensions={1,0}\n ROOT r = f32[8,1] reverse(t), dimensions={0,1}",
        &["f32[8] f32[8] f32[8]", "dimensions={0}"],
    );
    changes(
        "dimensions dropped",
        "p = f32[1,8,3] parameter(0)\n q = f32[1,8,2] parameter(1)\n ROOT d = f32[1,3,2] dot(p, q), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={1}, rhs_contracting_dims={1}",
        &["f32[8,3] f32[8,2] f32[3,2]"],
    );
    changes(
        "dimensions dropped",
        "p = f32[1,8] parameter(0)\n i = s32[] parameter(1)\n ROOT s = f32[1,4] dynamic-slice(p, i, i), dynamic_slice_sizes={1,4}",
        &["f32[8] s32[] f32[4]"],
    );
}

#[test]
fn sizes_follow_into_called_computations() {
    let text = "HloModule m
        c { p = (s32[], f32[8]) parameter(0)\n i = s32[] get-tuple-element(p), index=0\n n = s32[] constant(3)\n ROOT l = pred[] compare(i, n), direction=LT }
        b { p = (s32[], f32[8]) parameter(0)\n i = s32[] get-tuple-element(p), index=0\n x = f32[8] get-tuple-element(p), index=1\n o = s32[] constant(1)\n j = s32[] add(i, o)\n y = f32[8] negate(x)\n ROOT t = (s32[], f32[8]) tuple(j, y) }
        f { p = f32[8] parameter(0)\n ROOT r = f32[8] reverse(p), dimensions={0} }
        ENTRY main { i = s32[] constant(0)\n p = f32[8] parameter(0)\n t = (s32[], f32[8]) tuple(i, p)\n w = (s32[], f32[8]) while(t), condition=c, body=b\n g = f32[8] get-tuple-element(w), index=1\n ROOT r = f32[8] fusion(g), kind=kLoop, calls=f }";
    let (programs, invalid) = all(&candidate(text), "dimensions shrunk");
    assert_eq!(invalid, 0);
    assert!(
        programs.iter().any(|c| !crate::reduce::text(&c.module).contains("[8]")),
        "everything shrinks together"
    );
}

/// Whatever a program is made of, shrinking it mostly gives programs that verify: shapes follow through every
/// opcode.
#[test]
fn most_edits_give_programs_that_verify() {
    let mut counts: rustc_hash::FxHashMap<Opcode, (usize, usize)> = rustc_hash::FxHashMap::default();
    let limits = generate::Limits { instructions: 3, nesting: 1, ..generate::Limits::default() };
    for seed in 0..60 {
        let c = generated(seed, limits);
        for done in ["dimensions shrunk", "dimensions dropped"] {
            let (programs, invalid) = all(&c, done);
            for id in all_instructions(&c.module) {
                let count = counts.entry(c.module.instr(id).opcode).or_default();
                count.0 += programs.len();
                count.1 += invalid;
            }
        }
    }
    let (good, bad) = counts.values().fold((0, 0), |(g, b), c| (g + c.0, b + c.1));
    assert!(good > 20 * bad, "{good} verify, {bad} do not: {counts:?}");
}

//! `mma.sync`, `ldmatrix`, `stmatrix` and `movmatrix` against matrices computed here; rows and columns of
//! each element of a fragment by the ISA's formulas, shape by shape.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use half::f16;
use hlo_ptx::{Launch, Memory, Options, launch, lower};

/// Row and column of element `i` of a lane.
type Layout = fn(usize, usize) -> (usize, usize);

struct Case {
    instruction: &'static str,
    /// Bits of an element of A and B, of C and D, and elements of A, B and C in a lane.
    bits: (usize, usize),
    elements: (usize, usize, usize),
    shape: (usize, usize, usize),
    a: Layout,
    b: Layout,
    c: Layout,
    /// A number as an element of A and B, and of C.
    encode: fn(i64) -> u64,
    encode_c: fn(i64) -> u64,
}

fn g(lane: usize) -> usize {
    lane >> 2
}

fn t(lane: usize) -> usize {
    lane % 4
}

fn c16(lane: usize, i: usize) -> (usize, usize) {
    (if i < 2 { g(lane) } else { g(lane) + 8 }, t(lane) * 2 + (i & 1))
}

const CASES: &[Case] = &[
    Case {
        instruction: "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
        bits: (16, 32),
        elements: (8, 4, 4),
        shape: (16, 8, 16),
        a: |l, i| {
            let row = if i < 2 || (4..6).contains(&i) { g(l) } else { g(l) + 8 };
            (row, if i < 4 { t(l) * 2 + (i & 1) } else { t(l) * 2 + (i & 1) + 8 })
        },
        b: |l, i| (if i < 2 { t(l) * 2 + (i & 1) } else { t(l) * 2 + (i & 1) + 8 }, g(l)),
        c: c16,
        encode: |v| u64::from(f16::from_f32(v as f32).to_bits()),
        encode_c: |v| u64::from((v as f32).to_bits()),
    },
    Case {
        instruction: "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16",
        bits: (16, 16),
        elements: (4, 2, 4),
        shape: (16, 8, 8),
        a: |l, i| (if i < 2 { g(l) } else { g(l) + 8 }, t(l) * 2 + (i & 1)),
        b: |l, i| (t(l) * 2 + i, g(l)),
        c: c16,
        encode: |v| u64::from(f16::from_f32(v as f32).to_bits()),
        encode_c: |v| u64::from(f16::from_f32(v as f32).to_bits()),
    },
    Case {
        instruction: "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32",
        bits: (32, 32),
        elements: (4, 2, 4),
        shape: (16, 8, 8),
        a: |l, i| (if i == 0 || i == 2 { g(l) } else { g(l) + 8 }, if i < 2 { t(l) } else { t(l) + 4 }),
        b: |l, i| (if i == 0 { t(l) } else { t(l) + 4 }, g(l)),
        c: c16,
        encode: |v| u64::from((v as f32).to_bits()),
        encode_c: |v| u64::from((v as f32).to_bits()),
    },
    Case {
        instruction: "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32",
        bits: (8, 32),
        elements: (16, 8, 4),
        shape: (16, 8, 32),
        a: |l, i| {
            let row = if i < 4 || (8..12).contains(&i) { g(l) } else { g(l) + 8 };
            (row, if i < 8 { t(l) * 4 + (i & 3) } else { t(l) * 4 + (i & 3) + 16 })
        },
        b: |l, i| (if i < 4 { t(l) * 4 + (i & 3) } else { t(l) * 4 + (i & 3) + 16 }, g(l)),
        c: c16,
        encode: |v| v as u64 & 0xFF,
        encode_c: |v| v as u64 & 0xFFFF_FFFF,
    },
    Case {
        instruction: "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32",
        bits: (8, 32),
        elements: (4, 4, 2),
        shape: (8, 8, 16),
        a: |l, i| (g(l), t(l) * 4 + i),
        b: |l, i| (t(l) * 4 + i, g(l)),
        c: |l, i| (g(l), t(l) * 2 + i),
        encode: |v| v as u64 & 0xFF,
        encode_c: |v| v as u64 & 0xFFFF_FFFF,
    },
    Case {
        instruction: "mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32",
        bits: (4, 32),
        elements: (32, 16, 4),
        shape: (16, 8, 64),
        a: |l, i| {
            let row = if i < 8 || (16..24).contains(&i) { g(l) } else { g(l) + 8 };
            (row, if i < 16 { t(l) * 8 + (i & 7) } else { t(l) * 8 + (i & 7) + 32 })
        },
        b: |l, i| (if i < 8 { t(l) * 8 + (i & 7) } else { t(l) * 8 + (i & 7) + 32 }, g(l)),
        c: c16,
        encode: |v| v as u64 & 0xF,
        encode_c: |v| v as u64 & 0xFFFF_FFFF,
    },
    Case {
        instruction: "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64",
        bits: (64, 64),
        elements: (1, 1, 2),
        shape: (8, 8, 4),
        a: |l, _| (g(l), t(l)),
        b: |l, _| (t(l), g(l)),
        c: |l, i| (g(l), t(l) * 2 + i),
        encode: |v| (v as f64).to_bits(),
        encode_c: |v| (v as f64).to_bits(),
    },
];

/// The registers of 32 lanes that hold a matrix.
fn fragments(
    m: &[Vec<i64>],
    layout: Layout,
    elements: usize,
    bits: usize,
    encode: fn(i64) -> u64,
) -> Vec<u8> {
    let mut out = Vec::new();
    for lane in 0..32 {
        let mut bytes = vec![0_u8; (elements * bits).div_ceil(8)];
        for i in 0..elements {
            let (r, c) = layout(lane, i);
            let v = encode(m[r][c]);
            for bit in 0..bits {
                let at = i * bits + bit;
                bytes[at / 8] |= ((v >> bit & 1) as u8) << (at % 8);
            }
        }
        out.extend(bytes);
    }
    out
}

#[test]
fn products_by_the_isa_s_layouts() {
    for case in CASES {
        let (m, n, k) = case.shape;
        let entry = |r: usize, c: usize, s: usize| ((r * 7 + c * 3 + s) % 5) as i64 - 2;
        let a: Vec<Vec<i64>> = (0..m).map(|r| (0..k).map(|c| entry(r, c, 1)).collect()).collect();
        let b: Vec<Vec<i64>> = (0..k).map(|r| (0..n).map(|c| entry(r, c, 2)).collect()).collect();
        let c: Vec<Vec<i64>> = (0..m).map(|r| (0..n).map(|c| entry(r, c, 3)).collect()).collect();
        let d: Vec<Vec<i64>> = (0..m)
            .map(|r| (0..n).map(|x| (0..k).map(|j| a[r][j] * b[j][x]).sum::<i64>() + c[r][x]).collect())
            .collect();
        let (ea, eb, ec) = case.elements;
        let (bits, bits_c) = case.bits;
        let width = if bits == 64 { 64 } else { 32 };
        let registers = |e: usize, bits: usize| e * bits / width;
        let mut memory = Memory::default();
        let pa = memory.upload("a", &fragments(&a, case.a, ea, bits, case.encode)).unwrap();
        let pb = memory.upload("b", &fragments(&b, case.b, eb, bits, case.encode)).unwrap();
        let pc = memory.upload("c", &fragments(&c, case.c, ec, bits_c, case.encode_c)).unwrap();
        let want = fragments(&d, case.c, ec, bits_c, case.encode_c);
        let mut body = String::new();
        let mut list = |name: char, count: usize, param: &str| {
            body += &format!(
                ".reg .b{width} %{name}<{count}>; ld.param.u64 %p, [{param}]; mad.lo.u64 %p, %lane, {}, %p;\n",
                count * width / 8
            );
            for i in 0..count {
                body += &format!("ld.global.b{width} %{name}{i}, [%p+{}];\n", i * width / 8);
            }
            format!("{{{}}}", (0..count).map(|i| format!("%{name}{i}")).collect::<Vec<_>>().join(", "))
        };
        let (la, lb) = (list('a', registers(ea, bits), "pa"), list('b', registers(eb, bits), "pb"));
        let count = registers(ec, bits_c);
        let lc = list('c', count, "pc");
        body += &format!("{} {lc}, {la}, {lb}, {lc};\n", case.instruction);
        for i in 0..count {
            body += &format!("st.global.b{width} [%p+{}], %c{i};\n", i * width / 8);
        }
        let text = format!(
            ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 pa, .param .u64 pb, .param .u64 pc) {{\n\
             .reg .b32 %l; .reg .b64 %lane; .reg .b64 %p;\nmov.u32 %l, %laneid; cvt.u64.u32 %lane, %l;\n{body}ret;\n}}\n"
        );
        let module = lower::module(&text).unwrap_or_else(|d| panic!("{}: {}", case.instruction, d[0]));
        let loaded = memory.load(module).unwrap();
        let o = launch(
            &loaded,
            "k",
            &Launch::new([1, 1, 1], [32, 1, 1], 0, &[pa, pb, pc]),
            &mut memory,
            &Options::default(),
        );
        assert!(o.unwrap().reports.is_empty());
        assert_eq!(memory.read(pc, want.len() as u64).unwrap(), want, "{}", case.instruction);
    }
}

/// Element (r, c) of matrix j is 256 j + 8 r + c.
#[test]
fn matrices_in_shared_memory() {
    let text = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 x) {\n\
        .reg .b32 %r<40>; .reg .b64 %d<9>; .reg .b16 %h<4>; .shared .align 16 .b8 s[1024];\n\
        ld.param.u64 %d1, [x]; mov.u32 %r1, %tid.x; mov.u32 %r2, s;\n\
        shl.b32 %r3, %r1, 4; add.u32 %r4, %r2, %r3; mul.wide.u32 %d2, %r1, 16; add.s64 %d3, %d1, %d2;\n\
        ld.global.v4.b32 {%r5, %r6, %r7, %r8}, [%d3]; st.shared.v4.b32 [%r4], {%r5, %r6, %r7, %r8}; bar.warp.sync -1;\n\
        ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r10, %r11, %r12, %r13}, [%r4];\n\
        ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r14, %r15}, [%r4];\n\
        movmatrix.sync.aligned.m8n8.trans.b16 %r16, %r10;\n\
        add.u32 %r17, %r4, 512; stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%r17], {%r10, %r11, %r12, %r13}; bar.warp.sync -1;\n\
        ld.shared.b32 %r18, [%r17];\n\
        mul.wide.u32 %d4, %r1, 32; add.s64 %d5, %d1, %d4; add.s64 %d5, %d5, 512;\n\
        st.global.v4.b32 [%d5], {%r10, %r11, %r12, %r13}; st.global.v4.b32 [%d5+16], {%r14, %r15, %r16, %r18}; ret;\n}\n";
    let mut memory = Memory::default();
    let loaded = memory.load(lower::module(text).unwrap_or_else(|d| panic!("{}", d[0]))).unwrap();
    let element = |j: usize, r: usize, c: usize| (256 * j + 8 * r + c) as u32;
    let mut data: Vec<u8> =
        (0..256).flat_map(|i| (element(i / 64, i / 8 % 8, i % 8) as u16).to_le_bytes()).collect();
    data.resize(512 + 32 * 32, 0);
    let x = memory.upload("x", &data).unwrap();
    let o =
        launch(&loaded, "k", &Launch::new([1, 1, 1], [32, 1, 1], 0, &[x]), &mut memory, &Options::default());
    let o = o.unwrap_or_else(|f| panic!("{f}"));
    assert!(o.reports.is_empty(), "{}", o.reports[0]);
    for lane in 0..32 {
        let (r, c) = (lane / 4, lane % 4 * 2);
        let row = memory.read(x + 512 + 32 * lane as u64, 32).unwrap();
        let got: Vec<u32> = row.chunks(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect();
        let plain = |j| element(j, r, c) | element(j, r, c + 1) << 16;
        let trans = |j| element(j, c, r) | element(j, c + 1, r) << 16;
        // Matrix j of lane's row behind a transposing store: row `lane % 8`, its first two elements.
        let stored = element(lane / 8, 0, lane % 8) | element(lane / 8, 1, lane % 8) << 16;
        assert_eq!(
            got,
            [plain(0), plain(1), plain(2), plain(3), trans(0), trans(1), trans(0), stored],
            "{lane}"
        );
    }
}

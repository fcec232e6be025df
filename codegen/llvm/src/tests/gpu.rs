//! PTX is made for every compute capability, and computes what it says.

use hlo::ElementType;
use hlo::literal::BufferOf;

use super::super::harness::Ptx;
use super::*;

const OUTPUT: Parameter = Parameter::Array { align: 16, is_read_only: false, is_no_alias: true };
const INPUT: Parameter = Parameter::Array { align: 16, is_read_only: true, is_no_alias: true };

/// PTX of a kernel "k" of an input and an output, both arrays.
fn ptx(
    arch: &str,
    level: Level,
    body: impl for<'a, 'ctx> FnOnce(&Emit<'a, 'ctx>, Value<'ctx>, Value<'ctx>) -> Result<()>,
) -> String {
    let target = Target::nvptx(arch, level).unwrap();
    let context = new_context();
    let module = context.create_module("test");
    target.prepare(&module).unwrap();
    let builder = context.create_builder();
    let (e, arrays) =
        Emit::gpu_kernel(&context, &module, &builder, &target, "k", &[INPUT, OUTPUT], 256).unwrap();
    body(&e, arrays[0], arrays[1]).unwrap();
    e.return_void().unwrap();
    target.optimize(&module).unwrap();
    target.assembly(&module).unwrap()
}

fn element<'ctx>(e: &Emit<'_, 'ctx>, array: Value<'ctx>, i: Value<'ctx>, bytes: i64) -> Result<Value<'ctx>> {
    e.address(array, e.mul(i, e.i64(bytes))?)
}

#[test]
fn one_is_added_to_each_element() {
    for (arch, version) in [
        ("sm_75", "6.3"),
        ("sm_80", "7.0"),
        ("sm_86", "7.1"),
        ("sm_89", "7.8"),
        ("sm_90", "7.8"),
        ("sm_100", "8.6"),
        ("sm_120", "8.7"),
    ] {
        for level in Level::ALL {
            let text = ptx(arch, level, |e, from, to| {
                let i = e.global_thread()?;
                e.if_then(e.icmp(IntPredicate::ULT, i, e.i64(100))?, || {
                    let x = e.load_invariant(Prim::F32, element(e, from, i, 4)?, 4)?;
                    let y = e.fadd(e.fmul(x, x)?, e.f32(1.0))?;
                    e.store(y, element(e, to, i, 4)?, 4).map(|_| ())
                })
            });
            for part in [
                &format!(".version {version}\n"),
                &format!(".target {arch}\n"),
                ".visible .entry k(",
                ".maxntid 256",
                ".ptr .global .align 16",
                "ld.global.nc.b32",
                "st.global.b32",
                "mul.rn.f32",
                "add.rn.f32",
            ] {
                // Without optimization parameters' types and addresses are what they are.
                assert!(text.contains(part) || level == Level::O0, "{arch} {level:?} {part}:\n{text}");
            }
            assert!(!text.contains("fma"), "{text}");
            let input: Vec<f32> = (0..100).map(|i| i as f32).collect();
            let expected: Vec<f32> = input.iter().map(|x| x * x + 1.0).collect();
            let result = Ptx::load(&text).run("k", &[f32::wrap(input)], ElementType::F32, 100, [4, 32]);
            assert_eq!(result, f32::wrap(expected), "{arch} {level:?}");
        }
    }
    assert!(Target::nvptx("sm_30", Level::O2).is_err());
    let host = Target::host(Level::O2).unwrap();
    let context = new_context();
    let (module, builder) = (context.create_module("test"), context.create_builder());
    assert!(Emit::gpu_kernel(&context, &module, &builder, &host, "k", &[], 32).is_err());
}

#[test]
fn vectors_are_accesses_of_16_bytes() {
    let text = ptx("sm_80", Level::O2, |e, from, to| {
        let i = e.global_thread()?;
        let v = e.with_lanes(4);
        let x = v.load_invariant(Prim::I32, element(e, from, i, 16)?, 16)?;
        v.store(v.add(x, v.lane_numbers(Prim::I32))?, element(e, to, i, 16)?, 16).map(|_| ())
    });
    for part in ["ld.global.nc.v4.b32", "st.global.v4.b32"] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    let input: Vec<i32> = (0..256).collect();
    let expected = input.iter().map(|x| x + x % 4).collect();
    let result = Ptx::load(&text).run("k", &[i32::wrap(input)], ElementType::S32, 256, [2, 32]);
    assert_eq!(result, i32::wrap(expected));
}

/// Sums of a block of 64 threads: shuffles inside warps, shared memory between them; next to it what the
/// special registers say.
#[test]
fn threads_work_together() {
    let text = ptx("sm_80", Level::O2, |e, from, to| {
        let i = e.global_thread()?;
        let tid = e.special(Special::Tid(Axis::X))?;
        let mut x = e.load(Prim::I64, element(e, from, i, 8)?, 8)?;
        for step in [16, 8, 4, 2, 1] {
            x = e.add(x, e.shuffle_sync(e.full_warp(), Shuffle::Bfly, x, e.i32(step))?)?;
        }
        let shared: Value<'_> = e.shared_array("sums", Prim::I64, 2, 8)?.into();
        let lane = e.special(Special::LaneId)?;
        let warp = e.zext(e.lshr(tid, e.i32(5))?, Prim::I64)?;
        e.if_then(e.icmp(IntPredicate::EQ, lane, e.i32(0))?, || {
            e.store(x, element(e, shared, warp, 8)?, 8).map(|_| ())
        })?;
        e.barrier()?;
        let other = e.load(Prim::I64, element(e, shared, e.xor(warp, e.i64(1))?, 8)?, 8)?;
        let above = e.shuffle_sync(e.full_warp(), Shuffle::Down, lane, e.i32(1))?;
        let odd = e.icmp(IntPredicate::EQ, e.and(above, e.i32(1))?, e.i32(0))?;
        let votes = e.zext(e.ballot_sync(e.full_warp(), odd)?, Prim::I64)?;
        let sum = e.add(e.shl(e.add(x, other)?, e.i64(32))?, votes)?;
        e.store(sum, element(e, to, i, 8)?, 8).map(|_| ())
    });
    for part in ["shfl.sync.bfly.b32", "shfl.sync.down.b32", "ld.shared", "st.shared", "bar", "vote"] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    let input: Vec<i64> = (0..128).collect();
    // Lanes 1, 3, ... 29 see an even lane above them; lane 31 sees itself.
    let votes = 0x2aaa_aaaa;
    let sum = |block: i64| (0..64).map(|t| block * 64 + t).sum::<i64>();
    let expected = (0..128).map(|i| (sum(i / 64) << 32) + votes).collect();
    let result = Ptx::load(&text).run("k", &[i64::wrap(input)], ElementType::S64, 128, [2, 64]);
    assert_eq!(result, i64::wrap(expected));
}

#[test]
fn atomic_operations_are_of_a_scope() {
    let text = ptx("sm_80", Level::O2, |e, from, to| {
        let i = e.global_thread()?;
        let x = e.load(Prim::I32, element(e, from, i, 4)?, 4)?;
        e.if_then(e.icmp(IntPredicate::EQ, i, e.i64(0))?, || {
            e.store(e.i64(0), to, 8)?;
            e.store(e.i64(0), e.address_at(to, 8)?, 8).map(|_| ())
        })?;
        e.barrier()?;
        e.atomic(Atomic::Add, to, x, Scope::Device)?;
        e.atomic(Atomic::UMax, e.address_at(to, 4)?, x, Scope::Device)?;
        e.atomic(Atomic::Min, e.address_at(to, 8)?, x, Scope::Block)?;
        let swapped = e.compare_and_swap(e.address_at(to, 12)?, e.i32(0), e.i32(7), Scope::Device)?;
        e.gpu_fence(Scope::Device)?;
        e.if_then(e.icmp(IntPredicate::EQ, swapped, e.i32(0))?, || {
            e.atomic(Atomic::Exchange, e.address_at(to, 12)?, e.i32(9), Scope::Device).map(|_| ())
        })
    });
    // The scope is the device's where none is written.
    for part in
        ["global.add.u32", "global.max.u32", "global.min.s32", "gpu.global.cas.b32", "fence.acq_rel.gpu"]
    {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    assert!(!text.contains(".sys"), "{text}");
    let input: Vec<i32> = (0..32).map(|i| i - 3).collect();
    let result = Ptx::load(&text).run("k", &[i32::wrap(input)], ElementType::S32, 4, [1, 32]);
    assert_eq!(result, i32::wrap(vec![400, -1, -3, 9]));
}

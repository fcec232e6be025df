//! Code is made, errors are errors.

mod gpu;

use inkwell::module::Module;

use super::*;

/// `z[i] = x[i] * y[i] + x[i]` over `f32`, streaming.
fn kernel<'ctx>(context: &'ctx inkwell::context::Context, target: &Target) -> Module<'ctx> {
    let module = context.create_module("test");
    target.prepare(&module).unwrap();
    let builder = context.create_builder();
    let (e, [arguments, begin, end]) = Emit::kernel(context, &module, &builder, target, "axpy").unwrap();
    let arrays: Vec<_> = (0..3).map(|i| e.argument(arguments, i).unwrap()).collect();
    let v = e.with_lanes(target.vector_bytes() / 4);
    e.for_range(begin, end, e.i64(i64::from(v.lanes)), |i| {
        let offset = e.shl(i, e.i64(2))?;
        let at = |n: usize| e.address(arrays[n], offset);
        let x = v.load(Prim::F32, at(0)?, 4)?;
        let y = v.load(Prim::F32, at(1)?, 4)?;
        let sum = v.fadd(v.fmul(x, y)?, x)?;
        v.store_streaming(sum, at(2)?)
    })
    .unwrap();
    e.fence().unwrap();
    e.return_void().unwrap();
    module
}

#[test]
fn a_loop_compiles_at_every_level_without_contraction() {
    for level in Level::ALL {
        for target in Target::tested(level).unwrap() {
            let context = new_context();
            let module = kernel(&context, &target);
            target.optimize(&module).unwrap();
            let assembly = target.assembly(&module).unwrap();
            let (needed, contracted): (&[_], _) = match target.vector_bytes() {
                64 => (&["zmm", "vmulps", "vaddps", "vmovntps", "sfence"], "vfmadd"),
                32 => (&["ymm", "vmulps", "vaddps", "vmovntps", "sfence"], "vfmadd"),
                // NEON stores past the caches only what is two registers.
                _ => (&[".4s", "fmul", "fadd", "dmb"], "fmla"),
            };
            for text in needed {
                assert!(assembly.contains(text), "{level:?} {text}:\n{assembly}");
            }
            assert!(!assembly.contains(contracted), "{level:?}:\n{assembly}");
            assert_eq!(&target.object(&module).unwrap()[..4], b"\x7fELF");
        }
    }
}

/// `llvm.used` of a module says nothing of the modules that come after it, whatever addresses these have.
#[test]
fn an_object_does_not_depend_on_the_modules_before_it() {
    let target = Target::host(Level::O2).unwrap();
    // The allocator reuses addresses: some of 200 functions get that of an earlier module's function.
    let object = |used: bool| {
        let context = new_context();
        let module = context.create_module("test");
        target.prepare(&module).unwrap();
        let builder = context.create_builder();
        let functions: Vec<_> = (0..200)
            .map(|i| {
                let function =
                    module.add_function(&format!("f{i}"), context.void_type().fn_type(&[], false), None);
                builder.position_at_end(context.append_basic_block(function, "entry"));
                builder.build_return(None).unwrap();
                function.as_global_value().as_pointer_value()
            })
            .collect();
        if used {
            let list = functions[0].get_type().const_array(&functions);
            let global = module.add_global(list.get_type(), None, "llvm.used");
            global.set_linkage(inkwell::module::Linkage::Appending);
            global.set_section(Some("llvm.metadata"));
            global.set_initializer(&list);
        }
        target.optimize(&module).unwrap();
        target.object(&module).unwrap()
    };
    let first = object(false);
    for _ in 0..8 {
        assert!(object(true) != first, "each is in a section of its own");
        assert!(object(false) == first);
    }
}

/// Values that are made before the end of a block that has one: of the entry, and of a block that another
/// comes from twice.
#[test]
fn control_flow_fits_before_the_end_of_a_block() {
    use hlo::{BufferOf, ElementType};
    let target = Target::host(Level::O2).unwrap();
    let context = new_context();
    let module = context.create_module("test");
    target.prepare(&module).unwrap();
    let builder = context.create_builder();
    let (e, [arguments, begin, end]) = Emit::kernel(&context, &module, &builder, &target, "k").unwrap();
    let (from, to) = (e.argument(arguments, 0).unwrap(), e.argument(arguments, 1).unwrap());
    let entry = builder.get_insert_block().unwrap();
    let address = |base, i| e.address(base, e.shl(i, e.i64(2))?);
    e.for_range(begin, end, e.i64(1), |i| {
        let here = builder.get_insert_block().unwrap();
        let mut factor = e.i32(1);
        for n in 2..5 {
            // Twice in the entry: 24 by two kinds of control flow.
            builder.position_before(&entry.get_terminator().unwrap());
            let positive = e.icmp(IntPredicate::SGE, end, begin)?;
            factor = if n == 3 {
                e.for_carried(e.i64(0), e.i64(3), e.i64(1), &[e.i32(0)], |_, sum| {
                    Ok(vec![e.add(sum[0], factor)?])
                })?[0]
            } else {
                e.if_else(positive, || Ok(vec![e.mul(factor, e.i32(n))?]), || Ok(vec![e.i32(0)]))?[0]
            };
        }
        builder.position_at_end(here);
        let x = e.load(Prim::I32, address(from, i)?, 4)?;
        e.store(e.mul(x, factor)?, address(to, i)?, 4).map(|_| ())
    })
    .unwrap();
    e.return_void().unwrap();
    target.optimize(&module).unwrap();
    let kernels = harness::Kernels::load(&target.object(&module).unwrap());
    let result = kernels.run("k", &[i32::wrap(vec![1, -2, 3])], ElementType::S32, 3, 3);
    assert_eq!(result, i32::wrap(vec![24, -48, 72]));
}

#[test]
fn targets_that_cannot_be_are_errors() {
    for (cpu, features, part) in [
        ("i386", "", "unknown processor"),
        ("native", "+nonsense", "unknown feature"),
        ("native", "avx", "neither"),
        ("native", if cfg!(target_arch = "x86_64") { "-fma" } else { "-neon" }, "needs \""),
        ("native", "+avx512er,+amx-fp16", "no \""),
    ] {
        let error = Target::new(cpu, features, Level::O2).unwrap_err().to_string();
        assert!(error.contains(part) || error.contains("unknown"), "{cpu} {features}: {error}");
    }
    if cfg!(target_arch = "x86_64") {
        let narrow = Target::new("native", "-avx512f", Level::O2).unwrap();
        assert_eq!(narrow.vector_bytes(), 32);
    } else {
        assert_eq!(Target::host(Level::O2).unwrap().vector_bytes(), 16);
    }
}

#[test]
fn a_wrong_type_is_an_error() {
    let target = Target::host(Level::O0).unwrap();
    let context = new_context();
    let module = context.create_module("test");
    let builder = context.create_builder();
    let (e, [arguments, begin, _]) = Emit::kernel(&context, &module, &builder, &target, "wrong").unwrap();
    assert!(e.icmp(IntPredicate::EQ, begin, e.f32(1.0)).is_err());
    assert!(e.intrinsic("llvm.no.such", &[], &[]).is_err());
    let zero = e.i32(0);
    e.store(zero, arguments, 4).unwrap();
    assert!(target.run_passes(&module, "no-such-pass").is_err());
    assert!(target.optimize(&module).is_err(), "the block has no terminator");
}

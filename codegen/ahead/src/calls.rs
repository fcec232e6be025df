//! What objects call.

use std::cell::Cell;
use std::ffi::c_char;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicPtr, Ordering};

use hlo_library_base::portable::Function;
use hlo_library_base::workspace::Workspace;
use hlo_library_base::{Call, KernelFn};

use crate::ABI_VERSION;
use crate::description::{self, Described};
use crate::threads::{self, ThreadPool};

/// A pointer is missing.
pub const MISSING: i32 = 1;
/// A pointer is not aligned.
pub const MISALIGNED: i32 = 2;
/// The object was made for another version of this library.
pub const OTHER_VERSION: i32 = 3;
/// The object's description of its operations is not one.
pub const DAMAGED: i32 = 4;
/// This library went wrong.
pub const DEFECT: i32 = 5;

/// What an object has of the library, in data of its own.
#[repr(C)]
#[derive(Debug)]
pub struct Model {
    abi: u64,
    /// Its operations, once they are made.
    state: AtomicPtr<Vec<Described>>,
    description: *const u8,
    length: u64,
}

thread_local! {
    /// Scratch memory of operations that have too little in the object, kept from call to call.
    static OWN_SCRATCH: Cell<Workspace> = const { Cell::new(Workspace::new()) };
}

/// The version of the interface.
#[cfg_attr(feature = "symbols", unsafe(no_mangle))]
pub extern "C" fn hlo_ahead_abi_version() -> u64 {
    ABI_VERSION
}

/// What a status says.
#[cfg_attr(feature = "symbols", unsafe(no_mangle))]
pub extern "C" fn hlo_ahead_status_message(status: i32) -> *const c_char {
    let message = match status {
        0 => c"no error",
        MISSING => c"an argument, a result or the temporaries are a null pointer",
        MISALIGNED => c"an argument, a result or the temporaries are not aligned to 64 bytes",
        OTHER_VERSION => c"the object was compiled for another version of the run-time library",
        DAMAGED => c"the object's description of its library calls is damaged",
        DEFECT => c"the run-time library went wrong",
        _ => c"an unknown status",
    };
    message.as_ptr()
}

/// Makes the operations of an object, once a process; any number of threads may call it at once. Returns a
/// status.
///
/// # Safety
/// The model is an object's.
#[cfg_attr(feature = "symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn hlo_ahead_prepare(model: *const Model) -> i32 {
    // SAFETY: by the caller's word.
    let model = unsafe { &*model };
    if model.abi != ABI_VERSION {
        return OTHER_VERSION;
    }
    if !model.state.load(Ordering::Acquire).is_null() {
        return 0;
    }
    // SAFETY: by the caller's word.
    let bytes = unsafe { std::slice::from_raw_parts(model.description, model.length as usize) };
    let made = catch_unwind(|| {
        let text = std::str::from_utf8(bytes).map_err(|_| "not UTF-8".to_owned())?;
        description::operations(text)
    });
    let operations = match made {
        Ok(Ok(operations)) => Box::into_raw(Box::new(operations)),
        Ok(Err(_)) => return DAMAGED,
        Err(_) => return DEFECT,
    };
    let (null, there) = (std::ptr::null_mut(), Ordering::Acquire);
    if model.state.compare_exchange(null, operations, Ordering::AcqRel, there).is_err() {
        // SAFETY: the box made above; another thread published its own first, so nothing refers to this one.
        drop(unsafe { Box::from_raw(operations) });
    }
    0
}

/// Executes operation `number` of a model that is prepared. Returns a status.
///
/// # Safety
/// `arguments`, `scratch`, `regions` and the epilogue are those of `hlo_codegen::plan::Action::Library` for
/// this operation; `pool` is null or points to a pool that is alive.
#[cfg_attr(feature = "symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn hlo_ahead_call(
    model: *const Model,
    number: u64,
    arguments: *const *mut u8,
    count: u64,
    scratch: *mut u8,
    regions: *const KernelFn,
    region_count: u64,
    epilogue: Option<KernelFn>,
    epilogue_arguments: *const *mut u8,
    pool: *const ThreadPool,
) -> i32 {
    /// A row of pointers that threads share.
    struct Row(*const *mut u8);
    // SAFETY: threads work on different rows of what the pointers lead to.
    unsafe impl Sync for Row {}
    impl Row {
        fn get(&self) -> *const *mut u8 {
            self.0
        }
    }
    // SAFETY: by the caller's word.
    let operations = unsafe { (*model).state.load(Ordering::Acquire).as_ref() };
    let Some(operation) = operations.and_then(|all| all.get(number as usize)) else { return DAMAGED };
    // SAFETY: by the caller's word.
    let (arguments, regions) = unsafe {
        let regions = if region_count == 0 {
            &[][..]
        } else {
            std::slice::from_raw_parts(regions, region_count as usize)
        };
        (std::slice::from_raw_parts(arguments, count as usize), regions)
    };
    let row = Row(epilogue_arguments);
    let rows;
    let epilogue: Option<&(dyn Fn(u64, u64) + Sync)> = match epilogue {
        Some(function) => {
            let row = &row;
            rows = move |begin, end| {
                // SAFETY: rows that are finished, each once: units of the kernel, on its arguments.
                unsafe { function(row.get(), begin, end) }
            };
            Some(&rows)
        }
        None => None,
    };
    // SAFETY: by the caller's word.
    let pool = unsafe { threads::of(pool) };
    let regions: Vec<Function> = regions.iter().map(|&region| Function::Machine(region)).collect();
    let needed = operation.call.scratch_bytes();
    // Other vectors than those that the object was compiled for may need more.
    let mut own = (needed > operation.scratch_bytes).then(|| OWN_SCRATCH.take());
    let scratch = own.as_mut().map_or(scratch, |own| own.reserve(needed as usize));
    // SAFETY: by the caller's word the arguments are those of the operation's instruction; buffer assignment
    // gave its results memory that no operand shares, except where the operation works in place.
    let ran = catch_unwind(AssertUnwindSafe(|| unsafe {
        let prepared = operation.prepared(arguments);
        operation.call.run(Call { arguments, scratch, regions: &regions, epilogue, prepared, pool: &pool });
    }));
    if let Some(own) = own {
        OWN_SCRATCH.set(own);
    }
    if ran.is_ok() { 0 } else { DEFECT }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Model {
        fn new(text: &str) -> Self {
            let (state, length) = (AtomicPtr::new(std::ptr::null_mut()), text.len() as u64);
            let model = Model { abi: ABI_VERSION, state, description: text.as_ptr(), length };
            // SAFETY: as an object has it.
            assert_eq!(unsafe { hlo_ahead_prepare(&model) }, 0);
            model
        }

        /// Executes operation 0, which has no scratch memory in the object.
        fn call(&self, operands: &[&[f32]], result: &mut [f32]) {
            let mut arguments: Vec<*mut u8> =
                operands.iter().map(|operand| operand.as_ptr().cast_mut().cast()).collect();
            arguments.push(result.as_mut_ptr().cast());
            let (at, count, none) = (arguments.as_mut_ptr(), arguments.len() as u64, std::ptr::null());
            let (null, pool, row) = (std::ptr::null_mut(), std::ptr::null(), std::ptr::null());
            // SAFETY: the arguments are those of the operation.
            let status = unsafe { hlo_ahead_call(self, 0, at, count, null, none, 0, None, row, pool) };
            assert_eq!(status, 0);
        }
    }

    /// Products by weights that are a constant of the program, and by an argument: only the constant is read
    /// once.
    #[test]
    fn constant_weights_are_packed_once() {
        let (m, k, n) = (32, 200, 96);
        let x: Vec<f32> = (0..m * k).map(|i| (i % 7) as f32 - 3.0).collect();
        let w: Vec<f32> = (0..k * n).map(|i| (i % 5) as f32 - 2.0).collect();
        let product: Vec<f32> =
            (0..m * n).map(|i| (0..k).map(|t| x[i / n * k + t] * w[t * n + i % n]).sum()).collect();
        for (weights, is_constant) in [("constant({...})", true), ("parameter(1)", false)] {
            let text = format!(
                "hlo-ahead 2\n1\ne\td\t0\nHloModule m\nENTRY e {{ x = f32[{m},{k}] parameter(0)  w = f32[{k},{n}] {weights}  ROOT d = f32[{m},{n}] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}} }}\n"
            );
            let model = Model::new(&text);
            let mut result = vec![0f32; m * n];
            model.call(&[&x, &w], &mut result);
            assert_eq!(result, product);
            model.call(&[&x, &vec![0f32; k * n]], &mut result);
            assert_eq!(result == product, is_constant, "{weights}");
        }
    }

    /// A convolution of an object that was compiled where it needs no scratch memory: with vectors the panels of
    /// its kernel are packed, and the object has no memory for them.
    #[test]
    fn operations_that_need_more_scratch_memory_here_have_their_own() {
        let (width, channels, features, taps) = (40, 16, 32, 3);
        let outputs = width - taps + 1;
        let text = format!(
            "hlo-ahead 2\n1\ne\tc\t0\nHloModule m\nENTRY e {{ x = f32[1,{width},{channels}] parameter(0)  w = f32[{features},{channels},{taps}] parameter(1)  ROOT c = f32[1,{outputs},{features}] convolution(x, w), window={{size={taps}}}, dim_labels=b0f_oi0->b0f }}\n"
        );
        let described = description::operations(&text).unwrap();
        assert_eq!(described[0].scratch_bytes, 0);
        #[cfg(target_arch = "x86_64")]
        if hlo_library_base::isa::Features::here().avx2 {
            assert!(described[0].call.scratch_bytes() > 0);
        }
        let model = Model::new(&text);
        // Small whole numbers, whose sums are exact.
        let x: Vec<f32> = (0..width * channels).map(|i| (i % 7) as f32 - 3.0).collect();
        let w: Vec<f32> = (0..features * channels * taps).map(|i| (i % 5) as f32 - 2.0).collect();
        let mut result = vec![0f32; outputs * features];
        model.call(&[&x, &w], &mut result);
        for (i, &element) in result.iter().enumerate() {
            let (at, feature) = (i / features, i % features);
            let terms = (0..channels).flat_map(|c| (0..taps).map(move |t| (c, t)));
            let sum: f32 =
                terms.map(|(c, t)| x[(at + t) * channels + c] * w[(feature * channels + c) * taps + t]).sum();
            assert_eq!(element, sum, "{at} {feature}");
        }
    }
}

//! The C interface of `hlo-client`: `include/hlo.h` says what each function does.
//!
//! **Invariants:** callers pass null, or a live object that this library made. A null where an object is
//! needed is an error. No panic crosses into C. Objects are reference-counted, so they may be destroyed in
//! any order.

#![deny(unsafe_op_in_unsafe_fn)]

pub mod library;

use std::ffi::{CStr, CString, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use hlo_client::exports::Library;
use hlo_client::{
    Buffer, Client, ClientOptions, Code, CompileOptions, Error, Executable, ExecuteOptions, VerifiedModule,
};
use hlo_ir::{ArrayShape, ElementType};
use smallvec::SmallVec;

/// The version of the header.
const API_VERSION: u32 = 1 << 16 | 2;

/// `hlo_client`.
#[derive(Debug)]
pub struct HloClient(Client);

/// `hlo_executable`.
#[derive(Debug)]
pub struct HloExecutable {
    executable: Executable,
    name: CString,
    arguments: usize,
    /// The library that it is a function of.
    library: Option<Library>,
}

/// `hlo_buffer`.
#[derive(Debug)]
pub struct HloBuffer {
    buffer: Buffer,
}

/// `hlo_error`.
#[derive(Debug)]
pub struct HloError {
    code: Code,
    message: CString,
}

/// `hlo_client_options`.
#[derive(Debug)]
#[repr(C)]
pub struct HloClientOptions {
    struct_size: usize,
    threads: usize,
    memory_budget: u64,
    cache_directory: *const c_char,
}

/// `hlo_execute_options`.
#[derive(Debug)]
#[repr(C)]
pub struct HloExecuteOptions {
    struct_size: usize,
    donated: *const usize,
    donated_count: usize,
    fuel: u64,
    timeout_ns: u64,
    rng_seed: u64,
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(Code::InvalidArgument, message)
}

/// A string without the bytes that end it in C.
fn c_string(text: &str) -> CString {
    CString::new(text.replace('\0', " ")).unwrap_or_default()
}

/// Runs a function, and makes what it returns, or its panic, an error of C's.
fn guarded(run: impl FnOnce() -> Result<(), Error>) -> *mut HloError {
    let outcome = catch_unwind(AssertUnwindSafe(run));
    let error = match outcome {
        Ok(Ok(())) => return std::ptr::null_mut(),
        Ok(Err(error)) => error,
        Err(_) => Error::new(Code::Internal, "the library panicked"),
    };
    let message = c_string(&error.to_string());
    Box::into_raw(Box::new(HloError { code: error.code(), message }))
}

/// What a pointer leads to. Errors: it is null.
///
/// # Safety
/// It is null, or leads to such an object.
unsafe fn object<'a, T>(pointer: *const T, what: &str) -> Result<&'a T, Error> {
    // SAFETY: by the caller's word.
    unsafe { pointer.as_ref() }.ok_or_else(|| invalid(format!("{what} is null")))
}

/// An array of the caller's. Errors: it is null, and not empty.
///
/// # Safety
/// It is null, or points at `count` elements.
unsafe fn array<'a, T>(pointer: *const T, count: usize, what: &str) -> Result<&'a [T], Error> {
    match (pointer.is_null(), count) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(invalid(format!("{what} is null"))),
        // SAFETY: by the caller's word.
        (false, _) => Ok(unsafe { std::slice::from_raw_parts(pointer, count) }),
    }
}

/// Puts a new object where the caller wants it.
///
/// # Safety
/// The pointer is null, or may be written to.
unsafe fn give<T>(to: *mut *mut T, value: T) -> Result<(), Error> {
    if to.is_null() {
        return Err(invalid("there is nowhere to put the result"));
    }
    // SAFETY: by the caller's word.
    unsafe { to.write(Box::into_raw(Box::new(value))) };
    Ok(())
}

/// Puts bytes and their length where the caller wants them; `hlo_bytes_destroy` takes them back.
///
/// # Safety
/// The pointers are null, or may be written to.
unsafe fn give_bytes(value: Vec<u8>, bytes: *mut *mut u8, length: *mut usize) -> Result<(), Error> {
    if bytes.is_null() || length.is_null() {
        return Err(invalid("there is nowhere to put the result"));
    }
    let value = value.into_boxed_slice();
    // SAFETY: by the caller's word.
    unsafe {
        length.write(value.len());
        bytes.write(Box::into_raw(value).cast());
    }
    Ok(())
}

/// Destroys an object.
///
/// # Safety
/// It is null, or was made by `give` or `guarded`, and is not used again.
unsafe fn destroy<T>(pointer: *mut T) {
    if !pointer.is_null() {
        // SAFETY: by the caller's word.
        let object = unsafe { Box::from_raw(pointer) };
        // A panic of a destructor ends here.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(object)));
    }
}

/// Text of the caller's. Errors: it is null or no UTF-8.
///
/// # Safety
/// As [`array()`].
unsafe fn text<'a>(text: *const c_char, length: usize) -> Result<&'a str, Error> {
    // SAFETY: by the caller's word.
    let bytes = unsafe { array(text.cast::<u8>(), length, "the text") }?;
    std::str::from_utf8(bytes).map_err(|e| invalid("the text is no UTF-8").caused_by(e))
}

/// A string of the caller's that ends with 0.
///
/// # Safety
/// It is null, or leads to such a string.
unsafe fn c_text<'a>(text: *const c_char, what: &str) -> Result<&'a str, Error> {
    if text.is_null() {
        return Err(invalid(format!("{what} is null")));
    }
    // SAFETY: by the caller's word.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|e| invalid(format!("{what} is no UTF-8")).caused_by(e))
}

/// XLA's number of an element type, for those that C has a word for, and `bf16`, `f16` and complex numbers.
fn type_number(ty: ElementType) -> Option<i32> {
    Some(match ty {
        ElementType::Pred => 1,
        ElementType::S8 => 2,
        ElementType::S16 => 3,
        ElementType::S32 => 4,
        ElementType::S64 => 5,
        ElementType::U8 => 6,
        ElementType::U16 => 7,
        ElementType::U32 => 8,
        ElementType::U64 => 9,
        ElementType::F16 => 10,
        ElementType::F32 => 11,
        ElementType::F64 => 12,
        ElementType::C64 => 15,
        ElementType::BF16 => 16,
        ElementType::C128 => 18,
        ElementType::S1
        | ElementType::S2
        | ElementType::S4
        | ElementType::U1
        | ElementType::U2
        | ElementType::U4
        | ElementType::F8E5M2
        | ElementType::F8E4M3
        | ElementType::F8E4M3FN
        | ElementType::F8E4M3B11FNUZ
        | ElementType::F8E3M4
        | ElementType::F8E5M2FNUZ
        | ElementType::F8E4M3FNUZ
        | ElementType::F8E8M0FNU
        | ElementType::F4E2M1FN
        | ElementType::F6E3M2FN
        | ElementType::F6E2M3FN => return None,
    })
}

fn type_of(number: i32) -> Result<ElementType, Error> {
    let found = ElementType::ALL.iter().copied().find(|&ty| type_number(ty) == Some(number));
    found.ok_or_else(|| invalid(format!("there is no element type {number}")))
}

fn executable(executable: Executable) -> HloExecutable {
    let name = c_string(executable.name());
    let arguments = executable.argument_shapes().len();
    HloExecutable { executable, name, arguments, library: None }
}

/// The version.
#[unsafe(no_mangle)]
pub extern "C" fn hlo_api_version() -> u32 {
    API_VERSION
}

/// The code of an error.
///
/// # Safety
/// An error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hlo_error_code(error: *const HloError) -> i32 {
    // SAFETY: by the caller's word.
    match unsafe { error.as_ref() }.map(|e| e.code) {
        None => 0,
        Some(Code::Cancelled) => 1,
        Some(Code::InvalidArgument) => 3,
        Some(Code::DeadlineExceeded) => 4,
        Some(Code::NotFound) => 5,
        Some(Code::ResourceExhausted) => 8,
        Some(Code::FailedPrecondition) => 9,
        Some(Code::Aborted) => 10,
        Some(Code::Unimplemented) => 12,
        Some(Code::Unavailable) => 14,
        Some(Code::DataLoss) => 15,
        Some(_internal) => 13,
    }
}

/// The message of an error.
///
/// # Safety
/// An error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hlo_error_message(error: *const HloError) -> *const c_char {
    // SAFETY: by the caller's word.
    unsafe { error.as_ref() }.map_or(c"".as_ptr(), |e| e.message.as_ptr())
}

/// Destroys an error.
///
/// # Safety
/// An error that is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hlo_error_destroy(error: *mut HloError) {
    // SAFETY: by the caller's word.
    unsafe { destroy(error) }
}

/// Makes a client.
///
/// # Safety
/// As the header says of every function: pointers are null, or lead to what they are to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hlo_client_create(
    platform: *const c_char,
    options: *const HloClientOptions,
    client: *mut *mut HloClient,
) -> *mut HloError {
    guarded(|| {
        // SAFETY: by the caller's word.
        let platform = unsafe { c_text(platform, "the platform") }?;
        let mut to = ClientOptions::default();
        // SAFETY: by the caller's word.
        if let Some(options) = unsafe { options.as_ref() } {
            if options.struct_size < size_of::<HloClientOptions>() {
                return Err(invalid("hlo_client_options says less than its size"));
            }
            to.threads = options.threads;
            to.memory_budget_bytes = Some(options.memory_budget).filter(|&bytes| bytes > 0);
            if !options.cache_directory.is_null() {
                // SAFETY: by the caller's word.
                let folder = unsafe { c_text(options.cache_directory, "the cache's folder") }?;
                to.cache_directory = Some(PathBuf::from(folder));
            }
        }
        let made = Client::for_platform(platform, to)?;
        // SAFETY: by the caller's word.
        unsafe { give(client, HloClient(made)) }
    })
}

/// Numbers about a client, as JSON.
///
/// # Safety
/// As the header says of every function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hlo_client_metrics(
    client: *mut HloClient,
    text: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> *mut HloError {
    guarded(|| {
        // SAFETY: by the caller's word.
        let client = unsafe { object(client, "the client") }?;
        let json = client.0.metrics().to_json();
        if length.is_null() || text.is_null() && capacity > 0 {
            return Err(invalid("there is nowhere to put the result"));
        }
        let copied = json.len().min(capacity.saturating_sub(1));
        // SAFETY: by the caller's word there is space for the length, and for `capacity` bytes of text.
        unsafe {
            length.write(json.len());
            if capacity > 0 {
                std::ptr::copy_nonoverlapping(json.as_ptr(), text.cast(), copied);
                text.add(copied).write(0);
            }
        }
        Ok(())
    })
}

/// Loads a library with handlers.
///
/// # Safety
/// As the header says of every function; the library is to be trusted as a program is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hlo_client_load_library(
    client: *mut HloClient,
    path: *const c_char,
    target: *const c_char,
    symbol: *const c_char,
) -> *mut HloError {
    guarded(|| {
        // SAFETY: by the caller's word.
        let (client, path) = unsafe { (object(client, "the client")?, c_text(path, "the path")?) };
        let library = hlo_ffi::Library::load(path)?;
        let custom_calls = client.0.custom_calls();
        let registered = library.bind_registered(custom_calls)?;
        if !target.is_null() {
            // SAFETY: by the caller's word.
            let (target, symbol) = unsafe { (c_text(target, "the target")?, c_text(symbol, "the symbol")?) };
            return library.bind(target, symbol, custom_calls);
        }
        match registered.is_empty() {
            true => Err(Error::new(
                Code::NotFound,
                format!("{path} registers no handlers for the host by itself"),
            )),
            false => Ok(()),
        }
    })
}

/// Destroys a client.
///
/// # Safety
/// A client that is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hlo_client_destroy(client: *mut HloClient) {
    // SAFETY: by the caller's word.
    unsafe { destroy(client) }
}

/// Compiles a program.
///
/// # Safety
/// As the header says of every function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hlo_compile(
    client: *mut HloClient,
    program: *const c_char,
    length: usize,
    compiled: *mut *mut HloExecutable,
) -> *mut HloError {
    guarded(|| {
        // SAFETY: by the caller's word.
        let (client, program) = unsafe { (object(client, "the client")?, text(program, length)?) };
        let made = client.0.compile(&VerifiedModule::parse(program)?, &CompileOptions::default())?;
        // SAFETY: by the caller's word.
        unsafe { give(compiled, executable(made)) }
    })
}

/// Loads a compiled program.
///
/// # Safety
/// As the header says of every function; the bytes are to be trusted as a program is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hlo_load(
    client: *mut HloClient,
    bytes: *const c_void,
    length: usize,
    loaded: *mut *mut HloExecutable,
) -> *mut HloError {
    guarded(|| {
        // SAFETY: by the caller's word.
        let client = unsafe { object(client, "the client") }?;
        // SAFETY: by the caller's word.
        let bytes = unsafe { array(bytes.cast::<u8>(), length, "the program") }?;
        // SAFETY: by the caller's word.
        unsafe { give(loaded, executable(client.0.load(bytes)?)) }
    })
}

/// Compiles a program to bytes.
///
/// # Safety
/// As the header says of every function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hlo_compile_to_bytes(
    client: *mut HloClient,
    program: *const c_char,
    length: usize,
    bytes: *mut *mut u8,
    bytes_length: *mut usize,
) -> *mut HloError {
    guarded(|| {
        // SAFETY: by the caller's word.
        let (client, program) = unsafe { (object(client, "the client")?, text(program, length)?) };
        let artifact =
            client.0.compile_artifact(&VerifiedModule::parse(program)?, &CompileOptions::default())?;
        // SAFETY: by the caller's word.
        unsafe { give_bytes(artifact, bytes, bytes_length) }
    })
}

/// Destroys bytes that a function gave.
///
/// # Safety
/// Such bytes and their length, not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hlo_bytes_destroy(bytes: *mut u8, length: usize) {
    if !bytes.is_null() {
        // SAFETY: by the caller's word it is the slice that was made so.
        drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(bytes, length)) });
    }
}

/// Destroys a program.
///
/// # Safety
/// A program that is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hlo_executable_destroy(executable: *mut HloExecutable) {
    // SAFETY: by the caller's word.
    unsafe { destroy(executable) }
}

/// The name of a program.
///
/// # Safety
/// A program.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hlo_executable_name(executable: *const HloExecutable) -> *const c_char {
    // SAFETY: by the caller's word.
    unsafe { executable.as_ref() }.map_or(c"".as_ptr(), |e| e.name.as_ptr())
}

/// How many arrays it takes.
///
/// # Safety
/// A program.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hlo_executable_argument_count(executable: *const HloExecutable) -> usize {
    // SAFETY: by the caller's word.
    unsafe { executable.as_ref() }.map_or(0, |e| e.arguments)
}

/// How many arrays it gives.
///
/// # Safety
/// A program.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hlo_executable_result_count(executable: *const HloExecutable) -> usize {
    // SAFETY: by the caller's word.
    unsafe { executable.as_ref() }.map_or(0, |e| e.executable.result_shapes().len())
}

/// Copies an array to the device.
///
/// # Safety
/// As the header says of every function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hlo_buffer_create(
    client: *mut HloClient,
    ty: i32,
    dims: *const i64,
    rank: usize,
    bytes: *const c_void,
    length: usize,
    buffer: *mut *mut HloBuffer,
) -> *mut HloError {
    guarded(|| {
        // SAFETY: by the caller's word.
        let client = unsafe { object(client, "the client") }?;
        // SAFETY: by the caller's word.
        let (dims, bytes) = unsafe {
            (array(dims, rank, "the dimensions")?, array(bytes.cast::<u8>(), length, "the array")?)
        };
        if dims.iter().any(|&d| d < 0) || rank > hlo_ir::shape::MAX_RANK {
            return Err(invalid(format!("{dims:?} are no dimensions of an array")));
        }
        let made = client.0.buffer_from_bytes(ArrayShape::new(type_of(ty)?, dims), bytes)?;
        // SAFETY: by the caller's word.
        unsafe { give(buffer, HloBuffer { buffer: made }) }
    })
}

/// Destroys a buffer.
///
/// # Safety
/// A buffer that is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hlo_buffer_destroy(buffer: *mut HloBuffer) {
    // SAFETY: by the caller's word.
    unsafe { destroy(buffer) }
}

/// The element type of a buffer; 0: one that C's interface has no number for.
///
/// # Safety
/// A buffer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hlo_buffer_type(buffer: *const HloBuffer) -> i32 {
    // SAFETY: by the caller's word.
    unsafe { buffer.as_ref() }.and_then(|b| type_number(b.buffer.shape().element_type)).unwrap_or(0)
}

/// The rank of a buffer.
///
/// # Safety
/// A buffer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hlo_buffer_rank(buffer: *const HloBuffer) -> usize {
    // SAFETY: by the caller's word.
    unsafe { buffer.as_ref() }.map_or(0, |b| b.buffer.shape().rank())
}

/// The dimensions of a buffer.
///
/// # Safety
/// A buffer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hlo_buffer_dims(buffer: *const HloBuffer) -> *const i64 {
    // SAFETY: by the caller's word.
    unsafe { buffer.as_ref() }.map_or(std::ptr::null(), |b| b.buffer.shape().dims.as_ptr())
}

/// Waits for a buffer.
///
/// # Safety
/// As the header says of every function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hlo_buffer_wait(buffer: *const HloBuffer) -> *mut HloError {
    // SAFETY: by the caller's word.
    guarded(|| unsafe { object(buffer, "the buffer") }?.buffer.wait())
}

/// Copies a buffer to the host.
///
/// # Safety
/// As the header says of every function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hlo_buffer_read(
    buffer: *const HloBuffer,
    bytes: *mut c_void,
    length: usize,
) -> *mut HloError {
    guarded(|| {
        // SAFETY: by the caller's word.
        let buffer = unsafe { object(buffer, "the buffer") }?;
        buffer.buffer.with_bytes(|from| {
            if from.len() != length || bytes.is_null() && length > 0 {
                return Err(invalid(format!("the buffer has {} bytes, not {length}", from.len())));
            }
            if length > 0 {
                // SAFETY: by the caller's word it has `length` bytes, and nobody else writes to them.
                unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), bytes.cast(), length) };
            }
            Ok(())
        })?
    })
}

/// # Safety
/// As the header says of every function.
unsafe fn execute_options(options: *const HloExecuteOptions) -> Result<ExecuteOptions, Error> {
    // SAFETY: by the caller's word.
    let Some(options) = (unsafe { options.as_ref() }) else { return Ok(ExecuteOptions::default()) };
    if options.struct_size < size_of::<HloExecuteOptions>() {
        return Err(invalid("hlo_execute_options says less than its size"));
    }
    // SAFETY: by the caller's word.
    let donate = unsafe { array(options.donated, options.donated_count, "the donated arguments") }?.to_vec();
    let deadline = match options.timeout_ns {
        0 => None,
        nanoseconds => Instant::now().checked_add(Duration::from_nanos(nanoseconds)),
    };
    Ok(ExecuteOptions {
        donate,
        deadline,
        fuel: Some(options.fuel).filter(|&fuel| fuel > 0),
        rng_seed: options.rng_seed,
        ..ExecuteOptions::default()
    })
}

/// The caller's array of results.
struct ResultSlots {
    next: *mut *mut HloBuffer,
    left: usize,
}

impl Extend<Buffer> for ResultSlots {
    fn extend<I: IntoIterator<Item = Buffer>>(&mut self, buffers: I) {
        for buffer in buffers {
            assert!(self.left > 0, "invariant: a program gives as many arrays as it says");
            // SAFETY: the output array has at least `left` unwritten elements, the first at `next`, and
            // `left > 0`.
            unsafe {
                self.next.write(Box::into_raw(Box::new(HloBuffer { buffer })));
                self.next = self.next.add(1);
            }
            self.left -= 1;
        }
    }
}

/// Checks what an execution is given, and gives the caller what `run` makes.
///
/// # Safety
/// As the header says of every function.
unsafe fn execute(
    executable: *const HloExecutable,
    arguments: *const *mut HloBuffer,
    argument_count: usize,
    options: *const HloExecuteOptions,
    results: *mut *mut HloBuffer,
    result_count: usize,
    run: impl FnOnce(&Executable, &[&Buffer], &ExecuteOptions, &mut ResultSlots) -> Result<(), Error>,
) -> Result<(), Error> {
    // SAFETY: by the caller's word.
    let (executable, mut options) =
        unsafe { (object(executable, "the program")?, execute_options(options)?) };
    options.library.clone_from(&executable.library);
    // SAFETY: by the caller's word.
    let arguments = unsafe { array(arguments, argument_count, "the list of arguments") }?;
    let mut given: SmallVec<[&Buffer; 8]> = SmallVec::with_capacity(arguments.len());
    for &argument in arguments {
        // SAFETY: by the caller's word.
        given.push(&unsafe { object(argument.cast_const(), "an argument") }?.buffer);
    }
    let gives = executable.executable.result_shapes().len();
    if result_count != gives || results.is_null() && gives > 0 {
        let name = executable.executable.name();
        return Err(invalid(format!("{name} gives {gives} arrays; there is a place for {result_count}")));
    }
    run(&executable.executable, &given, &options, &mut ResultSlots { next: results, left: result_count })
}

/// Executes a program.
///
/// # Safety
/// As the header says of every function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hlo_execute(
    executable: *const HloExecutable,
    arguments: *const *mut HloBuffer,
    argument_count: usize,
    options: *const HloExecuteOptions,
    results: *mut *mut HloBuffer,
    result_count: usize,
) -> *mut HloError {
    let run =
        |e: &Executable, a: &[&Buffer], o: &ExecuteOptions, to: &mut ResultSlots| e.execute_into(a, o, to);
    // SAFETY: by the caller's word.
    guarded(|| unsafe { execute(executable, arguments, argument_count, options, results, result_count, run) })
}

/// Executes a program, and returns at once.
///
/// # Safety
/// As the header says of every function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hlo_execute_async(
    executable: *const HloExecutable,
    arguments: *const *mut HloBuffer,
    argument_count: usize,
    options: *const HloExecuteOptions,
    results: *mut *mut HloBuffer,
    result_count: usize,
) -> *mut HloError {
    let run = |e: &Executable, a: &[&Buffer], o: &ExecuteOptions, to: &mut ResultSlots| {
        let arguments: Vec<Buffer> = a.iter().map(|&buffer| buffer.clone()).collect();
        to.extend(e.execute_async(&arguments, o)?);
        Ok(())
    };
    // SAFETY: by the caller's word.
    guarded(|| unsafe { execute(executable, arguments, argument_count, options, results, result_count, run) })
}

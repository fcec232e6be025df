//! Modules: PTX compiled by the driver, their functions and variables.

use std::ffi::{CString, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use cudarc::driver::sys;

use crate::api::{SUCCESS, Status};
use crate::device::Context;
use crate::error::{Error, Result};

/// Bytes of each of the compiler's logs.
const LOG_BYTES: usize = 64 << 10;

/// A module that is loaded.
pub(crate) struct Image {
    pub(crate) handle: sys::CUmodule,
    /// The compiler's messages beside errors.
    log: String,
}

// SAFETY: the handle belongs to the driver, whose functions may be called from any thread.
unsafe impl Send for Image {}
// SAFETY: as above; nothing changes it.
unsafe impl Sync for Image {}

impl Image {
    /// Has the driver compile a text.
    pub(crate) fn compile(context: &Context, ptx: &str) -> Result<Arc<Image>> {
        context.current()?;
        let Ok(text) = CString::new(ptx) else {
            let log = "the text has a NUL byte".to_owned();
            return Err(Error::Compile { name: "not compiled".to_owned(), log, kernel: None, line: None });
        };
        use sys::CUjit_option as J;
        let (mut errors, mut infos) = (vec![0_u8; LOG_BYTES], vec![0_u8; LOG_BYTES]);
        let size = || LOG_BYTES as *mut c_void;
        let mut options = [
            (J::CU_JIT_ERROR_LOG_BUFFER, errors.as_mut_ptr().cast()),
            (J::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, size()),
            (J::CU_JIT_INFO_LOG_BUFFER, infos.as_mut_ptr().cast()),
            (J::CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, size()),
        ];
        let mut names = options.map(|o| o.0);
        let mut values = options.map(|o| o.1);
        options.fill((J::CU_JIT_ERROR_LOG_BUFFER, std::ptr::null_mut()));
        let mut handle = std::ptr::null_mut();
        // SAFETY: the text ends with NUL; there are as many values as options, each of the kind that its
        // option takes (pointers, and sizes as pointers); both logs live beyond the call and are as long as
        // said. The driver writes the handle.
        let status = unsafe {
            (context.api.cuModuleLoadDataEx)(
                &raw mut handle,
                text.as_ptr().cast(),
                names.len() as u32,
                names.as_mut_ptr(),
                values.as_mut_ptr(),
            )
        };
        let log = |bytes: &[u8]| {
            let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
            String::from_utf8_lossy(&bytes[..end]).trim().to_owned()
        };
        if status == SUCCESS {
            return Ok(Arc::new(Image { handle, log: log(&infos) }));
        }
        let refused = [
            sys::CUresult::CUDA_ERROR_INVALID_PTX,
            sys::CUresult::CUDA_ERROR_INVALID_IMAGE,
            sys::CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
            sys::CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU,
            sys::CUresult::CUDA_ERROR_INVALID_SOURCE,
            sys::CUresult::CUDA_ERROR_JIT_COMPILER_NOT_FOUND,
            sys::CUresult::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND,
        ];
        if refused.iter().any(|&r| r as Status == status) {
            let (name, message) = context.api.describe(status);
            let log = log(&errors);
            let (kernel, line) = located(&log, ptx);
            return Err(Error::Compile { name: format!("{message} ({name})"), log, kernel, line });
        }
        context.check("cuModuleLoadDataEx", status)?;
        Ok(Arc::new(Image { handle, log: String::new() }))
    }
}

/// Kernel and line that a log of ptxas names. It says `ptxas application ptx input, line 12; error : ...` or
/// `... error : Entry function 'k' uses too much shared data`. The kernel of a line is the entry that begins
/// last before it.
fn located(log: &str, ptx: &str) -> (Option<String>, Option<u32>) {
    let line: Option<u32> = log.split_once("line ").and_then(|(_, rest)| {
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        rest[..end].parse().ok()
    });
    let named = log.split_once("function '").and_then(|(_, rest)| rest.split('\'').next());
    let entry = |text: &str| {
        let rest = text.split_once(".entry")?.1.trim_start();
        let end = rest.find(|c: char| !(c.is_alphanumeric() || "_$%.".contains(c))).unwrap_or(rest.len());
        Some(rest[..end].to_owned()).filter(|n| !n.is_empty())
    };
    let kernel = match (named, line) {
        (Some(named), _) => Some(named.to_owned()),
        (None, Some(line)) => ptx.lines().take(line as usize).filter_map(entry).last(),
        (None, None) => None,
    };
    (kernel, line)
}

/// A module of a device.
#[derive(Clone)]
pub struct Module {
    pub(crate) context: Arc<Context>,
    pub(crate) image: Arc<Image>,
}

impl Module {
    /// The messages of the driver's compiler beside errors; mostly none.
    #[must_use]
    pub fn log(&self) -> &str {
        &self.image.log
    }

    /// A kernel by its name.
    pub fn function(&self, name: &str) -> Result<Function> {
        self.context.current()?;
        let no_such = || Error::NoSuchSymbol { name: name.to_owned() };
        let symbol = CString::new(name).map_err(|_| no_such())?;
        let api = self.context.api;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the module is loaded, the name ends with NUL, the driver writes a handle.
        let status =
            unsafe { (api.cuModuleGetFunction)(&raw mut handle, self.image.handle, symbol.as_ptr()) };
        if status == sys::CUresult::CUDA_ERROR_NOT_FOUND as Status {
            return Err(no_such());
        }
        self.context.check("cuModuleGetFunction", status)?;
        let mut parameters = Vec::new();
        loop {
            let (mut offset, mut bytes) = (0, 0);
            // SAFETY: the function is of a loaded module; the driver writes two integers, or says that there
            // is no such parameter.
            let status = unsafe {
                (api.cuFuncGetParamInfo)(handle, parameters.len(), &raw mut offset, &raw mut bytes)
            };
            if status == sys::CUresult::CUDA_ERROR_INVALID_VALUE as Status {
                break;
            }
            self.context.check("cuFuncGetParamInfo", status)?;
            parameters.push(bytes);
        }
        let inner = FunctionInner {
            module: self.clone(),
            handle,
            name: name.into(),
            parameters,
            dynamic_shared_bytes: AtomicU32::new(DYNAMIC_SHARED_BYTES),
        };
        Ok(Function { inner: Arc::new(inner) })
    }

    /// Address and bytes of a `.global` or `.const` variable.
    pub fn variable(&self, name: &str) -> Result<(u64, u64)> {
        self.context.current()?;
        let no_such = || Error::NoSuchSymbol { name: name.to_owned() };
        let symbol = CString::new(name).map_err(|_| no_such())?;
        let (mut address, mut bytes) = (0, 0);
        // SAFETY: the module is loaded, the name ends with NUL, the driver writes two integers.
        let status = unsafe {
            let api = self.context.api;
            (api.cuModuleGetGlobal_v2)(&raw mut address, &raw mut bytes, self.image.handle, symbol.as_ptr())
        };
        if status == sys::CUresult::CUDA_ERROR_NOT_FOUND as Status {
            return Err(no_such());
        }
        self.context.check("cuModuleGetGlobal", status)?;
        Ok((address, bytes as u64))
    }
}

/// Bytes of dynamic shared memory that a kernel may have without asking.
const DYNAMIC_SHARED_BYTES: u32 = 48 << 10;

/// A kernel. Clones are the same kernel.
#[derive(Clone)]
pub struct Function {
    pub(crate) inner: Arc<FunctionInner>,
}

pub(crate) struct FunctionInner {
    module: Module,
    pub(crate) handle: sys::CUfunction,
    pub(crate) name: Arc<str>,
    /// Bytes of each parameter.
    pub(crate) parameters: Vec<usize>,
    /// Bytes of dynamic shared memory that it was allowed.
    dynamic_shared_bytes: AtomicU32,
}

// SAFETY: the handle belongs to the driver, whose functions may be called from any thread; the module is kept
// loaded.
unsafe impl Send for FunctionInner {}
// SAFETY: as above; what changes is atomic.
unsafe impl Sync for FunctionInner {}

/// The resources of a kernel by the compiler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FunctionAttributes {
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes of local memory of a thread: spilled registers, arrays.
    pub local_bytes: u32,
    /// Bytes of static shared memory of a block.
    pub shared_bytes: u32,
    /// Bytes of constants.
    pub constant_bytes: u32,
    /// Threads of a block, at most.
    pub max_threads: u32,
    /// 90 for code of sm_90.
    pub binary_version: u32,
}

impl Function {
    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Bytes of each parameter.
    #[must_use]
    pub fn parameters(&self) -> &[usize] {
        &self.inner.parameters
    }

    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.inner.module.context
    }

    /// The resources of it by the compiler.
    pub fn attributes(&self) -> Result<FunctionAttributes> {
        let context = self.context();
        context.current()?;
        let get = |which: sys::CUfunction_attribute| -> Result<u32> {
            let mut value = 0;
            // SAFETY: the function is of a loaded module; the driver writes an integer.
            let status =
                unsafe { (context.api.cuFuncGetAttribute)(&raw mut value, which, self.inner.handle) };
            context.check("cuFuncGetAttribute", status)?;
            Ok(u32::try_from(value).unwrap_or(0))
        };
        use sys::CUfunction_attribute as A;
        Ok(FunctionAttributes {
            registers: get(A::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
            local_bytes: get(A::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
            shared_bytes: get(A::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
            constant_bytes: get(A::CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES)?,
            max_threads: get(A::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
            binary_version: get(A::CU_FUNC_ATTRIBUTE_BINARY_VERSION)?,
        })
    }

    /// Allows `bytes` bytes of dynamic shared memory, if that is more than the default limit.
    pub(crate) fn allow_shared(&self, bytes: u32) -> Result<()> {
        if bytes <= self.inner.dynamic_shared_bytes.load(Ordering::Relaxed) {
            return Ok(());
        }
        let context = self.context();
        let value = i32::try_from(bytes).unwrap_or(i32::MAX);
        // SAFETY: the function is of a loaded module.
        let status = unsafe {
            let which = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            (context.api.cuFuncSetAttribute)(self.inner.handle, which, value)
        };
        if status == sys::CUresult::CUDA_ERROR_INVALID_VALUE as Status {
            let most = context.info.shared_bytes_per_block_opt_in;
            let message = format!("{bytes} bytes of dynamic shared memory; the device has {most} a block");
            return Err(Error::Launch { kernel: self.name().to_owned(), message });
        }
        context.check("cuFuncSetAttribute", status)?;
        self.inner.dynamic_shared_bytes.fetch_max(bytes, Ordering::Relaxed);
        Ok(())
    }

    /// Whether arguments fit the parameters.
    pub(crate) fn check_arguments(&self, arguments: &[Vec<u8>]) -> Result<()> {
        let refused = |message: String| Err(Error::Launch { kernel: self.name().to_owned(), message });
        let parameters = self.parameters();
        if parameters.len() != arguments.len() {
            return refused(format!(
                "it has {} parameters, the launch {}",
                parameters.len(),
                arguments.len()
            ));
        }
        for (i, (&bytes, a)) in parameters.iter().zip(arguments).enumerate() {
            if a.len() != bytes {
                return refused(format!("parameter {i} has {bytes} bytes, the argument {}", a.len()));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_of_the_compiler_are_located() {
        let ptx = ".version 8.0\n.visible .entry one(\n)\n{\nret;\n}\n.visible .entry two()\n{\n  oops;\n}\n";
        let log =
            "ptxas application ptx input, line 9; error   : Not a name of any known instruction: 'oops'";
        assert_eq!(located(log, ptx), (Some("two".to_owned()), Some(9)));
        let log =
            "ptxas error   : Entry function 'one' uses too much shared data (0x20000 bytes, 0xc000 max)";
        assert_eq!(located(log, ptx), (Some("one".to_owned()), None));
        assert_eq!(located("", ptx), (None, None));
    }
}

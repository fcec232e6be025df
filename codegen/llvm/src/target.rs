//! Targets, and object code of modules.

use std::cell::RefCell;
use std::ffi::CStr;
use std::sync::{Once, OnceLock};

use hlo_library_base::configuration;
use hlo_library_base::isa::Isa;
use inkwell::OptimizationLevel;
use inkwell::llvm_sys::support::LLVMParseCommandLineOptions;
use inkwell::module::Module;
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::{
    CodeModel, FileType, InitializationConfig, RelocMode, Target as LlvmTarget, TargetMachine, TargetTriple,
};

use super::{Error, Result, function::take_complaint, split_dwarf};

/// Optimization levels.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Level {
    /// Nothing: the fastest compilation.
    O0,
    /// No passes, code generation that optimizes a little.
    O1,
    /// A short list of passes, the same code generation.
    #[default]
    O2,
    /// More passes on loops, and a more thorough code generation. LLVM's loop and vector passes are in no
    /// level: they see vectors already, and some take exponential time on long expressions.
    O3,
}

impl Level {
    /// All of them.
    pub const ALL: [Level; 4] = [Level::O0, Level::O1, Level::O2, Level::O3];

    const fn codegen(self) -> OptimizationLevel {
        match self {
            Level::O0 => OptimizationLevel::None,
            Level::O1 | Level::O2 => OptimizationLevel::Less,
            Level::O3 => OptimizationLevel::Aggressive,
        }
    }

    /// Emitted code is in SSA form with explicit vectors and rotated loops: little remains to be done.
    const fn passes(self, machine: MachineKind) -> Option<&'static str> {
        match (self, machine) {
            (Level::O0 | Level::O1, _) => None,
            // ptxas optimizes what is inside registers; addresses, redundant loads and branches are better
            // seen here.
            (Level::O2 | Level::O3, MachineKind::Nvptx) => Some(
                "function(sroa,early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg,loop-mssa(licm),gvn,instcombine<no-verify-fixpoint>,simplifycfg,dce)",
            ),
            (Level::O2, MachineKind::Host) => Some("function(early-cse)"),
            // Not `instcombine`: it leaves shuffles with unused lanes, on which LLVM 22's
            // legalization of AVX-512 vectors of bytes never ends.
            (Level::O3, MachineKind::Host) => {
                Some("function(early-cse<memssa>,instsimplify,simplifycfg,loop-mssa(licm),early-cse)")
            }
        }
    }
}

/// The kind of code.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum MachineKind {
    /// Machine code for a processor.
    Host,
    /// PTX.
    Nvptx,
}

/// A processor to compile for.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Target {
    machine: MachineKind,
    cpu: String,
    features: String,
    level: Level,
    vector_bytes: u32,
    /// The triple; empty: the one that LLVM was built for.
    triple: String,
    x86: bool,
}

/// A processor family that objects can be made for, whatever the host is.
struct Family {
    /// How its triples begin.
    arch: &'static str,
    /// Its processors, that of the least features first.
    cpus: &'static [&'static str],
    /// Features that may be added or removed.
    features: &'static [&'static str],
    /// The features that generated code requires.
    needed: &'static [&'static str],
}

const FAMILIES: [Family; 2] = [
    Family {
        arch: "x86_64",
        cpus: &["x86-64-v3", "x86-64-v4"],
        features: &[
            "avx512f",
            "avx512bw",
            "avx512dq",
            "avx512vl",
            "avx512cd",
            "avx512vnni",
            "avx512bf16",
            "avx512fp16",
            "avx512vbmi",
            "avx512vbmi2",
            "avx512ifma",
            "avx512bitalg",
            "avx512vpopcntdq",
            "vaes",
            "gfni",
        ],
        needed: X86_NEEDED,
    },
    Family {
        arch: "aarch64",
        cpus: &[
            "generic",
            "cortex-a53",
            "cortex-a72",
            "cortex-a76",
            "neoverse-n1",
            "neoverse-v1",
            "neoverse-v2",
        ],
        features: &["crc", "lse", "rdm", "dotprod", "fullfp16", "bf16", "i8mm"],
        needed: AARCH64_NEEDED,
    },
];

/// The host's family.
const HERE: &str = if cfg!(target_arch = "x86_64") { "x86_64" } else { "aarch64" };

/// The features of x86-64-v3.
const X86_NEEDED: &[&str] = &["avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "popcnt"];

/// The features of every aarch64.
const AARCH64_NEEDED: &[&str] = &["fp-armv8", "neon"];

/// The AVX-512 features that vectors of 64 bytes require.
const WIDE: [&str; 5] = ["avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd"];

/// Processors with a name here other than "native".
const NAMED: &[&str] = if cfg!(target_arch = "x86_64") { &["x86-64-v3", "x86-64-v4"] } else { &[] };

/// The compute capabilities that PTX is made for. Each implies the least PTX ISA version that has it (sm_75
/// 6.3, sm_80 7.0, sm_86 7.1, sm_89 and sm_90 7.8, sm_100 8.6, sm_120 8.7), which is what LLVM writes unless
/// a feature raises it: drivers refuse versions newer than they are.
pub const NVPTX_ARCHITECTURES: &[&str] = &["sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"];

/// The longest vector in one memory access of PTX.
const NVPTX_VECTOR_BYTES: u32 = 16;

const NVPTX_TRIPLE: &str = "nvptx64-nvidia-cuda";

/// Features that generated code requires (fused multiply-add, conversion of f16). On x86-64 those of
/// x86-64-v3; every aarch64 has what is named here, whether LLVM detects it or not.
const NEEDED: &[&str] = if cfg!(target_arch = "x86_64") { X86_NEEDED } else { AARCH64_NEEDED };

/// LLVM's options, set once per process. Addresses are linear in loop variables as they are emitted, and
/// processors scale them: rewriting them (loop strength reduction) takes a sixth of the compilation and
/// changes little. The order of instructions is chosen at selection; processors reorder them anyway.
const OPTIONS: [&CStr; 3] = [c"hlo", c"-disable-lsr", c"-enable-misched=0"];

/// The host's processor. Asking it takes a while: under a hypervisor each question is a trap.
struct Host {
    name: String,
    features: String,
}

/// Features of a processor, without those beyond `max_isa`.
fn allowed(features: &str, max_isa: Option<Isa>) -> String {
    let allowed = |feature: &str| {
        let unwanted = |name: &&str| max_isa.is_some_and(|isa| !isa.allows(name));
        feature.strip_prefix('+').filter(unwanted).map_or(feature.to_owned(), |name| format!("-{name}"))
    };
    features.split(',').map(allowed).collect::<Vec<_>>().join(",")
}

/// Initializes LLVM, once.
fn host() -> Result<&'static Host> {
    static HOST: OnceLock<std::result::Result<Host, String>> = OnceLock::new();
    let host = HOST.get_or_init(|| {
        LlvmTarget::initialize_native(&InitializationConfig::default())?;
        let options = OPTIONS.map(CStr::as_ptr);
        // SAFETY: as many strings as it says, alive for ever; nothing else of LLVM's runs yet in this
        // process, for all begins with a target.
        unsafe { LLVMParseCommandLineOptions(options.len() as i32, options.as_ptr(), std::ptr::null()) };
        let name = TargetMachine::get_host_cpu_name().to_string();
        let features = TargetMachine::get_host_cpu_features().to_string();
        Ok(Host { name, features })
    });
    host.as_ref().map_err(|message| Error::Target(message.clone()))
}

impl Target {
    /// The host's processor.
    pub fn host(level: Level) -> Result<Self> {
        Self::new("native", "", level)
    }

    /// "native" or a processor by LLVM's name (on x86-64 "x86-64-v3" and "x86-64-v4"), with features added
    /// and removed ("+avx512f,-avx512bf16"). What is beyond the instruction sets of this thread's
    /// configuration counts as lacking. Errors: other names, features that this machine lacks, x86 processors
    /// below x86-64-v3.
    pub fn new(cpu: &str, features: &str, level: Level) -> Result<Self> {
        let Host { name, features: host } = host()?;
        let host = allowed(host, configuration::current().max_isa());
        let has = |name: &str| host.split(',').any(|f| f.strip_prefix('+') == Some(name));
        let mut all = match cpu {
            "native" => host.clone(),
            _ if NAMED.contains(&cpu) => String::new(),
            _ => {
                let known = ["native"].iter().chain(NAMED).copied().collect::<Vec<_>>().join(", ");
                return Err(Error::Target(format!("unknown processor \"{cpu}\": there are {known}")));
            }
        };
        for feature in features.split(',').filter(|f| !f.is_empty()) {
            let Some(name) = feature.strip_prefix(['+', '-']) else {
                return Err(Error::Target(format!("feature \"{feature}\" begins with neither + nor -")));
            };
            if !host.split(',').any(|f| f.strip_prefix(['+', '-']) == Some(name)) {
                return Err(Error::Target(format!("unknown feature \"{name}\" of the processor")));
            }
            if feature.starts_with('+') && !has(name) {
                return Err(Error::Target(format!("this machine has no \"{name}\"")));
            }
            if feature.starts_with('-') && NEEDED.contains(&name) {
                return Err(Error::Target(format!("generated code needs \"{name}\"")));
            }
            all = if all.is_empty() { feature.to_owned() } else { format!("{all},{feature}") };
        }
        let wide = WIDE;
        if cfg!(target_arch = "x86_64") {
            let level: &[&str] = if cpu == "x86-64-v4" { &wide } else { &[] };
            if let Some(lacking) = NEEDED.iter().chain(level).find(|f| !has(f)) {
                return Err(Error::Target(format!(
                    "this machine has no \"{lacking}\", which generated code needs"
                )));
            }
        }
        let enabled = |name: &str| {
            let last = all.split(',').rfind(|f| f.strip_prefix(['+', '-']) == Some(name));
            last.map_or(cpu == "x86-64-v4", |f| f.starts_with('+'))
        };
        let vector_bytes = match () {
            () if cfg!(not(target_arch = "x86_64")) => 16,
            () if wide.iter().all(|f| enabled(f)) => 64,
            () => 32,
        };
        let cpu = match cpu {
            "native" => name.to_owned(),
            other => other.to_owned(),
        };
        let x86 = cfg!(target_arch = "x86_64");
        let triple = String::new();
        Ok(Self { machine: MachineKind::Host, cpu, features: all, level, vector_bytes, triple, x86 })
    }

    /// A processor that need not be the host's, by LLVM's names: a triple of `x86_64` or `aarch64` whose
    /// objects are ELF (empty: that of the host), a processor (empty: the one with the fewest features that
    /// is supported; "native": the host's), and features added and removed. Errors: unknown names, removal of
    /// required features.
    pub fn of_triple(triple: &str, cpu: &str, features: &str, level: Level) -> Result<Self> {
        static EACH: Once = Once::new();
        // LLVM's options are parsed first.
        host()?;
        EACH.call_once(|| {
            LlvmTarget::initialize_x86(&InitializationConfig::default());
            LlvmTarget::initialize_aarch64(&InitializationConfig::default());
        });
        let fail = |message: String| Err(Error::Target(message));
        let here = TargetMachine::get_default_triple().as_str().to_string_lossy().into_owned();
        let triple = if triple.is_empty() { here } else { triple.to_owned() };
        let arch = triple.split('-').next().unwrap_or_default();
        let Some(family) = FAMILIES.iter().find(|family| family.arch == arch) else {
            let known = FAMILIES.map(|family| family.arch).join(", ");
            return fail(format!("objects are made for {known}, not for \"{triple}\""));
        };
        if !["linux", "none", "elf"]
            .iter()
            .any(|system| triple.split('-').skip(1).any(|part| part.starts_with(system)))
        {
            return fail(format!("objects are ELF, as of Linux: not what \"{triple}\" has"));
        }
        let is_here = arch == HERE;
        if cpu == "native" {
            if !is_here {
                return fail(format!("\"native\" is a processor of {}, not of \"{triple}\"", HERE));
            }
            return Ok(Self { triple, ..Self::new(cpu, features, level)? });
        }
        let cpu = if cpu.is_empty() { family.cpus[0] } else { cpu };
        if !family.cpus.contains(&cpu) {
            let native = if is_here { "native, " } else { "" };
            return fail(format!(
                "unknown processor \"{cpu}\" of {arch}: there are {native}{}",
                family.cpus.join(", ")
            ));
        }
        for feature in features.split(',').filter(|f| !f.is_empty()) {
            let Some(name) = feature.strip_prefix(['+', '-']) else {
                return fail(format!("feature \"{feature}\" begins with neither + nor -"));
            };
            if family.needed.contains(&name) && feature.starts_with('-') {
                return fail(format!("generated code needs \"{name}\""));
            }
            if !family.features.contains(&name) && !family.needed.contains(&name) {
                return fail(format!(
                    "unknown feature \"{name}\" of {arch}: there are {}",
                    family.features.join(", ")
                ));
            }
        }
        let x86 = arch == "x86_64";
        let enabled = |name: &str| {
            let last = features.split(',').rfind(|f| f.strip_prefix(['+', '-']) == Some(name));
            last.map_or(cpu == "x86-64-v4", |f| f.starts_with('+'))
        };
        let vector_bytes = match () {
            () if !x86 => 16,
            () if WIDE.iter().all(|f| enabled(f)) => 64,
            () => 32,
        };
        let (machine, cpu, features) = (MachineKind::Host, cpu.to_owned(), features.to_owned());
        Ok(Self { machine, cpu, features, level, vector_bytes, triple, x86 })
    }

    /// Whether it is an x86-64.
    pub fn is_x86(&self) -> bool {
        self.x86
    }

    /// The triple; empty: what LLVM was built for.
    pub fn triple(&self) -> &str {
        &self.triple
    }

    /// PTX for a compute capability, one of [`NVPTX_ARCHITECTURES`]. Errors: another name.
    pub fn nvptx(arch: &str, level: Level) -> Result<Self> {
        static NVPTX: Once = Once::new();
        if !NVPTX_ARCHITECTURES.contains(&arch) {
            let known = NVPTX_ARCHITECTURES.join(", ");
            return Err(Error::Target(format!("unknown compute capability \"{arch}\": there are {known}")));
        }
        // LLVM's options are parsed first.
        host()?;
        // There is no parser of assembly for it to be initialized.
        NVPTX.call_once(|| LlvmTarget::initialize_nvptx(&InitializationConfig::default()));
        Ok(Self {
            machine: MachineKind::Nvptx,
            cpu: arch.to_owned(),
            features: String::new(),
            level,
            vector_bytes: NVPTX_VECTOR_BYTES,
            triple: String::new(),
            x86: false,
        })
    }

    /// Whether it makes PTX.
    pub fn is_nvptx(&self) -> bool {
        self.machine == MachineKind::Nvptx
    }

    /// The host's processor, and, where it can have shorter vectors, one that has those: what tests of
    /// kernels run on. Errors: LLVM knows neither.
    pub fn tested(level: Level) -> Result<Vec<Self>> {
        let named = NAMED.first().map(|cpu| Self::new(cpu, "", level));
        [Self::host(level)].into_iter().chain(named).collect()
    }

    /// For people: the processor and its vectors, such as `znver4, avx512`.
    pub fn describe(&self) -> String {
        if self.is_nvptx() {
            return self.cpu.clone();
        }
        let vectors = match self.vector_bytes {
            64 => "avx512",
            32 => "avx2",
            _ => "128-bit vectors",
        };
        format!("{}, {vectors}", self.cpu)
    }

    /// LLVM's name of the processor.
    pub fn cpu(&self) -> &str {
        &self.cpu
    }

    /// Features, as LLVM writes them.
    pub fn features(&self) -> &str {
        &self.features
    }

    /// The optimization level.
    pub fn level(&self) -> Level {
        self.level
    }

    /// The same processor at another level.
    pub fn at(&self, level: Level) -> Self {
        Self { level, ..self.clone() }
    }

    /// Bytes of a vector register: 64, 32 or 16.
    pub fn vector_bytes(&self) -> u32 {
        self.vector_bytes
    }

    /// Whether the processor has a feature.
    pub fn has(&self, feature: &str) -> bool {
        let last = self.features.split(',').rfind(|f| f.strip_prefix(['+', '-']) == Some(feature));
        last.is_some_and(|f| f.starts_with('+'))
    }

    /// Sets a module's target. To be called before code is emitted.
    pub fn prepare(&self, module: &Module<'_>) -> Result<()> {
        self.with_machine(|machine| {
            module.set_triple(&machine.get_triple());
            module.set_data_layout(&machine.get_target_data().get_data_layout());
            Ok(())
        })
    }

    /// Verifies a module, since LLVM crashes on what is not well formed, and runs the passes of the level.
    pub fn optimize(&self, module: &Module<'_>) -> Result<()> {
        module.verify()?;
        match self.level.passes(self.machine) {
            Some(passes) => self.run_passes(module, passes),
            None => Ok(()),
        }
    }

    /// Runs passes by LLVM's names for them.
    pub fn run_passes(&self, module: &Module<'_>, passes: &str) -> Result<()> {
        self.with_machine(|machine| {
            module.run_passes(passes, machine, PassBuilderOptions::create())?;
            complaint()
        })
    }

    /// Relocatable object code of a module that was optimized.
    pub fn object(&self, module: &Module<'_>) -> Result<Vec<u8>> {
        self.emit(module, FileType::Object)
    }

    /// The same with debugging information in a second file, the result's second, which the object calls
    /// `name`.
    pub fn split_object(&self, module: &Module<'_>, name: &str) -> Result<(Vec<u8>, Vec<u8>)> {
        self.emitting(module, |machine| split_dwarf::emit(machine, module, name))
    }

    /// Assembly of a module that was optimized: of a GPU PTX.
    pub fn assembly(&self, module: &Module<'_>) -> Result<String> {
        Ok(String::from_utf8_lossy(&self.emit(module, FileType::Assembly)?).into_owned())
    }

    fn emit(&self, module: &Module<'_>, kind: FileType) -> Result<Vec<u8>> {
        self.emitting(module, |machine| {
            let buffer = machine.write_to_memory_buffer(module, kind)?;
            Ok(buffer.as_slice().to_vec())
        })
    }

    /// Emits a module. A machine keeps the addresses of what `llvm.used` of a module names, and never forgets
    /// them (`Used` of LLVM's `TargetLoweringObjectFileELF`): a function of a later module that has one of
    /// these would get a section of its own, marked to be retained. So what emitted such a module is not used
    /// again.
    fn emitting<T>(&self, module: &Module<'_>, f: impl FnOnce(&TargetMachine) -> Result<T>) -> Result<T> {
        let emitted = self.with_machine(|machine| {
            let emitted = f(machine)?;
            complaint()?;
            Ok(emitted)
        });
        if module.get_global("llvm.used").is_some() {
            MACHINES.with(|machines| machines.borrow_mut().retain(|(target, _)| target != self));
        }
        emitted
    }

    /// Calls with this thread's target machine, which is created once.
    fn with_machine<T>(&self, f: impl FnOnce(&TargetMachine) -> Result<T>) -> Result<T> {
        MACHINES.with(|machines| {
            if !machines.borrow().iter().any(|(target, _)| target == self) {
                let machine = self.machine()?;
                machines.borrow_mut().push((self.clone(), machine));
            }
            let machines = machines.borrow();
            let found = machines.iter().find(|(target, _)| target == self);
            f(&found.expect("invariant: made above").1)
        })
    }

    fn machine(&self) -> Result<TargetMachine> {
        let triple = match self.machine {
            MachineKind::Host if self.triple.is_empty() => TargetMachine::get_default_triple(),
            MachineKind::Host => TargetTriple::create(&self.triple),
            MachineKind::Nvptx => TargetTriple::create(NVPTX_TRIPLE),
        };
        // Of PTX code generation is cheap, and it shares address arithmetic among accesses.
        let codegen = match (self.machine, self.level) {
            (MachineKind::Nvptx, Level::O2) => OptimizationLevel::Default,
            (MachineKind::Nvptx | MachineKind::Host, level) => level.codegen(),
        };
        LlvmTarget::from_triple(&triple)?
            .create_target_machine(
                &triple,
                &self.cpu,
                &self.features,
                codegen,
                RelocMode::PIC,
                CodeModel::Small,
            )
            .ok_or_else(|| Error::Target(format!("LLVM has no machine for {triple} {}", self.cpu)))
    }
}

thread_local! {
    /// The target machines of this thread.
    static MACHINES: RefCell<Vec<(Target, TargetMachine)>> = const { RefCell::new(Vec::new()) };
}

/// What LLVM complained of, as an error.
fn complaint() -> Result<()> {
    take_complaint().map_or(Ok(()), |message| Err(Error::Llvm(message)))
}

// An object and the DWARF file that is split off it: of LLVM's C++ interface what its C interface does not have
// (the name of the file, and a second stream to write).
#include <llvm-c/Core.h>
#include <llvm-c/TargetMachine.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

using namespace llvm;

// Emits a module that was optimized. `name` is what the object calls the DWARF file. False: the target cannot emit
// objects, and the buffers are not set; else the caller owns both.
extern "C" bool hlo_emit_split_dwarf(LLVMTargetMachineRef machine, LLVMModuleRef module, const char *name,
                                     LLVMMemoryBufferRef *object, LLVMMemoryBufferRef *dwarf) {
  TargetMachine &target = *reinterpret_cast<TargetMachine *>(machine);
  SmallVector<char, 0> code, debug;
  raw_svector_ostream code_stream(code), debug_stream(debug);
  legacy::PassManager passes;
  target.Options.MCOptions.SplitDwarfFile = name;
  const bool unsupported = target.addPassesToEmitFile(passes, code_stream, &debug_stream, CodeGenFileType::ObjectFile);
  if (!unsupported)
    passes.run(*unwrap(module));
  target.Options.MCOptions.SplitDwarfFile.clear();
  if (unsupported)
    return false;
  *object = LLVMCreateMemoryBufferWithMemoryRangeCopy(code.data(), code.size(), "");
  *dwarf = LLVMCreateMemoryBufferWithMemoryRangeCopy(debug.data(), debug.size(), "");
  return true;
}

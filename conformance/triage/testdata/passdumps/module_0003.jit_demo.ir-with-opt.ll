; ModuleID = 'jit_demo'

#!/usr/bin/env python3
"""Writes elementwise/chains.hlo: long chains of operations of one element, in fusions of sizes that registers divide and do not, by numpy, whose sums
and products round as those here do.

    make_chains.py            needs numpy; run it in this folder
"""
import numpy as np

T={"s32":np.int32,"u8":np.uint8,"u64":np.uint64,"f32":np.float32,"f64":np.float64}
STEPS=14
SIZES=[(64,),(320,),(3,192),(7,5,256),(130,),(8192,)]

def chain(ty,shape):
    """The lines of the computation, and the same in numpy."""
    dims=",".join(map(str,shape)); t=f"{ty}[{dims}]"; row=f"{ty}[{shape[-1]}]"
    floats=ty[0]=="f"
    L=[f"  x = {t} parameter(0)",f"  y = {row} parameter(1)",f"  z = {t} broadcast(y), dimensions={{{len(shape)-1}}}"]
    c={"a":"0.75" if floats else "5","b":"-1.5" if floats else "3","s":"3"}
    for n,v in c.items():
        if n=="s" and floats: continue
        L+=[f"  {n}0 = {ty}[] constant({v})",f"  {n} = {t} broadcast({n}0), dimensions={{}}"]
    def f(x,y):
        k=T[ty]
        z=np.broadcast_to(y,shape); v=x
        with np.errstate(all="ignore"):
            for i in range(STEPS):
                v=v*k(float(c["a"]) if floats else int(c["a"])); v=v+(z if i%3==0 else k(float(c["b"])) if floats else k(int(c["b"])))
                if not floats: v=v^(v>>k(3))
        return v.astype(k)
    at="x"
    for i in range(STEPS):
        L+=[f"  m{i} = {t} multiply({at}, a)",f"  p{i} = {t} add(m{i}, {'z' if i%3==0 else 'b'})"]; at=f"p{i}"
        if not floats:
            shift="shift-right-arithmetic" if ty[0]=="s" else "shift-right-logical"
            L+=[f"  h{i} = {t} {shift}(p{i}, s)",f"  q{i} = {t} xor(p{i}, h{i})"]; at=f"q{i}"
    L[-1]="  ROOT"+L[-1][1:]
    return L,f

out=[]
for ty in T:
    for shape in SIZES:
        n=int(np.prod(shape)); dims=",".join(map(str,shape)); step=max(n//7,1)
        L,f=chain(ty,shape)
        x=np.arange(n).astype(T[ty]).reshape(shape); y=np.arange(shape[-1]).astype(T[ty])
        r=f(x,y).reshape(-1)
        e=[f"// ==== {ty}[{dims}]","// test: interpret","// origin: numpy","HloModule t","chain {"]+L+["}","ENTRY e {",
           f"  n = {ty}[{n}] iota(), iota_dimension=0",f"  x = {ty}[{dims}] reshape(n)",f"  y = {ty}[{shape[-1]}] iota(), iota_dimension=0",
           f"  r = {ty}[{dims}] fusion(x, y), kind=kLoop, calls=chain",f"  f = {ty}[{n}] reshape(r)"]
        m=len(range(0,n,step)); e+=[f"  ROOT s = {ty}[{m}] slice(f), slice={{[0:{n}:{step}]}}","}"]
        # As many digits as tell numbers of the type apart.
        show=(lambda v: repr(v.item()) if ty=="f64" else np.format_float_positional(v,unique=True,trim="0")) if ty[0]=="f" else (lambda v: str(int(v)))
        e.append(f"// run: e() == [{', '.join(show(v) for v in r[::step])}]")
        out.append("\n".join(e)+"\n")
open("elementwise/chains.hlo","w").write("\n".join(out))

#!/usr/bin/env python3
"""Writes movement/strides.hlo (every so many-th element, by slices and by columns) and ops/odd-rows.hlo (folds of rows that no number of registers divides), by
numpy's integers.

    make_odd_sizes.py         needs numpy; run it in this folder
"""
import numpy as np

T={"s32":np.int32,"u8":np.uint8,"f64":np.float64}
def listed(x): return "["+", ".join(str(int(v)) for v in x)+"]"

out=[]
for ty in T:
    for step in (2,3,4,5,6,7,8,9):
        for n in (step*16,step*37-1):
            x=np.arange(n)%100; m=len(range(0,n,step)); k=len(range(1,n,step))
            # Something is computed, so that this is a loop; what comes of it is weighed, so that its places count.
            def weighed(v): return int(((v.astype(np.int64)*3+1)*(np.arange(len(v))%7+1)).sum())
            e=[f"// ==== every {step}th of {ty}[{n}]","// test: interpret","// origin: numpy","HloModule t","plus {","  a = s32[] parameter(0)","  b = s32[] parameter(1)","  ROOT r = s32[] add(a, b)","}","ENTRY e {",
               f"  n = s32[{n}] iota(), iota_dimension=0","  h = s32[] constant(100)",f"  hs = s32[{n}] broadcast(h), dimensions={{}}",f"  w = s32[{n}] remainder(n, hs)",f"  x = {ty}[{n}] convert(w)",
               "  three = s32[] constant(3)","  one = s32[] constant(1)","  seven = s32[] constant(7)","  zero = s32[] constant(0)"]
            for q,(first,count) in {"a":(0,m),"b":(1,k)}.items():
                t=f"s32[{count}]"
                e+=[f"  {q}s = {ty}[{count}] slice(x), slice={{[{first}:{n}:{step}]}}",f"  {q}c = {t} convert({q}s)",f"  {q}3 = {t} broadcast(three), dimensions={{}}",f"  {q}1 = {t} broadcast(one), dimensions={{}}",
                    f"  {q}m = {t} multiply({q}c, {q}3)",f"  {q}p = {t} add({q}m, {q}1)",f"  {q}i = {t} iota(), iota_dimension=0",f"  {q}7 = {t} broadcast(seven), dimensions={{}}",f"  {q}r = {t} remainder({q}i, {q}7)",
                    f"  {q}w = {t} add({q}r, {q}1)",f"  {q}v = {t} multiply({q}p, {q}w)",f"  {q} = s32[] reduce({q}v, zero), dimensions={{0}}, to_apply=plus"]
            e+=["  ROOT r = (s32[], s32[]) tuple(a, b)","}",f"// run: e() == {weighed(x[0::step])}, {weighed(x[1::step])}"]
            out.append("\n".join(e)+"\n")
open("movement/strides.hlo","w").write("\n".join(out))

out=[]
for n in (1,15,16,17,31,33,63,64,65,79,80,81,95,127,128,129,191,200,1237):
    rows=5; x=(np.arange(rows*n,dtype=np.int64)*7919%1009-500).astype(np.int32).reshape(rows,n)
    L=[f"// ==== rows of {n}","// test: interpret","// origin: numpy","HloModule t"]
    for name,op in (("plus","add"),("most","maximum"),("least","minimum")):
        L+=[f"{name} {{","  a = s32[] parameter(0)","  b = s32[] parameter(1)",f"  ROOT r = s32[] {op}(a, b)","}"]
    L+=["fmost {","  a = f32[] parameter(0)","  b = f32[] parameter(1)","  ROOT r = f32[] maximum(a, b)","}","ENTRY e {",f"  n = s32[{rows*n}] iota(), iota_dimension=0"]
    for k,v in (("p",7919),("q",1009),("h",500)): L+=[f"  {k}0 = s32[] constant({v})",f"  {k} = s32[{rows*n}] broadcast({k}0), dimensions={{}}"]
    L+=[f"  m = s32[{rows*n}] multiply(n, p)",f"  r = s32[{rows*n}] remainder(m, q)",f"  d = s32[{rows*n}] subtract(r, h)",f"  x = s32[{rows},{n}] reshape(d)",f"  f = f32[{rows},{n}] convert(x)",
        "  zero = s32[] constant(0)","  low = s32[] constant(-2147483648)","  high = s32[] constant(2147483647)","  inf = f32[] constant(-inf)"]
    L+=[f"  a = s32[{rows}] reduce(x, zero), dimensions={{1}}, to_apply=plus",f"  b = s32[{rows}] reduce(x, low), dimensions={{1}}, to_apply=most",f"  c = s32[{rows}] reduce(x, high), dimensions={{1}}, to_apply=least",
        f"  g = f32[{rows}] reduce(f, inf), dimensions={{1}}, to_apply=fmost",f"  gi = s32[{rows}] convert(g)",f"  all = s32[] reduce(x, zero), dimensions={{0,1}}, to_apply=plus",
        f"  ROOT t = (s32[{rows}], s32[{rows}], s32[{rows}], s32[{rows}], s32[]) tuple(a, b, c, gi, all)","}"]
    L.append(f"// run: e() == {listed(x.sum(1))}, {listed(x.max(1))}, {listed(x.min(1))}, {listed(x.max(1))}, {int(x.sum())}")
    out.append("\n".join(L)+"\n")
open("ops/odd-rows.hlo","w").write("\n".join(out))

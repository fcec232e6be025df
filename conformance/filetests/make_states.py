#!/usr/bin/env python3
"""Writes control/state-changes-places.hlo: loops whose state moves from one place to another, run several times, by numpy's integers.

    make_states.py            needs numpy; run it in this folder
"""
import numpy as np

R,C=400,50
N=R*C
def roll(x): return np.concatenate([x[1:],x[:1]])
def roll_hlo(n,x): return [f"{n}.t = s32[{N-1}] slice({x}), slice={{[1:{N}]}}",f"{n}.h = s32[1] slice({x}), slice={{[0:1]}}",f"{n} = s32[{N}] concatenate({n}.t, {n}.h), dimensions={{0}}"]
cases={
 "a history of two":(2,["ROLL r s1","t = s32[N] add(s0, r)"],["s1","t"],lambda s:[s[1],s[0]+roll(s[1])]),
 "two that change places":(2,[],["s1","s0"],lambda s:[s[1],s[0]]),
 "a history of three":(3,["ROLL r s0","t = s32[N] subtract(s2, r)"],["s1","s2","t"],lambda s:[s[1],s[2],s[2]-roll(s[0])]),
 "a circle of three, and what each becomes":(3,["ROLL r s0"],["s1","s2","r"],lambda s:[s[1],s[2],roll(s[0])]),
 "state that one moves to which never changes":(3,["ROLL r s1","t = s32[N] add(s0, r)"],["s2","t","s2"],lambda s:[s[2],s[0]+roll(s[1]),s[2]]),
 "one new value for two":(3,["ROLL r s1","t = s32[N] add(s0, r)"],["t","t","s1"],lambda s:[s[0]+roll(s[1]),s[0]+roll(s[1]),s[1]]),
 "two alone, each of its own neighbours":(2,["ROLL r s0","ROLL q s1","t = s32[N] add(q, s0)","u = s32[N] subtract(r, s1)"],["t","u"],lambda s:[roll(s[1])+s[0],roll(s[0])-s[1]]),
}
out=[]
for name,(k,body,roots,f) in cases.items():
    st=", ".join(["s32[]"]*2+[f"s32[{N}]"]*k)
    L=[f"// ==== {name}","// test: interpret","// origin: numpy","HloModule t","body {",f"  p = ({st}) parameter(0)","  i = s32[] get-tuple-element(p), index=0","  n = s32[] get-tuple-element(p), index=1"]
    L+=[f"  s{j} = s32[{N}] get-tuple-element(p), index={j+2}" for j in range(k)]
    for b in body:
        if b.startswith("ROLL"): _,n,x=b.split(); L+=["  "+l for l in roll_hlo(n,x)]
        else: L.append("  "+b.replace("[N]",f"[{N}]"))
    L+=["  one = s32[] constant(1)","  next = s32[] add(i, one)",f"  ROOT r0 = ({st}) tuple(next, n, {', '.join(roots)})","}","condition {",f"  p = ({st}) parameter(0)","  i = s32[] get-tuple-element(p), index=0","  n = s32[] get-tuple-element(p), index=1","  ROOT r = pred[] compare(i, n), direction=LT","}","ENTRY e {","  n = s32[] parameter(0)","  zero = s32[] constant(0)",f"  a0 = s32[{N}] iota(), iota_dimension=0"]
    for j in range(1,k): L+=[f"  c{j} = s32[] constant({3*j+1})",f"  b{j} = s32[{N}] broadcast(c{j}), dimensions={{}}",f"  a{j} = s32[{N}] multiply(a0, b{j})"]
    L+=[f"  t = ({st}) tuple(zero, n, {', '.join(f'a{j}' for j in range(k))})",f"  w = ({st}) while(t), condition=condition, body=body"]
    for j in range(k): L+=[f"  w{j} = s32[{N}] get-tuple-element(w), index={j+2}",f"  e{j} = s32[3] slice(w{j}), slice={{[0:{N}:{N//2-1}]}}"]
    L+=[f"  ROOT r = ({', '.join(['s32[3]']*k)}) tuple({', '.join(f'e{j}' for j in range(k))})","}"]
    for n in (0,1,2,3,4,5,50):
        s=[np.arange(N,dtype=np.int32)*np.int32(1 if j==0 else 3*j+1) for j in range(k)]
        for _ in range(n): s=[x.astype(np.int32) for x in f(s)]
        e=", ".join(str([int(v) for v in x[0:N:N//2-1]]) for x in s)
        L.append(f"// run: e({n}) == {e}")
    out.append("\n".join(L)+"\n")
open("control/state-changes-places.hlo","w").write("\n".join(out))

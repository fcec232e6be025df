"""Writes ops/few-terms.hlo: contractions of few terms, with operands in every order of dimensions (`python3 make_few_terms.py > ops/few-terms.hlo`; needs numpy)."""
import numpy as np

import summed

forms=[ # name, lhs, rhs, attrs, einsum
 ("rows and columns","64,3","3,64","lhs_contracting_dims={1}, rhs_contracting_dims={0}","ik,kj->ij"),
 ("rows and rows","40,4","48,4","lhs_contracting_dims={1}, rhs_contracting_dims={1}","ik,jk->ij"),
 ("columns and rows","2,33","70,2","lhs_contracting_dims={0}, rhs_contracting_dims={1}","ki,jk->ij"),
 ("columns and columns, eight terms","8,5","8,100","lhs_contracting_dims={0}, rhs_contracting_dims={0}","ki,kj->ij"),
 ("points and a small matrix","200,3","3,3","lhs_contracting_dims={1}, rhs_contracting_dims={0}","ik,kj->ij"),
 ("points and a direction","300,6","6","lhs_contracting_dims={1}, rhs_contracting_dims={0}","ik,k->i"),
 ("small matrices","90,2,2","90,2,2","lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}","bik,bkj->bij"),
 ("small matrices and their vectors","80,3,3","80,3","lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}","bik,bk->bi"),
 ("matrices of four rows","50,4,4","50,4,4","lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}","bik,bkj->bij"),
 ("vectors and matrices of four rows","70,4","70,4,4","lhs_batch_dims={0}, lhs_contracting_dims={1}, rhs_batch_dims={0}, rhs_contracting_dims={1}","bk,bkj->bj"),
 ("four columns, six terms","130,6","4,6","lhs_contracting_dims={1}, rhs_contracting_dims={1}","ik,jk->ij"),
 ("products of pairs","77,4","77,4","lhs_batch_dims={0}, lhs_contracting_dims={1}, rhs_batch_dims={0}, rhs_contracting_dims={1}","bk,bk->b"),
 ("two dimensions that are gone, batches inside","3,32,2,2","2,32,3,2","lhs_batch_dims={0}, lhs_contracting_dims={2,3}, rhs_batch_dims={2}, rhs_contracting_dims={0,3}","bikl,kjbl->bij"),
]
out=[]
def vals(shape,m,c,mod):
    n=int(np.prod(shape)); return ((np.arange(n,dtype=np.int64)*m+c)%mod).reshape(shape)
for ty,signed in (("f32",1),("f64",1),("s32",1),("u8",0),("c64",1),("c128",1)):
    part={"c64":"f32","c128":"f64"}.get(ty)
    for name,l,r,attrs,es in forms:
        L=[int(x) for x in l.split(',')]; R=[int(x) for x in r.split(',')]
        off=5 if signed else 0
        a=vals(L,7,3,11)-off; b=vals(R,5,1,13)-off
        d=np.einsum(es,a,b)
        w=vals(d.shape,3,2,17)
        if ty=="u8": d=d&255
        if part:
            # Real and imaginary parts of both operands, of small whole numbers: so are all sums.
            d=np.einsum(es,a+1j*(vals(L,3,1,7)-3),b+1j*(vals(R,2,4,9)-3))
            d=d.real.astype(np.int64)-2*d.imag.astype(np.int64)
        total=int((d*w).sum())
        ds=','.join(map(str,d.shape)); n=int(np.prod(d.shape)); nl=int(np.prod(L)); nr=int(np.prod(R))
        def arr(v,shape,n,m,c,mod,t,off):
            s=f"  {v}i = s32[{n}] iota(), iota_dimension=0\n"
            for k,x in (("m",m),("c",c),("q",mod),("o",off)): s+=f"  {v}{k} = s32[] constant({x})\n  {v}{k}b = s32[{n}] broadcast({v}{k}), dimensions={{}}\n"
            s+=f"  {v}1 = s32[{n}] multiply({v}i, {v}mb)\n  {v}2 = s32[{n}] add({v}1, {v}cb)\n  {v}3 = s32[{n}] remainder({v}2, {v}qb)\n  {v}4 = s32[{n}] subtract({v}3, {v}ob)\n  {v}5 = s32[{shape}] reshape({v}4)\n  {v} = {t}[{shape}] convert({v}5)\n"
            return s
        def operand(v,shape,n,m,c,mod,m2,c2,mod2):
            if not part: return arr(v,shape,n,m,c,mod,ty,off)
            return arr(v+'r',shape,n,m,c,mod,part,off)+arr(v+'g',shape,n,m2,c2,mod2,part,3)+f"  {v} = {ty}[{shape}] complex({v}r, {v}g)\n"
        whole=f"  s = s32[{ds}] convert(d)\n"
        if part:
            whole=(f"  re = {part}[{ds}] real(d)\n  im = {part}[{ds}] imag(d)\n  twice = {part}[{ds}] add(im, im)\n"
                   f"  both = {part}[{ds}] subtract(re, twice)\n  s = s32[{ds}] convert(both)\n")
        out.append(summed.case(f"{ty}: {name}", "e()", total, f"""{operand('a',l,nl,7,3,11,3,1,7)}{operand('b',r,nr,5,1,13,2,4,9)}{arr('w',ds,n,3,2,17,'s32',0)}  d = {ty}[{ds}] dot(a, b), {attrs}
{whole}  x = s32[{ds}] multiply(s, w)
  z = s32[] constant(0)
  ROOT t = s32[] reduce(x, z), dimensions={{{','.join(map(str,range(d.ndim)))}}}, to_apply=add
"""))
for name,a,b,exp in (
  ("zeros of both signs sum up to a positive one","[-0, 0, -0]","[1, -1, 2]","0"),
  ("an infinity times zero","[inf, 1, 1]","[0, 1, 1]","nan"),
  ("infinities of both signs","[inf, -inf, 1]","[1, 1, 1]","nan"),
  ("an infinity stays","[inf, 1, 1]","[-1, 5, 1]","-inf"),
  ("a subnormal","[1.1754944e-38, 0, 0]","[0.5, 1, 1]","5.877472e-39")):
    out.append(f"""// ==== few terms: {name}
// test: interpret
// origin: hand
// run: e({a}, {b}) == [{', '.join([exp]*64)}]
HloModule m
ENTRY e {{
  a = f32[3] parameter(0)
  b = f32[3] parameter(1)
  ab = f32[64,3] broadcast(a), dimensions={{1}}
  ROOT d = f32[64] dot(ab, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
}}
""")
print('\n'.join(out),end='')

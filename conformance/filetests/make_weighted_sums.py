"""Writes ops/weighted-sums.hlo: contractions of which one operand has only batches in the result, with dimensions in every order (`python3 make_weighted_sums.py > ops/weighted-sums.hlo`; needs numpy)."""
import numpy as np

import summed

SIZES = dict(i=7, j=20, k=33, b=5, u=1)
FORMS = [  # einsum, and the order in which the result is read, if not its own
    ("ijk,ijk->k", None), ("ijk,ijk->j", None), ("ijk,ijk->i", None), ("ijk,kij->j", None), ("ijk,ijk->", None),
    ("ijk,ik->ij", None), ("ijk,ik->ij", "ji"), ("ijk,jk->ji", None), ("ijk,jk->ji", "ij"),
    ("ijk,jk->ki", None), ("ijk,jk->ki", "ik"), ("ijk,kj->ki", "ik"), ("jk,ijk->ki", None), ("jk,ijk->ki", "ik"),
    ("ijk,ij->ik", None), ("ijk,ik->kj", "jk"), ("bijk,bjk->bki", None), ("bijk,bjk->bki", "bik"), ("bijk,bjk->bki", "kib"),
    ("bijk,bk->bij", None), ("bijk,bij->bk", None), ("bijk,ik->ikbj", None), ("ijk,ujk->kiu", None), ("ujk,ijk->kui", None),
]


def numbers(shape, m, c, mod, off):
    n = int(np.prod(shape))
    return ((np.arange(n, dtype=np.int64) * m + c) % mod - off).reshape(shape)


def text(name, shape, m, c, mod, off, ty):
    """Instructions of those numbers. The first factor is a parameter: nothing of it is known before it runs."""
    n, dims = int(np.prod(shape)), ",".join(map(str, shape))
    s = f"  {name}i = s32[{n}] iota(), iota_dimension=0\n  {name}m = s32[{n}] broadcast({m}), dimensions={{}}\n"
    s += f"  {name}1 = s32[{n}] multiply({name}i, {name}m)\n"
    at = f"{name}1"
    for op, value in (("add", c), ("remainder", mod), ("subtract", off)):
        k = f"{name}{op[0]}"
        s += f"  {k} = s32[] constant({value})\n  {k}b = s32[{n}] broadcast({k}), dimensions={{}}\n  {k}r = s32[{n}] {op}({at}, {k}b)\n"
        at = f"{k}r"
    return s + f"  {name}5 = s32[{dims}] reshape({at})\n  {name} = {ty}[{dims}] convert({name}5)\n"


def case(ty, form, read):
    operands, result = form.split("->")
    lhs, rhs = operands.split(",")
    shape = lambda dims: [SIZES[d] for d in dims]
    batch = [d for d in result if d in lhs and d in rhs]
    gone = [d for d in lhs if d in rhs and d not in result]
    # As HLO orders it.
    own = "".join(batch) + "".join(d for d in lhs if d in result and d not in batch) + "".join(d for d in rhs if d in result and d not in batch)
    assert own == result, (form, own)
    places = lambda dims, of: ",".join(str(of.index(d)) for d in dims)
    off = 0 if ty.startswith("u") else 2
    a, b = numbers(shape(lhs), 7, 3, 5, off), numbers(shape(rhs), 3, 1, 4, off)
    seen = read or result
    d = np.asarray(np.einsum(f"{operands}->{seen}", a, b))
    if ty == "u8":
        d = d & 255
    w = numbers(d.shape, 3, 2, 17, 0)
    total = int((d * w).sum())
    dims = lambda letters: ",".join(str(SIZES[x]) for x in letters)
    attrs = f"lhs_contracting_dims={{{places(gone, lhs)}}}, rhs_contracting_dims={{{places(gone, rhs)}}}"
    if batch:
        attrs = f"lhs_batch_dims={{{places(batch, lhs)}}}, rhs_batch_dims={{{places(batch, rhs)}}}, " + attrs
    turned = ""
    if read:
        order = ",".join(str(result.index(x)) for x in read)
        turned = f"  t = {ty}[{dims(read)}] transpose(d), dimensions={{{order}}}\n"
    at = "t" if read else "d"
    name = f"{ty}: {form}" + (f", read as {read}" if read else "")
    rank = ",".join(str(x) for x in range(len(seen)))
    return summed.case(name, "e(7, 3)", total, f"""  seven = s32[] parameter(0)
  three = s32[] parameter(1)
{text('a', shape(lhs), 'seven', 3, 5, off, ty)}{text('b', shape(rhs), 'three', 1, 4, off, ty)}{text('w', d.shape, 'three', 2, 17, 0, 's32')}  d = {ty}[{dims(result)}] dot(a, b), {attrs}
{turned}  s = s32[{dims(seen)}] convert({at})
  x = s32[{dims(seen)}] multiply(s, w)
  z = s32[] constant(0)
  ROOT y = s32[] reduce(x, z), dimensions={{{rank}}}, to_apply=add
""")


out = [case("f32", form, read) for form, read in FORMS]
for ty in ("f64", "bf16", "s32", "u8"):
    for form, read in FORMS[:12:2] + FORMS[17:18]:
        # Sums of up to 256 are whole in eight bits of fraction.
        if ty != "bf16" or form not in ("ijk,ijk->", "ijk,ijk->i", "ijk,ijk->j"):
            out.append(case(ty, form, read))

SHARED = """HloModule m
add {
  p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT r = f32[] add(p, q)
}
"""
out.append(f"""// ==== a weighted sum, a sum of squares and what follows of both, over the same elements
// test: interpret
// origin: hand
// run: e(2) == [{', '.join(['22'] * 40)}]
{SHARED}ENTRY e {{
  v = f32[] parameter(0)
  a = f32[10,40] broadcast(v), dimensions={{}}
  b = f32[10,40] add(a, a)
  d = f32[40] dot(a, b), lhs_batch_dims={{1}}, rhs_batch_dims={{1}}, lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}
  aa = f32[10,40] multiply(a, a)
  z = f32[] constant(0)
  n = f32[40] reduce(aa, z), dimensions={{0}}, to_apply=add
  two = f32[40] broadcast(v), dimensions={{}}
  h = f32[40] divide(d, n)
  s = f32[40] subtract(d, n)
  t = f32[40] add(h, s)
  u = f32[40] divide(s, two)
  ROOT r = f32[40] subtract(t, u)
}}
""")
for name, a, b, expected in (
    ("zeros of both signs sum up to a positive one", [-0.0] * 12, [1.0] * 12, "0"),
    ("an infinity times zero", ["inf"] + [1] * 11, [0] + [1] * 11, "nan"),
    ("infinities of both signs", ["inf", "-inf"] + [1] * 10, [1] * 12, "nan"),
    ("an infinity stays", ["inf"] + [1] * 11, [-1] + [1] * 11, "-inf"),
):
    lists = ", ".join(f"[{', '.join(str(x) for x in v)}]" for v in (a, b))
    out.append(f"""// ==== {name}
// test: interpret
// origin: hand
// run: e({lists}) == [{', '.join([expected] * 48)}]
HloModule m
ENTRY e {{
  a = f32[12] parameter(0)
  b = f32[12] parameter(1)
  ab = f32[12,48] broadcast(a), dimensions={{0}}
  bb = f32[12,48] broadcast(b), dimensions={{0}}
  ROOT d = f32[48] dot(ab, bb), lhs_batch_dims={{1}}, rhs_batch_dims={{1}}, lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}
}}
""")
print("\n".join(out), end="")

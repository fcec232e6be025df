//! The table of instructions: for each opcode the forms that the ISA gives it, as modifiers, types and
//! operands.
//!
//! A form is one line: `opcode modifiers | operands`.
//!
//! | modifier | |
//! |---|---|
//! | `sat` | required |
//! | `sat?` | optional |
//! | `lo,hi` | one of these is required |
//! | `rn,rz?` | at most one of these |
//! | `@100` | the form needs `.target sm_100` or higher |
//! | `:u32,s32` | a type, one of these; types are matched in their order |
//! | `$name` | stands for a list of [`LISTS`] |
//!
//! | operand | |
//! |---|---|
//! | `d0`, `s0` | destination register, source, of the type 0 (1, 2: of that type) |
//! | `D0`, `S0` | the same at twice the width |
//! | `c0`, `k0` | destination, source that may be wider than the type (conversions, memory) |
//! | `v0`, `w0` | the same, or a vector of 2, 4 or 8 of them (memory) |
//! | `>u32`, `<u32` | destination, source of that type |
//! | `p`, `P`, `q` | destination predicate, pair `p\|q` of them, source predicate that may be negated |
//! | `m` | address |
//! | `l`, `f` | label; anything that lowering itself looks at |
//! | `i` | integer literal |
//! | `x` | vector of registers, or one |
//! | `?` behind an operand | optional |
//!
//! Invariant: an instruction that matches no form is an error; lowering meets matched forms only. Modifiers
//! other than types may come in any order, as ptxas takes them (XLA writes `atom.global.v4.f32.add`).

use rustc_hash::FxHashMap;
use std::sync::LazyLock;

use crate::types::Type;

/// Lists that forms share.
const LISTS: &[(&str, &str)] = &[
    ("rnd", "rn,rz,rm,rp"),
    ("irnd", "rni,rzi,rmi,rpi"),
    ("int", "u16,u32,u64,s16,s32,s64"),
    ("bits", "b16,b32,b64"),
    ("cmpi", "eq,ne,lt,le,gt,ge,lo,ls,hi,hs"),
    ("cmpf", "eq,ne,lt,le,gt,ge,equ,neu,ltu,leu,gtu,geu,num,nan"),
    ("bool", "and,or,xor"),
    ("mem", "b8,b16,b32,b64,b128,u8,u16,u32,u64,s8,s16,s32,s64,f32,f64"),
    ("space", "const,global,local,param,param::entry,param::func,shared,shared::cta,shared::cluster"),
    ("wspace", "global,local,param,param::func,shared,shared::cta,shared::cluster"),
    ("aspace", "global,shared,shared::cta,shared::cluster"),
    ("sspace", "shared,shared::cta"),
    ("scope", "cta,cluster,gpu,sys"),
    ("evict1", "L1::evict_normal,L1::evict_unchanged,L1::evict_first,L1::evict_last,L1::no_allocate"),
    ("evict2", "L2::evict_normal,L2::evict_first,L2::evict_last"),
    ("hint", "L2::cache_hint"),
    ("prefetch", "L2::64B,L2::128B,L2::256B"),
    ("cop", "ca,cg,cs,lu,cv"),
    ("wcop", "wb,cg,cs,wt"),
    ("asem", "relaxed,acquire,release,acq_rel"),
];

/// The forms.
const FORMS: &str = "
add sat? :s32 | d0 s0 s0
add :u16,u32,u64,s16,s64,u16x2,s16x2 | d0 s0 s0
add cc :u32,s32,u64,s64 | d0 s0 s0
add $rnd? ftz? sat? :f32 | d0 s0 s0
add @100 $rnd? ftz? :f32x2 | d0 s0 s0
add $rnd? :f64 | d0 s0 s0
add rn? ftz? sat? :f16,f16x2 | d0 s0 s0
add rn? :bf16,bf16x2 | d0 s0 s0
add @100 $rnd? sat? :f32 :f16,bf16 | d0 s1 s0
addc cc? :u32,s32,u64,s64 | d0 s0 s0
sub sat? :s32 | d0 s0 s0
sub :u16,u32,u64,s16,s64 | d0 s0 s0
sub cc :u32,s32,u64,s64 | d0 s0 s0
sub $rnd? ftz? sat? :f32 | d0 s0 s0
sub @100 $rnd? ftz? :f32x2 | d0 s0 s0
sub $rnd? :f64 | d0 s0 s0
sub rn? ftz? sat? :f16,f16x2 | d0 s0 s0
sub rn? :bf16,bf16x2 | d0 s0 s0
sub @100 $rnd? sat? :f32 :f16,bf16 | d0 s1 s0
subc cc? :u32,s32,u64,s64 | d0 s0 s0
mul lo,hi :$int | d0 s0 s0
mul wide :u16,u32,s16,s32 | D0 s0 s0
mul $rnd? ftz? sat? :f32 | d0 s0 s0
mul @100 $rnd? ftz? :f32x2 | d0 s0 s0
mul $rnd? :f64 | d0 s0 s0
mul rn? ftz? sat? :f16,f16x2 | d0 s0 s0
mul rn? :bf16,bf16x2 | d0 s0 s0
mul24 lo,hi :u32,s32 | d0 s0 s0
mad lo,hi sat? :$int | d0 s0 s0 s0
mad lo,hi cc :u32,s32,u64,s64 | d0 s0 s0 s0
mad wide :u16,u32,s16,s32 | D0 s0 s0 S0
mad $rnd? ftz? sat? :f32 | d0 s0 s0 s0
mad $rnd? :f64 | d0 s0 s0 s0
madc lo,hi cc? :u32,s32,u64,s64 | d0 s0 s0 s0
mad24 lo,hi :u32,s32 | d0 s0 s0 s0
mad24 hi sat :s32 | d0 s0 s0 s0
sad :$int | d0 s0 s0 s0
div :$int | d0 s0 s0
div approx,full ftz? :f32 | d0 s0 s0
div $rnd ftz? :f32 | d0 s0 s0
div $rnd :f64 | d0 s0 s0
rem :$int | d0 s0 s0
abs :s16,s32,s64 | d0 s0
abs ftz? :f32,f16,f16x2 | d0 s0
abs :f64,bf16,bf16x2 | d0 s0
neg :s16,s32,s64 | d0 s0
neg ftz? :f32,f16,f16x2 | d0 s0
neg :f64,bf16,bf16x2 | d0 s0
min :u16,u32,u64,s16,s64,u16x2 | d0 s0 s0
min relu? :s32,s16x2 | d0 s0 s0
min ftz? NaN? xorsign? abs? :f32,f16,f16x2 | d0 s0 s0
min NaN? xorsign? abs? :bf16,bf16x2 | d0 s0 s0
min @100 ftz? NaN? abs? :f32 | d0 s0 s0 s0
min :f64 | d0 s0 s0
max :u16,u32,u64,s16,s64,u16x2 | d0 s0 s0
max relu? :s32,s16x2 | d0 s0 s0
max ftz? NaN? xorsign? abs? :f32,f16,f16x2 | d0 s0 s0
max NaN? xorsign? abs? :bf16,bf16x2 | d0 s0 s0
max @100 ftz? NaN? abs? :f32 | d0 s0 s0 s0
max :f64 | d0 s0 s0
popc :b32,b64 | >u32 s0
clz :b32,b64 | >u32 s0
bfind shiftamt? :u32,u64,s32,s64 | >u32 s0
fns :b32 | d0 s0 <u32 <s32
brev :b32,b64 | d0 s0
bfe :u32,u64,s32,s64 | d0 s0 <u32 <u32
bfi :b32,b64 | d0 s0 s0 <u32 <u32
bmsk clamp,wrap :b32 | d0 <u32 <u32
szext clamp,wrap :u32,s32 | d0 s0 <u32
dp4a :u32,s32 :u32,s32 | >s32 <b32 <b32 <s32
dp2a lo,hi :u32,s32 :u32,s32 | >s32 <b32 <b32 <s32
testp finite,infinite,number,notanumber,normal,subnormal :f32,f64 | p s0
copysign :f32,f64 | d0 s0 s0
fma $rnd? ftz? sat? :f32 | d0 s0 s0 s0
fma @100 $rnd? ftz? :f32x2 | d0 s0 s0 s0
fma $rnd? :f64 | d0 s0 s0 s0
fma rn ftz? sat? relu? :f16,f16x2 | d0 s0 s0 s0
fma rn relu? :bf16,bf16x2 | d0 s0 s0 s0
fma rn oob relu? :f16,f16x2,bf16,bf16x2 | d0 s0 s0 s0
fma @100 $rnd? sat? :f32 :f16,bf16 | d0 s1 s1 s0
rcp approx ftz? :f32 | d0 s0
rcp $rnd ftz? :f32 | d0 s0
rcp $rnd :f64 | d0 s0
rcp approx ftz :f64 | d0 s0
sqrt approx ftz? :f32 | d0 s0
sqrt $rnd ftz? :f32 | d0 s0
sqrt $rnd :f64 | d0 s0
rsqrt approx ftz? :f32,f64 | d0 s0
sin approx ftz? :f32 | d0 s0
cos approx ftz? :f32 | d0 s0
lg2 approx ftz? :f32 | d0 s0
ex2 approx ftz? :f32 | d0 s0
ex2 approx :f16,f16x2 | d0 s0
ex2 approx ftz :bf16,bf16x2 | d0 s0
tanh approx :f32,f16,f16x2,bf16,bf16x2 | d0 s0
set $cmpi,equ,neu,ltu,leu,gtu,geu,num,nan ftz? :u32,s32,f32 :b16,b32,b64,u16,u32,u64,s16,s32,s64,f32,f64 | d0 s1 s1
set $cmpi,equ,neu,ltu,leu,gtu,geu,num,nan $bool ftz? :u32,s32,f32 :b16,b32,b64,u16,u32,u64,s16,s32,s64,f32,f64 | d0 s1 s1 q
set $cmpf ftz? :f16,u16,s16,u32,s32 :f16 | d0 s1 s1
set $cmpf ftz? :bf16,u16,s16,u32,s32 :bf16 | d0 s1 s1
set $cmpf ftz? :f16x2 :f16x2 | d0 s1 s1
set $cmpf ftz? :bf16x2 :bf16x2 | d0 s1 s1
setp $cmpi :$int,$bits | P s0 s0
setp $cmpi $bool :$int,$bits | P s0 s0 q
setp $cmpf ftz? :f32,f64,f16,bf16 | P s0 s0
setp $cmpf $bool ftz? :f32,f64,f16,bf16 | P s0 s0 q
setp $cmpf ftz? :f16x2,bf16x2 | P s0 s0
setp $cmpf $bool ftz? :f16x2,bf16x2 | P s0 s0 q
selp :b16,b32,b64,u16,u32,u64,s16,s32,s64,f32,f64 | d0 s0 s0 q
slct :b16,b32,b64,u16,u32,u64,s16,s32,s64,f32,f64 :s32 | d0 s0 s0 s1
slct ftz? :b16,b32,b64,u16,u32,u64,s16,s32,s64,f32,f64 :f32 | d0 s0 s0 s1
and :b16,b32,b64 | d0 s0 s0
and :pred | p q q
or :b16,b32,b64 | d0 s0 s0
or :pred | p q q
xor :b16,b32,b64 | d0 s0 s0
xor :pred | p q q
not :b16,b32,b64 | d0 s0
not :pred | p q
cnot :b16,b32,b64 | d0 s0
lop3 :b32 | d0 s0 s0 s0 i
lop3 $bool :b32 | f s0 s0 s0 i q
shf l,r clamp,wrap :b32 | d0 s0 s0 <u32
shl :b16,b32,b64 | d0 s0 <u32
shr :b16,b32,b64,u16,u32,u64,s16,s32,s64 | d0 s0 <u32
prmt f4e,b4e,rc8,ecl,ecr,rc16? :b32 | d0 s0 s0 <b32
mov :b16,b32,b64,u16,u32,u64,s16,s32,s64,f32,f64,f16,bf16 | f f
mov :b128 | f f
mov :pred | p q
shfl sync up,down,bfly,idx :b32 | f s0 <b32 <b32 <b32
shfl up,down,bfly,idx :b32 | f s0 <b32 <b32
cvta $wspace,const,param::entry :u32,u64 | d0 f
cvta to $wspace,const,param::entry :u32,u64 | d0 s0
isspacep $space | p <u64
cvt $irnd,$rnd,rna,rs? relu? satfinite? ftz? sat? :u8,u16,u32,u64,s8,s16,s32,s64,f16,bf16,f32,f64,tf32 :u8,u16,u32,u64,s8,s16,s32,s64,f16,bf16,f32,f64 | c0 k1
cvt rn,rz relu? satfinite? :f16x2,bf16x2 :f32 | d0 s1 s1
cvt @100 rs relu? satfinite? :f16x2,bf16x2 :f32 | d0 s1 s1 <b32
cvt rn relu? satfinite :e4m3x2,e5m2x2 :f32 | d0 s1 s1
cvt @100 rn relu? satfinite :e2m1x2,e2m3x2,e3m2x2 :f32 | f s1 s1
cvt rn relu? satfinite :e4m3x2,e5m2x2 :f16x2 | d0 s1
cvt rn relu? :f16x2 :e4m3x2,e5m2x2 | d0 f
cvt @100 rn relu? :f16x2 :e2m1x2,e2m3x2,e3m2x2 | d0 f
cvt @100 rz,rp satfinite? :ue8m0x2 :f32 | d0 s1 s1
cvt @100 rz,rp satfinite? :ue8m0x2 :bf16x2 | d0 s1
cvt @100 rn :bf16x2 :ue8m0x2 | d0 s1
cvt pack sat :u16,s16 :s32 | >b32 s1 s1
cvt pack sat :u8,s8 :s32 :b32 | >b32 s1 s1 s2
ld weak? $space? $cop? $evict1? $evict2? $hint? $prefetch? v2,v4,v8? :$mem | v0 m <b64?
ld volatile $space? $prefetch? v2,v4,v8? :$mem | v0 m
ld relaxed,acquire $scope $space? $evict1? $evict2? $hint? $prefetch? v2,v4,v8? :$mem | v0 m <b64?
ld mmio relaxed sys global? :$mem | v0 m
ld global $cop? nc $evict1? $evict2? $hint? $prefetch? v2,v4,v8? :$mem | v0 m <b64?
ldu global? v2,v4? :$mem | v0 m
st weak? $wspace? $wcop? $evict1? $evict2? $hint? v2,v4,v8? :$mem | m w0 <b64?
st volatile $wspace? v2,v4,v8? :$mem | m w0
st relaxed,release $scope $wspace? $evict1? $evict2? $hint? v2,v4,v8? :$mem | m w0 <b64?
st mmio relaxed sys global? :$mem | m w0
prefetch global,local? L1,L2,L2::evict_last,L2::evict_normal | m
prefetchu L1 | m
discard global? L2 | m i
applypriority global? L2::evict_normal | m i
atom $asem? $scope? $aspace? and,or,xor $hint? :b32,b64 | d0 m s0 <b64?
atom $asem? $scope? $aspace? exch $hint? :b32,b64,b128 | d0 m s0 <b64?
atom $asem? $scope? $aspace? cas $hint? :b16,b32,b64,b128 | d0 m s0 s0 <b64?
atom $asem? $scope? $aspace? add $hint? :u32,u64,s32,s64,f32,f64 | d0 m s0 <b64?
atom $asem? $scope? $aspace? inc,dec $hint? :u32 | d0 m s0 <b64?
atom $asem? $scope? $aspace? min,max $hint? :u32,u64,s32,s64 | d0 m s0 <b64?
atom $asem? $scope? $aspace? add noftz $hint? :f16,f16x2,bf16,bf16x2 | d0 m s0 <b64?
atom $asem? $scope? global? add v2,v4 $hint? :f32 | x m x <b64?
atom $asem? $scope? global? add,min,max noftz v2,v4,v8 $hint? :f16,bf16,f16x2,bf16x2 | x m x <b64?
red $asem? $scope? $aspace? and,or,xor $hint? :b32,b64 | m s0 <b64?
red $asem? $scope? $aspace? add $hint? :u32,u64,s32,s64,f32,f64 | m s0 <b64?
red $asem? $scope? $aspace? inc,dec $hint? :u32 | m s0 <b64?
red $asem? $scope? $aspace? min,max $hint? :u32,u64,s32,s64 | m s0 <b64?
red $asem? $scope? $aspace? add noftz $hint? :f16,f16x2,bf16,bf16x2 | m s0 <b64?
red $asem? $scope? global? add v2,v4 $hint? :f32 | m x <b64?
red $asem? $scope? global? add,min,max noftz v2,v4,v8 $hint? :f16,bf16,f16x2,bf16x2 | m x <b64?
bra uni? | l
brx idx uni? | <u32 f
call uni? | f f? f? f?
ret uni? |
exit |
trap |
brkpt |
pmevent mask? | i
nanosleep :u32 | s0
bar warp sync | <b32
bar cta? sync | <u32 <u32?
bar cta? arrive | <u32 <u32
bar cta? red popc :u32 | d0 <u32 f f?
bar cta? red and,or :pred | p <u32 f f?
barrier cta? sync aligned? | <u32 <u32?
barrier cta? arrive aligned? | <u32 <u32
barrier cta? red popc aligned? :u32 | d0 <u32 f f?
barrier cta? red and,or aligned? :pred | p <u32 f f?
barrier cluster arrive release,relaxed? aligned? |
barrier cluster wait acquire? aligned? |
membar cta,gl,sys |
membar proxy alias,async global? |
fence sc,acq_rel,acquire,release? $scope |
fence acquire,release sync_restrict::shared::cta,sync_restrict::shared::cluster cluster |
fence proxy alias |
fence proxy async global,shared::cta,shared::cluster? |
fence mbarrier_init release cluster |
vote sync all,any,uni :pred | p q <b32
vote sync ballot :b32 | d0 q <b32
vote all,any,uni :pred | p q
vote ballot :b32 | d0 q
match any sync :b32,b64 | >b32 s0 <b32
match all sync :b32,b64 | f s0 <b32
activemask :b32 | d0
redux sync add :u32,s32 | d0 s0 <b32
redux sync min,max :u32,s32 | d0 s0 <b32
redux sync and,or,xor :b32 | d0 s0 <b32
redux @100 sync min,max abs? NaN? :f32 | d0 s0 <b32
elect sync | f <b32
griddepcontrol launch_dependents,wait |
cp async ca,cg $sspace global $hint? $prefetch? | m m i f? f?
cp async commit_group |
cp async wait_group | i
cp async wait_all |
cp async mbarrier arrive noinc? $sspace? :b64 | m
mbarrier init $sspace? :b64 | m <u32
mbarrier inval $sspace? :b64 | m
mbarrier arrive noComplete? release,relaxed? cta,cluster? $sspace? :b64 | f m <u32?
mbarrier arrive_drop noComplete? release,relaxed? cta,cluster? $sspace? :b64 | f m <u32?
mbarrier arrive expect_tx release,relaxed? cta,cluster? $sspace? :b64 | f m <u32
mbarrier expect_tx relaxed? cta,cluster? $sspace? :b64 | m <u32
mbarrier complete_tx relaxed? cta,cluster? $sspace? :b64 | m <u32
mbarrier test_wait acquire,relaxed? cta,cluster? $sspace? :b64 | p m <b64
mbarrier test_wait parity acquire,relaxed? cta,cluster? $sspace? :b64 | p m <u32
mbarrier try_wait acquire,relaxed? cta,cluster? $sspace? :b64 | p m <b64 <u32?
mbarrier try_wait parity acquire,relaxed? cta,cluster? $sspace? :b64 | p m <u32 <u32?
mbarrier pending_count :b64 | >u32 <b64
ldmatrix sync aligned m8n8 x1,x2,x4 trans? $sspace? :b16 | x m
stmatrix sync aligned m8n8 x1,x2,x4 trans? $sspace? :b16 | m x
movmatrix sync aligned m8n8 trans :b16 | >b32 <b32
mma sync aligned m8n8k4 row,col row,col :f16,f32 :f16 :f16 :f16,f32 | x x x x
mma sync aligned m16n8k8,m16n8k16 row col :f16,f32 :f16 :f16 :f16,f32 | x x x x
mma sync aligned m16n8k4,m16n8k8,m16n8k16 row col :f32 :bf16,tf32 :bf16,tf32 :f32 | x x x x
mma sync aligned m16n8k16,m16n8k32 row col :f16,f32 :e4m3,e5m2 :e4m3,e5m2 :f16,f32 | x x x x
mma @120 sync aligned m16n8k32 row col kind::f8f6f4 :f16,f32 :e4m3,e5m2 :e4m3,e5m2 :f16,f32 | x x x x
mma sync aligned m8n8k4,m16n8k4,m16n8k8,m16n8k16 row col $rnd? :f64 :f64 :f64 :f64 | x x x x
mma sync aligned m8n8k16,m16n8k16,m16n8k32 row col satfinite? :s32 :u8,s8 :u8,s8 :s32 | x x x x
mma sync aligned m8n8k32,m16n8k32,m16n8k64 row col satfinite? :s32 :u4,s4 :u4,s4 :s32 | x x x x
mma sync aligned m8n8k128,m16n8k128,m16n8k256 row col :s32 :b1 :b1 :s32 xor,and popc | x x x x
mapa $sspace,shared::cluster? :u32,u64 | d0 f <u32
getctarank $sspace,shared::cluster? :u32,u64 | >u32 f
alloca :u32,u64 | d0 s0 i?
stacksave :u32,u64 | d0
stackrestore :u32,u64 | s0
setmaxnreg inc,dec sync aligned :u32 | i
vadd2 :u32,s32 :u32,s32 :u32,s32 | d0 s1 s2 s0
";

/// A modifier position of a form.
pub(crate) struct Slot {
    pub(crate) names: Vec<&'static str>,
    pub(crate) optional: bool,
    pub(crate) is_type: bool,
}

/// A form of an instruction.
pub(crate) struct Form {
    /// The lowest architecture that has the form: 100 is sm_100.
    pub(crate) arch: u32,
    pub(crate) slots: Vec<Slot>,
    pub(crate) operands: Vec<Kind>,
}

/// An operand position of a form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Kind {
    pub(crate) what: What,
    pub(crate) optional: bool,
}

/// What an operand position takes. Numbers are positions among the types of the form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum What {
    Destination(u8),
    Source(u8),
    WideDestination(u8),
    WideSource(u8),
    LooseDestination(u8),
    LooseSource(u8),
    VectorDestination(u8),
    VectorSource(u8),
    FixedDestination(Type),
    FixedSource(Type),
    Predicate,
    PredicatePair,
    SourcePredicate,
    Address,
    Label,
    Free,
    Immediate,
    Registers,
}

/// An instruction whose modifiers match a form.
pub(crate) struct Matched {
    pub(crate) form: &'static Form,
    pub(crate) types: Vec<Type>,
}

type Table = FxHashMap<&'static str, Vec<Form>>;

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let mut table = Table::default();
    for line in FORMS.lines().filter(|l| !l.is_empty()) {
        let (head, operands) = line.split_once('|').unwrap_or((line, ""));
        let (targets, mut words): (Vec<_>, Vec<_>) =
            head.split_whitespace().partition(|w| w.starts_with('@'));
        let arch = targets.first().and_then(|w| w[1..].parse().ok()).unwrap_or(0);
        let opcode = words.remove(0);
        let slots = words.into_iter().map(slot).collect();
        let operands = operands.split_whitespace().map(kind).collect();
        table.entry(opcode).or_default().push(Form { arch, slots, operands });
    }
    table
});

fn slot(word: &'static str) -> Slot {
    let (word, optional) = word.strip_suffix('?').map_or((word, false), |w| (w, true));
    let (word, is_type) = word.strip_prefix(':').map_or((word, false), |w| (w, true));
    let mut names = Vec::new();
    for name in word.split(',') {
        match name.strip_prefix('$') {
            None => names.push(name),
            Some(list) => {
                let list = LISTS.iter().find(|l| l.0 == list).map_or("", |l| l.1);
                names.extend(list.split(','));
            }
        }
    }
    Slot { names, optional, is_type }
}

fn kind(word: &'static str) -> Kind {
    let (word, optional) = word.strip_suffix('?').map_or((word, false), |w| (w, true));
    let index = || word[1..].parse().unwrap_or(0);
    let fixed = || Type::from_name(&word[1..]).unwrap_or(Type::B32);
    let what = match word.as_bytes()[0] {
        b'd' => What::Destination(index()),
        b's' => What::Source(index()),
        b'D' => What::WideDestination(index()),
        b'S' => What::WideSource(index()),
        b'c' => What::LooseDestination(index()),
        b'k' => What::LooseSource(index()),
        b'v' => What::VectorDestination(index()),
        b'w' => What::VectorSource(index()),
        b'>' => What::FixedDestination(fixed()),
        b'<' => What::FixedSource(fixed()),
        b'p' => What::Predicate,
        b'P' => What::PredicatePair,
        b'q' => What::SourcePredicate,
        b'm' => What::Address,
        b'l' => What::Label,
        b'i' => What::Immediate,
        b'x' => What::Registers,
        _ => What::Free,
    };
    Kind { what, optional }
}

/// Why an instruction matches no form.
pub(crate) enum Mismatch {
    /// No instruction of that name.
    Opcode,
    /// This modifier is in none of its forms.
    Modifier(usize),
    /// Each modifier occurs in some form, all together in none.
    Combination,
}

/// The form that the modifiers of an instruction match, with as many operands if one has as many.
pub(crate) fn lookup(opcode: &str, modifiers: &[&str], operands: usize) -> Result<Matched, Mismatch> {
    let Some(forms) = TABLE.get(opcode) else { return Err(Mismatch::Opcode) };
    let mut best: Option<Matched> = None;
    for form in forms {
        if let Some(types) = form.matches(modifiers) {
            let fits = form.takes(operands);
            if fits || best.is_none() {
                best = Some(Matched { form, types });
            }
            if fits {
                break;
            }
        }
    }
    best.ok_or_else(|| {
        let known = |m: &&str| forms.iter().any(|f| f.slots.iter().any(|s| s.names.contains(m)));
        modifiers.iter().position(|m| !known(m)).map_or(Mismatch::Combination, Mismatch::Modifier)
    })
}

impl Form {
    fn takes(&self, count: usize) -> bool {
        let least = self.operands.iter().filter(|k| !k.optional).count();
        (least..=self.operands.len()).contains(&count)
    }

    fn matches(&self, modifiers: &[&str]) -> Option<Vec<Type>> {
        if modifiers.len() > self.slots.len() {
            return None;
        }
        let mut used = [false; 16];
        let mut types = Vec::new();
        for m in modifiers {
            // Types come in order: the first type that is open takes it or nothing does.
            let open = |i: usize| !used[i];
            let typed = (0..self.slots.len()).find(|&i| self.slots[i].is_type && open(i));
            let plain = (0..self.slots.len())
                .find(|&i| !self.slots[i].is_type && open(i) && self.slots[i].names.contains(m));
            let hit = match (plain, typed) {
                (Some(i), _) => i,
                (None, Some(i)) if self.slots[i].names.contains(m) => {
                    types.push(Type::from_name(m)?);
                    i
                }
                (None, _) => return None,
            };
            used[hit] = true;
        }
        self.slots.iter().zip(used).all(|(s, u)| u || s.optional).then_some(types)
    }
}

/// Every form with its opcode, sorted by opcode.
#[cfg(test)]
pub(crate) fn all_forms() -> Vec<(&'static str, &'static Form)> {
    let mut all: Vec<_> = TABLE.iter().flat_map(|(o, forms)| forms.iter().map(|f| (*o, f))).collect();
    all.sort_by_key(|f| f.0);
    all
}

/// The forms of an opcode, with its name as the table has it.
pub(crate) fn forms_of(opcode: &str) -> Option<(&'static str, &'static [Form])> {
    TABLE.get_key_value(opcode).map(|(name, forms)| (*name, &forms[..]))
}

/// Every opcode of the table, sorted.
#[must_use]
pub fn opcodes() -> Vec<&'static str> {
    let mut all: Vec<&'static str> = TABLE.keys().copied().collect();
    all.sort_unstable();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn types(text: &str, operands: usize) -> Option<Vec<Type>> {
        let mut words = text.split('.');
        let opcode = words.next().unwrap();
        lookup(opcode, &words.collect::<Vec<_>>(), operands).ok().map(|m| m.types)
    }

    #[test]
    fn forms_are_well_formed() {
        for (opcode, forms) in TABLE.iter() {
            for form in forms {
                assert!(form.slots.len() <= 16, "{opcode}");
                let count = form.slots.iter().filter(|s| s.is_type).count();
                for slot in &form.slots {
                    assert!(slot.names.iter().all(|n| !n.is_empty()), "{opcode}");
                    assert!(
                        !slot.is_type || slot.names.iter().all(|n| Type::from_name(n).is_some()),
                        "{opcode}"
                    );
                }
                for k in &form.operands {
                    let index = match k.what {
                        What::Destination(i)
                        | What::Source(i)
                        | What::WideDestination(i)
                        | What::WideSource(i)
                        | What::LooseDestination(i)
                        | What::LooseSource(i)
                        | What::VectorDestination(i)
                        | What::VectorSource(i) => usize::from(i),
                        _ => 0,
                    };
                    assert!(index < count.max(1), "{opcode}: operand {index} of {count} types");
                }
            }
        }
    }

    #[test]
    fn matching() {
        assert_eq!(types("add.rn.f32", 3), Some(vec![Type::F32]));
        assert_eq!(types("add.f32.rn", 3), Some(vec![Type::F32]));
        assert_eq!(types("add.rn.s32", 3), None);
        assert_eq!(types("cvt.rn.f32.s32", 2), Some(vec![Type::F32, Type::S32]));
        assert_eq!(types("cvt.rn.bf16x2.f32", 3), Some(vec![Type::Bf16x2, Type::F32]));
        assert_eq!(types("atom.global.v4.f32.add", 3), Some(vec![Type::F32]));
        assert_eq!(types("ld.param::entry.b64", 2), Some(vec![Type::B64]));
        assert_eq!(types("mul.lo", 3), None);
        assert_eq!(types("membar.gl", 0), Some(vec![]));
        // What ptxas refuses for every architecture.
        for (text, operands) in [
            ("mad24.lo.sat.s32", 4),
            ("mad24.hi.sat.u32", 4),
            ("set.eq.f16.bf16", 3),
            ("set.lt.ftz.bf16x2.f16x2", 3),
            ("ex2.approx.bf16", 2),
            ("ex2.approx.ftz.f16", 2),
        ] {
            assert_eq!(types(text, operands), None, "{text}");
        }
        assert_eq!(types("mad24.hi.sat.s32", 4), Some(vec![Type::S32]));
        assert_eq!(types("ex2.approx.ftz.bf16x2", 2), Some(vec![Type::Bf16x2]));
    }
}

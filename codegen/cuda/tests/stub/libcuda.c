/* A driver for tests, on the host's memory. MODE says what is wrong with it. Its kernels are `add_one(u64 address, u32 count)`, which adds 1 to each of
 * so many u32, and whatever else a module names, which do nothing. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FINE, MISSING_SYMBOL, NO_DEVICE, OLD, REFUSES_LAUNCH, ILLEGAL_ADDRESS, ENDLESS, OUT_OF_MEMORY, BAD_PTX, REFUSES_UPDATE, NONE_COUNTED,
       UNKNOWN_STATUS, WRONG_RESULT };
#ifndef MODE
#define MODE 0
#endif

typedef int R;
typedef void *H;
typedef unsigned long long P;
typedef struct { char name[64]; } Function;
typedef struct { Function *function; void *address; uint32_t count; int kind; P to, from; size_t bytes; unsigned char byte; } Node;
typedef struct { Node *nodes[64]; int count; } Graph;
typedef struct { Node nodes[64]; Node *of[64]; int count; } Instance;
typedef struct { Function *func; unsigned grid[3], block[3], shared; void **params, **extra; H kern, ctx; } KernelParams;
typedef struct { size_t sx, sy, sz, slod; int stype; const void *shost; P sdev; H sarray, r0; size_t sp, sh, dx, dy, dz, dlod; int dtype; void *dhost; P ddev;
                 H darray, r1; size_t dp, dh, width, height, depth; } Copy;
typedef struct { P dst; size_t pitch; unsigned value, element; size_t width, height; } Fill;

static int launched, failed, capturing, alive_modules;
static Graph *captured;

/* After a failure was reported, nothing may be called any more; where a kernel never ends, nothing that waits for it. */
static void called(void) { if (failed) { fprintf(stderr, "called after a failure\n"); abort(); } }
static void waits(void) { called(); if (MODE == ENDLESS && launched) { fprintf(stderr, "waits for an endless kernel\n"); abort(); } }
static R query(void) {
    called();
    if (MODE == ILLEGAL_ADDRESS && launched) { failed = 1; return 700; }
    if (MODE == ENDLESS && launched) return 600;
    return 0;
}
static void execute(Function *f, void *address, uint32_t count) {
    launched = 1;
    if (MODE == ILLEGAL_ADDRESS || MODE == ENDLESS || strcmp(f->name, "add_one")) return;
    for (uint32_t i = 0; i < count; i++) ((uint32_t *)address)[i] += MODE == WRONG_RESULT && i == 3 ? 2 : 1;
}
static void step(Node *n) {
    if (n->kind == 0) execute(n->function, n->address, n->count);
    else if (n->kind == 1) memcpy((void *)n->to, (void *)n->from, n->bytes);
    else memset((void *)n->to, n->byte, n->bytes);
}
static Node kernel_node(Function *f, void **params) {
    Node n = { f, 0, 0, 0, 0, 0, 0, 0 };
    if (!strcmp(f->name, "add_one")) { n.address = *(void **)params[0]; n.count = *(uint32_t *)params[1]; }
    return n;
}
static R add(Graph *g, Node n, Node **out) { Node *m = malloc(sizeof n); *m = n; g->nodes[g->count++] = m; if (out) *out = m; return 0; }
static R set(Instance *e, Node *at, Node n) {
    for (int i = 0; i < e->count; i++)
        if (e->of[i] == at) {
            if (MODE == REFUSES_UPDATE || e->nodes[i].kind != n.kind) return 910;
            e->nodes[i] = n;
            return 0;
        }
    return 1;
}

R cuDriverGetVersion(int *v) { *v = MODE == OLD ? 11080 : 13000; return 0; }
R cuInit(unsigned f) { return MODE == NO_DEVICE ? 100 : MODE == UNKNOWN_STATUS ? 4321 : 0; }
R cuGetErrorName(R e, const char **s) {
    *s = e == 100 ? "CUDA_ERROR_NO_DEVICE" : e == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : e == 218 ? "CUDA_ERROR_INVALID_PTX" : e == 701 ? "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES" : 0;
    return *s ? 0 : 1;
}
R cuGetErrorString(R e, const char **s) {
    *s = e == 100 ? "no CUDA-capable device is detected" : e == 700 ? "an illegal memory access was encountered" : e == 218 ? "a PTX JIT compilation failed" : e == 701 ? "too many resources requested for launch" : 0;
    return *s ? 0 : 1;
}
R cuDeviceGetCount(int *n) { *n = MODE == NONE_COUNTED ? 0 : 2; return 0; }
R cuDeviceGet(int *d, int i) { *d = i; return 0; }
R cuDeviceGetName(char *s, int n, int d) { snprintf(s, n, "Stub %d", d); return 0; }
R cuDeviceGetAttribute(int *v, int a, int d) {
    *v = a == 75 ? 9 : a == 76 ? 0 : a == 16 ? 132 : a == 97 ? 232448 : a == 8 ? 49152 : a == 115 ? 1 : a == 38 ? 50 << 20 : 1000;
    return 0;
}
R cuDeviceTotalMem_v2(size_t *b, int d) { *b = (size_t)80 << 30; return 0; }
R cuDeviceGetDefaultMemPool(H *p, int d) { called(); *p = (H)1; return 0; }
R cuDevicePrimaryCtxRetain(H *c, int d) { *c = (H)2; return 0; }
R cuDevicePrimaryCtxRelease_v2(int d) { waits(); if (alive_modules) { fprintf(stderr, "modules are left\n"); abort(); } return 0; }
R cuCtxSetCurrent(H c) { called(); return 0; }
R cuMemGetInfo_v2(size_t *f, size_t *t) { called(); *f = 12345; *t = (size_t)80 << 30; return 0; }
R cuMemPoolSetAttribute(H p, int a, void *v) { called(); return 0; }
R cuMemPoolTrimTo(H p, size_t n) { called(); return 0; }
R cuMemAllocAsync(P *p, size_t n, H s) { called(); if (MODE == OUT_OF_MEMORY) return 2; *p = (P)aligned_alloc(256, (n + 255) / 256 * 256); return 0; }
R cuMemFreeAsync(P p, H s) { called(); free((void *)p); return 0; }
R cuMemAllocHost_v2(void **p, size_t n) { called(); *p = malloc(n); return 0; }
R cuMemFreeHost(void *p) { waits(); free(p); return 0; }
R cuMemcpyHtoDAsync_v2(P to, const void *from, size_t n, H s) { called(); memcpy((void *)to, from, n); return 0; }
R cuMemcpyDtoHAsync_v2(void *to, P from, size_t n, H s) { called(); memcpy(to, (void *)from, n); return 0; }
R cuMemcpyDtoDAsync_v2(P to, P from, size_t n, H s) {
    called();
    Node m = { 0, 0, 0, 1, to, from, n, 0 };
    if (capturing) return add(captured, m, 0);
    step(&m);
    return 0;
}
R cuMemsetD8Async(P to, unsigned char b, size_t n, H s) {
    called();
    Node m = { 0, 0, 0, 2, to, 0, n, b };
    if (capturing) return add(captured, m, 0);
    step(&m);
    return 0;
}
R cuStreamCreate(H *s, unsigned f) { called(); *s = (H)3; return 0; }
R cuStreamDestroy_v2(H s) { called(); return 0; }
R cuStreamQuery(H s) { return query(); }
R cuStreamWaitEvent(H s, H e, unsigned f) { called(); return 0; }
R cuStreamBeginCapture_v2(H s, int m) { called(); capturing = 1; captured = calloc(1, sizeof *captured); return 0; }
R cuStreamEndCapture(H s, H *g) { called(); capturing = 0; *g = captured; return 0; }
R cuEventCreate(H *e, unsigned f) { called(); *e = (H)4; return 0; }
R cuEventRecord(H e, H s) { called(); return 0; }
R cuEventQuery(H e) { return query(); }
R cuEventElapsedTime_v2(float *ms, H a, H b) { called(); *ms = 1.5f; return 0; }
R cuEventDestroy_v2(H e) { called(); return 0; }
R cuModuleLoadDataEx(H *m, const void *text, unsigned n, int *names, void **values) {
    called();
    if (MODE == BAD_PTX) {
        strncpy(values[0], "ptxas application ptx input, line 4; error   : Unknown symbol 'x'", (size_t)values[1] - 1);
        return 218;
    }
    alive_modules++;
    *m = strdup(text);
    return 0;
}
R cuModuleUnload(H m) { waits(); alive_modules--; free(m); return 0; }
R cuModuleGetFunction(H *f, H m, const char *name) {
    called();
    if (!strstr(m, name)) return 500;
    Function *g = calloc(1, sizeof *g);
    strncpy(g->name, name, 63);
    *f = g;
    return 0;
}
R cuModuleGetGlobal_v2(P *p, size_t *n, H m, const char *name) { called(); static char variable[16]; if (strcmp(name, "variable")) return 500; *p = (P)variable; *n = 16; return 0; }
R cuFuncGetAttribute(int *v, int a, H f) { called(); *v = a == 4 ? 24 : a == 0 ? 1024 : 0; return 0; }
R cuFuncSetAttribute(H f, int a, int v) { called(); return v > 232448 ? 1 : 0; }
R cuFuncGetParamInfo(Function *f, size_t i, size_t *o, size_t *n) {
    called();
    if (i > 1 || strcmp(f->name, "add_one")) return 1;
    *o = i * 8;
    *n = i ? 4 : 8;
    return 0;
}
R cuLaunchKernel(Function *f, unsigned a, unsigned b, unsigned c, unsigned d, unsigned e, unsigned g, unsigned shared, H s, void **params, void **extra) {
    called();
    if (MODE == REFUSES_LAUNCH) return 701;
    Node n = kernel_node(f, params);
    if (capturing) return add(captured, n, 0);
    step(&n);
    return 0;
}
R cuGraphCreate(H *g, unsigned f) { called(); *g = calloc(1, sizeof(Graph)); return 0; }
R cuGraphDestroy(H g) { called(); free(g); return 0; }
R cuGraphAddKernelNode_v2(Node **n, Graph *g, Node *const *on, size_t c, const KernelParams *p) { called(); if (c != (g->count > 0) || (c && on[0] != g->nodes[g->count - 1])) return 1; return add(g, kernel_node(p->func, p->params), n); }
R cuGraphAddMemcpyNode(Node **n, Graph *g, Node *const *on, size_t c, const Copy *p, H x) { called(); Node m = { 0, 0, 0, 1, p->ddev, p->sdev, p->width * p->height * p->depth, 0 }; return add(g, m, n); }
R cuGraphAddMemsetNode(Node **n, Graph *g, Node *const *on, size_t c, const Fill *p, H x) { called(); Node m = { 0, 0, 0, 2, p->dst, 0, p->width * p->height * p->element, p->value }; return add(g, m, n); }
R cuGraphInstantiateWithFlags(Instance **e, Graph *g, unsigned long long f) {
    called();
    *e = calloc(1, sizeof **e);
    (*e)->count = g->count;
    for (int i = 0; i < g->count; i++) { (*e)->nodes[i] = *g->nodes[i]; (*e)->of[i] = g->nodes[i]; }
    return 0;
}
R cuGraphExecDestroy(H e) { called(); free(e); return 0; }
R cuGraphExecKernelNodeSetParams_v2(Instance *e, Node *n, const KernelParams *p) { called(); return set(e, n, kernel_node(p->func, p->params)); }
R cuGraphExecMemcpyNodeSetParams(Instance *e, Node *n, const Copy *p, H x) { called(); Node m = { 0, 0, 0, 1, p->ddev, p->sdev, p->width * p->height * p->depth, 0 }; return set(e, n, m); }
R cuGraphExecMemsetNodeSetParams(Instance *e, Node *n, const Fill *p, H x) { called(); Node m = { 0, 0, 0, 2, p->dst, 0, p->width * p->height * p->element, p->value }; return set(e, n, m); }
R cuGraphExecUpdate_v2(Instance *e, Graph *g, void *r) {
    called();
    if (MODE == REFUSES_UPDATE || e->count != g->count) return 910;
    for (int i = 0; i < g->count; i++) e->nodes[i] = *g->nodes[i];
    return 0;
}
/* The preprocessor does not know the enumeration: 1 is MISSING_SYMBOL. */
#if MODE != 1
R cuGraphLaunch(Instance *e, H s) { called(); for (int i = 0; i < e->count; i++) step(&e->nodes[i]); return 0; }
#endif

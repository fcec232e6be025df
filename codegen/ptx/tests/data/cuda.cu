// Compiled by nvcc -ptx -arch=sm_80 into cuda.ptx, whose .version is set to 9.0: what nvcc makes of common kernels.
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cuda_pipeline.h>
#include <mma.h>
extern "C" __global__ void saxpy(int n, float a, const float* x, float* y){int i=blockIdx.x*blockDim.x+threadIdx.x; if(i<n) y[i]=a*x[i]+y[i];}
extern "C" __global__ void reduce(const float*x,float*out,int n){__shared__ float s[256];int t=threadIdx.x;float v=0;for(int i=blockIdx.x*256+t;i<n;i+=gridDim.x*256)v+=x[i];s[t]=v;__syncthreads();for(int k=128;k>0;k>>=1){if(t<k)s[t]+=s[t+k];__syncthreads();}if(t==0)atomicAdd(out,s[0]);}
extern "C" __global__ void wreduce(const float*x,float*out){float v=x[threadIdx.x];for(int o=16;o;o>>=1)v+=__shfl_xor_sync(~0u,v,o);if((threadIdx.x&31)==0)out[threadIdx.x/32]=v;}
extern "C" __global__ void hist(const unsigned char*d,int n,unsigned*h){__shared__ unsigned s[256];s[threadIdx.x]=0;__syncthreads();for(int i=threadIdx.x;i<n;i+=256)atomicAdd(&s[d[i]],1);__syncthreads();atomicAdd(&h[threadIdx.x],s[threadIdx.x]);}
extern "C" __global__ void matmul(const float*a,const float*b,float*c,int n){__shared__ float sa[16][16],sb[16][17];int tx=threadIdx.x,ty=threadIdx.y;float acc=0;for(int k=0;k<n;k+=16){sa[ty][tx]=a[(blockIdx.y*16+ty)*n+k+tx];sb[ty][tx]=b[(k+ty)*n+blockIdx.x*16+tx];__syncthreads();for(int j=0;j<16;j++)acc+=sa[ty][j]*sb[j][tx];__syncthreads();}c[(blockIdx.y*16+ty)*n+blockIdx.x*16+tx]=acc;}
extern "C" __global__ void scan(int*x){__shared__ int s[64];int t=threadIdx.x;s[t]=x[t];__syncthreads();for(int o=1;o<64;o*=2){int v=t>=o?s[t-o]:0;__syncthreads();s[t]+=v;__syncthreads();}x[t]=s[t];}
extern "C" __global__ void halfs(const __half2*a,const __half2*b,__half2*c){int i=threadIdx.x;c[i]=__hfma2(a[i],b[i],__hmax2(a[i],b[i]));}
extern "C" __global__ void bfs(const __nv_bfloat162*a,const __nv_bfloat162*b,__nv_bfloat162*c,float*f){int i=threadIdx.x;c[i]=__hadd2(__hmul2(a[i],b[i]),a[i]);f[i]=__bfloat162float(a[i].x);}
extern "C" __global__ void votes(int*x){int t=threadIdx.x;unsigned m=__ballot_sync(~0u,x[t]>3);int a=__all_sync(~0u,x[t]);unsigned k=__match_any_sync(~0u,x[t]);unsigned r=__reduce_add_sync(~0u,x[t]);x[t]=m+a+k+r+__popc(m)+__clz(m)+__ffs(m)+__brev(m)+__activemask();}
__device__ __noinline__ int fib(int n){return n<2?n:fib(n-1)+fib(n-2);}
extern "C" __global__ void recurse(int*x){x[threadIdx.x]=fib(x[threadIdx.x]);}
__device__ int f0(int a){return a+1;}__device__ int f1(int a){return a*2;}
typedef int(*fp)(int);__device__ fp table[2]={f0,f1};
extern "C" __global__ void indirect(int*x){x[threadIdx.x]=table[x[threadIdx.x]&1](x[threadIdx.x]);}
extern "C" __global__ void sw(int*x){int v=x[threadIdx.x];switch(v){case 0:v=7;break;case 1:v=v*3+5;break;case 2:v^=99;break;case 3:v=v<<3;break;case 4:v=-v;break;case 5:v+=1000;break;case 6:v=v*v;break;default:v=0;}x[threadIdx.x]=v;}
__constant__ float coef[4]={1,2,3,4};
extern "C" __global__ void cpoly(float*x){float v=x[threadIdx.x];x[threadIdx.x]=coef[0]+v*(coef[1]+v*(coef[2]+v*coef[3]));}
struct Big{int a[8];double d;char c;};
extern "C" __global__ void bystruct(Big b,int*x){x[threadIdx.x]=b.a[threadIdx.x&7]+(int)b.d+b.c;}
extern "C" __global__ void i64(long long*x,unsigned long long*y){int t=threadIdx.x;x[t]=x[t]/3+x[t]%7;y[t]=__umul64hi(y[t],y[t])+y[t]/10;}
extern "C" __global__ void pipe(const int4*g,int4*o){__shared__ int4 s[2][64];int t=threadIdx.x;__pipeline_memcpy_async(&s[0][t],&g[t],16);__pipeline_commit();__pipeline_memcpy_async(&s[1][t],&g[64+t],16);__pipeline_commit();__pipeline_wait_prior(1);__syncthreads();o[t]=s[0][63-t];__pipeline_wait_prior(0);__syncthreads();o[64+t]=s[1][63-t];}
extern "C" __global__ void lastblock(const float*x,float*part,unsigned*cnt,float*out){__shared__ bool last;float v=x[blockIdx.x*32+threadIdx.x];for(int o=16;o;o>>=1)v+=__shfl_down_sync(~0u,v,o);if(threadIdx.x==0){part[blockIdx.x]=v;__threadfence();unsigned t=atomicAdd(cnt,1);last=t==gridDim.x-1;}__syncthreads();if(last&&threadIdx.x==0){float s=0;for(int i=0;i<gridDim.x;i++)s+=((volatile float*)part)[i];*out=s;}}
extern "C" __global__ void local(int*x){int a[16];for(int i=0;i<16;i++)a[i]=x[i]*i;int s=0;for(int i=0;i<16;i++)s+=a[(x[threadIdx.x]+i)&15];x[16+threadIdx.x]=s;}
extern "C" __global__ void bytes(const char4*a,uchar4*b,short*s,const unsigned*u,unsigned*v){int t=threadIdx.x;char4 c=a[t];b[t]=make_uchar4(c.x+1,c.y>>1,c.z*c.w,c.w);s[t]=(short)(c.x*c.y);v[t]=__vadd2(u[t],u[t])+__byte_perm(u[t],7,0x4321)+__dp4a((int)u[t],(int)u[t],3)+__funnelshift_l(u[t],5,u[t]);}
extern "C" __global__ void lambda64(double*x){double v=x[threadIdx.x];x[threadIdx.x]=__dadd_rz(v,1.0)+__fma_rn(v,v,1.0)+floor(v)+rint(v)+__ddiv_rn(v,3.0)+(double)(int)v+(double)(float)v;}
extern "C" __global__ void sem(unsigned*l,int*x){if(threadIdx.x==0){while(atomicCAS(l,0,1)!=0);__threadfence();*x+=1;__threadfence();atomicExch(l,0);}}

// The inner loop of the packed search kernel in CUDA C++, without anything around it: what the compiler of the
// toolkit makes of the same instructions, to compare numba-cuda's kernel with (search_kernel.py).
//
//     nvcc -arch=sm_90 -O3 -o search_probe benchmarks/gpu/search_probe.cu && ./search_probe
//
// Random targets of 352 residues, two in a register, against a query of THREADS * ROWS residues; local, affine gaps
// 11/1. Scores of a few targets are compared with a plain loop. Values below 2048 are the same bits as an integer and
// as a half-precision number times 2^24: additions of scores go to the multipliers, maxima to the integer units.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

typedef unsigned int u32;

#define TWO(name, code)                                       \
    __device__ __forceinline__ u32 name(u32 a, u32 b)         \
    {                                                         \
        u32 result;                                           \
        asm(code : "=r"(result) : "r"(a), "r"(b));            \
        return result;                                        \
    }
TWO(larger, "max.s16x2 %0,%1,%2;")
TWO(larger_or_zero, "max.s16x2.relu %0,%1,%2;")
TWO(sum, "add.s16x2 %0,%1,%2;")

__device__ __forceinline__ u32 both(u32 word, int upper)
{
    u32 result;
    if (upper)
        asm("{.reg .b16 l,h; mov.b32 {l,h},%1; mov.b32 %0,{h,h};}" : "=r"(result) : "r"(word));
    else
        asm("{.reg .b16 l,h; mov.b32 {l,h},%1; mov.b32 %0,{l,l};}" : "=r"(result) : "r"(word));
    return result;
}

__device__ __forceinline__ u32 add_score(u32 word, int upper, u32 lane, u32 value)
{
    u32 result;
    asm("fma.rn.f16x2 %0,%1,%2,%3;" : "=r"(result) : "r"(both(word, upper)), "r"(lane), "r"(value));
    return result;
}

template <int THREADS, int ROWS>
__global__ void __launch_bounds__(128)
search(const unsigned short *targets, const uint4 *profile, u32 *best_of, int columns, int pairs)
{
    extern __shared__ uint4 scores[];
    const int words = ROWS / 8 * THREADS;
    for (int i = threadIdx.x; i < 32 * words; i += blockDim.x)
        scores[i] = profile[i];
    __syncthreads();
    const int place = threadIdx.x % THREADS;
    const int pair = min((int)(blockIdx.x * blockDim.x + threadIdx.x) / THREADS, pairs - 1);
    const unsigned short *letters = targets + (size_t)pair * columns;
    const u32 opened = 0xfff5fff5u, prolonged = 0xffffffffu;
    u32 h[ROWS], e[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; r++)
        h[r] = e[r] = 0;
    u32 best = 0, diagonal = 0, two = 0x1f1f, out_h = 0, out_f = 0;
    for (int step = 0; step < columns + THREADS - 1; step++) {
        u32 above = __shfl_up_sync(~0u, out_h, 1, THREADS), f = __shfl_up_sync(~0u, out_f, 1, THREADS);
        two = __shfl_up_sync(~0u, two, 1, THREADS);
        if (place == 0) {
            above = f = 0;
            two = step < columns ? letters[step] : 0x1f1f;
        }
        const uint4 *first = scores + (two & 31) * words + place, *second = scores + (two >> 8) * words + place;
        u32 diag = diagonal, cell = 0, last = 0;
        diagonal = above;
#pragma unroll
        for (int chunk = 0; chunk < ROWS / 8; chunk++) {
            const uint4 a = first[chunk * THREADS], b = second[chunk * THREADS];
            const u32 of_a[4] = {a.x, a.y, a.z, a.w}, of_b[4] = {b.x, b.y, b.z, b.w};
#pragma unroll
            for (int q = 0; q < 8; q++) {
                const int r = chunk * 8 + q;
                const u32 matched = add_score(of_b[q / 2], q & 1, 0x3c000000u,
                                              add_score(of_a[q / 2], q & 1, 0x00003c00u, diag));
                cell = larger_or_zero(larger_or_zero(matched, f), e[r]);
                diag = h[r];
                h[r] = cell;
                if (q & 1)
                    best = larger(larger(best, cell), last);
                last = cell;
                const u32 gap = sum(cell, opened);
                e[r] = larger_or_zero(sum(e[r], prolonged), gap);
                f = larger_or_zero(sum(f, prolonged), gap);
            }
        }
        out_h = cell;
        out_f = f;
    }
    for (int apart = THREADS / 2; apart; apart /= 2)
        best = larger(best, __shfl_xor_sync(~0u, best, apart));
    if (place == 0)
        best_of[pair] = best;
}

static int matrix[32][32];

static int plain_score(const std::vector<int> &query, const unsigned short *letters, int columns, int shift)
{
    std::vector<int> h(query.size() + 1), e(query.size() + 1);
    int best = 0;
    for (int j = 0; j < columns; j++) {
        int diag = 0, f = 0;
        for (size_t i = 1; i <= query.size(); i++) {
            const int match = diag + matrix[letters[j] >> shift & 31][query[i - 1]];
            diag = h[i];
            e[i] = std::max(e[i] - 1, h[i] - 11);
            f = std::max(f - 1, (i > 1 ? h[i - 1] : 0) - 11);
            h[i] = std::max(std::max(0, match), std::max(e[i], f));
            best = std::max(best, h[i]);
        }
    }
    return best;
}

template <int THREADS, int ROWS> static void measure(int pairs, int columns)
{
    const int rows = THREADS * ROWS, chunks = ROWS / 8;
    std::vector<int> query(rows);
    std::vector<unsigned short> targets((size_t)pairs * columns), profile((size_t)32 * rows);
    for (auto &letter : query)
        letter = rand() % 20;
    for (auto &letters : targets)
        letters = rand() % 20 | rand() % 20 << 8;
    for (int letter = 0; letter < 32; letter++)
        for (int chunk = 0; chunk < chunks; chunk++)
            for (int place = 0; place < THREADS; place++)
                for (int q = 0; q < 8; q++) {
                    const int score = letter == 31 ? -60 : matrix[letter][query[place * ROWS + chunk * 8 + q]];
                    profile[((letter * chunks + chunk) * THREADS + place) * 8 + q] =
                        score < 0 ? 0x8000 | -score : score;
                }
    unsigned short *on_device;
    uint4 *scores;
    u32 *best_of;
    const int shared = profile.size() * 2, blocks = (pairs * THREADS + 127) / 128;
    cudaMalloc(&on_device, targets.size() * 2);
    cudaMalloc(&scores, shared);
    cudaMalloc(&best_of, pairs * sizeof(u32));
    cudaMemcpy(on_device, targets.data(), targets.size() * 2, cudaMemcpyHostToDevice);
    cudaMemcpy(scores, profile.data(), shared, cudaMemcpyHostToDevice);
    cudaFuncSetAttribute(search<THREADS, ROWS>, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
    cudaEvent_t start, end;
    cudaEventCreate(&start);
    cudaEventCreate(&end);
    std::vector<float> times;
    for (int repeat = 0; repeat < 7; repeat++) {
        float milliseconds;
        cudaEventRecord(start);
        search<THREADS, ROWS><<<blocks, 128, shared>>>(on_device, scores, best_of, columns, pairs);
        cudaEventRecord(end);
        cudaEventSynchronize(end);
        cudaEventElapsedTime(&milliseconds, start, end);
        times.push_back(milliseconds);
    }
    std::sort(times.begin(), times.end());
    std::vector<u32> found(pairs);
    cudaMemcpy(found.data(), best_of, pairs * sizeof(u32), cudaMemcpyDeviceToHost);
    int wrong = 0;
    for (int sample = 0; sample < 8; sample++) {
        const int pair = (size_t)sample * pairs / 8;
        for (int shift : {0, 8})
            wrong += (int)(found[pair] >> 2 * shift & 0xffff) !=
                     plain_score(query, targets.data() + (size_t)pair * columns, columns, shift);
    }
    printf("query %4d, %2d x %2d: %.3f TCUPS, %s, %s\n", rows, THREADS, ROWS,
           2.0 * pairs * columns * rows / times[times.size() / 2] / 1e9, wrong ? "WRONG" : "scores as a plain loop's",
           cudaGetErrorString(cudaGetLastError()));
    cudaFree(on_device);
    cudaFree(scores);
    cudaFree(best_of);
}

int main()
{
    for (int i = 0; i < 32; i++)
        for (int j = 0; j <= i; j++)
            matrix[i][j] = matrix[j][i] = i == j ? 5 + rand() % 4 : -(rand() % 5);
    const int pairs = 132 * 2048, columns = 352;
    measure<8, 40>(pairs, columns);
    measure<8, 48>(pairs, columns);
    measure<8, 32>(pairs, columns);
    measure<16, 24>(pairs, columns);
    measure<16, 32>(pairs, columns);
    measure<32, 16>(pairs, columns);
}

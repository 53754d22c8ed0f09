/* The C interface of Allring: the only one that liballring.so exports.
 *
 * One runtime per process. Unless said otherwise every function may be called from any thread,
 * returns an allring_status (0 is success) and leaves the reason of a failure in
 * allring_last_error() of the calling thread. Nothing here throws, and nothing needs a framework.
 * Counts are elements. After fork() the child must not call anything but allring_version(): all
 * else fails with ALLRING_INVALID_ARGUMENT there.
 */
#ifndef ALLRING_H_
#define ALLRING_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ALLRING_ABI_VERSION 1
#define ALLRING_EXPORT __attribute__((visibility("default")))

typedef enum {
  ALLRING_OK = 0,
  ALLRING_INVALID_ARGUMENT = 1, /* fix the call */
  ALLRING_MISMATCH = 2,         /* ranks submitted different things under one name */
  ALLRING_PEER_LOST = 3,        /* a rank died, froze or was cut off */
  ALLRING_TIMED_OUT = 4,
  ALLRING_ABORTED = 5, /* given up after an earlier failure or a shutdown */
  ALLRING_UNSUPPORTED = 6,
  ALLRING_OUT_OF_MEMORY = 7,
  ALLRING_INTERNAL = 8,
  ALLRING_IN_PROGRESS = 9 /* allring_wait() only: not done within the time given */
} allring_status;

typedef enum {
  ALLRING_UINT8 = 0,
  ALLRING_INT8 = 1,
  ALLRING_UINT16 = 2,
  ALLRING_INT16 = 3,
  ALLRING_INT32 = 4,
  ALLRING_INT64 = 5,
  ALLRING_FLOAT16 = 6,
  ALLRING_FLOAT32 = 7,
  ALLRING_FLOAT64 = 8,
  ALLRING_BOOL = 9,
  ALLRING_BFLOAT16 = 10
} allring_dtype;

typedef enum {
  ALLRING_AVERAGE = 0,
  ALLRING_SUM = 1,
  ALLRING_ADASUM = 2,
  ALLRING_MIN = 3,
  ALLRING_MAX = 4,
  ALLRING_PRODUCT = 5
} allring_op;

/* A collective under way, of one tensor or of a group of tensors. */
typedef int64_t allring_handle;

#define ALLRING_GLOBAL_PROCESS_SET 0

/* "0.1.0"; ALLRING_ABI_VERSION of the library. */
ALLRING_EXPORT const char* allring_version(void);
ALLRING_EXPORT int allring_abi_version(void);

/* The reason of this thread's latest failure; valid until its next failing call. Never NULL. */
ALLRING_EXPORT const char* allring_last_error(void);
/* The rank that was lost, after ALLRING_PEER_LOST, or -1. */
ALLRING_EXPORT int allring_last_error_rank(void);

/* Joins the job that the environment describes (hvdrun, mpirun, srun, torchrun-style variables, or
 * none: one rank) and returns when all ranks have met, or ALLRING_TIMED_OUT naming those missing.
 * Calling it again while initialized does nothing. May be called again after allring_shutdown(). */
ALLRING_EXPORT int allring_init(void);
/* Leaves the job: pending collectives of this and, soon after, of all ranks fail with
 * ALLRING_ABORTED. Blocks until the runtime's threads are joined, after which no buffer of a caller
 * is in use. Handles, and with them the results that the library allocated, stay until they are
 * released. */
ALLRING_EXPORT int allring_shutdown(void);
ALLRING_EXPORT int allring_is_initialized(void); /* 1 or 0 */

/* Place in the job, or -1 when not initialized. local: on this host; cross: this local_rank's place
 * among the hosts. */
ALLRING_EXPORT int allring_rank(void);
ALLRING_EXPORT int allring_size(void);
ALLRING_EXPORT int allring_local_rank(void);
ALLRING_EXPORT int allring_local_size(void);
ALLRING_EXPORT int allring_cross_rank(void);
ALLRING_EXPORT int allring_cross_size(void);
ALLRING_EXPORT int allring_is_homogeneous(
    void); /* 1 if all hosts have equally many ranks, else 0 */

/* ---- collectives ------------------------------------------------------------------------------
 *
 * Each call queues one tensor and returns a handle at once; the coordinator thread negotiates with
 * the other ranks by name, in whatever order they submit. Buffers must stay valid, and inputs
 * unchanged, until the handle is done. A buffer is dense and in C order.
 *
 * name: unique among what is in flight, the same on all ranks; NULL takes the next of a counter
 *   that advances with every unnamed call of that kind, so ranks must make unnamed calls in the
 * same order. shape: ndim extents; ndim 0 is a scalar.
 */

/* output[i] = postscale * (op over ranks of prescale * input[i]); output may be input. Shapes are
 * equal on all ranks. */
ALLRING_EXPORT int allring_allreduce_async(const char* name, const void* input, void* output,
                                           int ndim, const int64_t* shape, int dtype, int op,
                                           double prescale, double postscale, int process_set,
                                           allring_handle* handle);

/* Concatenates along the first dimension, which may differ (and be 0) between ranks; ndim >= 1. The
 * output is allocated by the library: see allring_output(). */
ALLRING_EXPORT int allring_allgather_async(const char* name, const void* input, int ndim,
                                           const int64_t* shape, int dtype, int process_set,
                                           allring_handle* handle);

/* output = input of root (a global rank); output may be input. */
ALLRING_EXPORT int allring_broadcast_async(const char* name, const void* input, void* output,
                                           int ndim, const int64_t* shape, int dtype, int root,
                                           int process_set, allring_handle* handle);

/* Sends splits[r] rows (first dimension) to rank r, nsplits == size; nsplits 0 means equal parts.
 * The output is allocated by the library; allring_received_splits() tells what came from whom. */
ALLRING_EXPORT int allring_alltoall_async(const char* name, const void* input, int ndim,
                                          const int64_t* shape, int dtype, int nsplits,
                                          const int64_t* splits, int process_set,
                                          allring_handle* handle);

/* Reduces (sum or average) and gives each rank its share of rows; the first (rows % size) ranks get
 * one more. The output is allocated by the library. */
ALLRING_EXPORT int allring_reduce_scatter_async(const char* name, const void* input, int ndim,
                                                const int64_t* shape, int dtype, int op,
                                                double prescale, double postscale, int process_set,
                                                allring_handle* handle);

/* Done when every rank has submitted it. */
ALLRING_EXPORT int allring_barrier_async(int process_set, allring_handle* handle);

typedef enum {
  ALLRING_KIND_ALLREDUCE = 0,
  ALLRING_KIND_REDUCE_SCATTER = 1,
  ALLRING_KIND_ALLGATHER = 2,
  ALLRING_KIND_BROADCAST = 3,
  ALLRING_KIND_ALLTOALL = 4,
  ALLRING_KIND_BARRIER = 5
} allring_kind;

/* One member of a group. struct_bytes = sizeof(allring_tensor), so that later versions may grow it.
 */
typedef struct {
  size_t struct_bytes;
  const char* name; /* unused: the group's name and the member's place make it */
  const void* input;
  void* output; /* NULL where the library allocates */
  int32_t ndim;
  const int64_t* shape;
  int32_t dtype;
} allring_tensor;

/* A group of tensors of one kind (allreduce, allgather, reduce_scatter or broadcast), one handle:
 * all are done or all have failed, on every rank, and none runs before all are ready. op and scales
 * as above; root for broadcast. count >= 1. */
ALLRING_EXPORT int allring_grouped_async(int kind, const char* name, int count,
                                         const allring_tensor* tensors, int op, double prescale,
                                         double postscale, int root, int process_set,
                                         allring_handle* handle);

/* 1 when the handle is done (well or not), 0 when not, -1 for an unknown handle. Does not block. */
ALLRING_EXPORT int allring_poll(allring_handle handle);

/* Blocks up to timeout_ms (-1: as long as it takes) until done. Returns the collective's own status
 * (ALLRING_OK, or why it failed on every rank), or ALLRING_IN_PROGRESS. The handle stays until
 * released. */
ALLRING_EXPORT int allring_wait(allring_handle handle, int64_t timeout_ms);

/* After a successful wait: member `index` of the result. *data is owned by the handle where the
 * library allocated it, else it is the caller's output. shape must have room for *ndim (at most 64)
 * extents. */
ALLRING_EXPORT int allring_output(allring_handle handle, int index, void** data, int* ndim,
                                  int64_t* shape);
/* alltoall: rows received from each rank; splits has room for size of the process set. */
ALLRING_EXPORT int allring_received_splits(allring_handle handle, int64_t* splits);

/* Forgets the handle and frees what it owns. A handle not yet done may be released: the library
 * keeps the operation until it ends, and the buffers must still stay valid until then. */
ALLRING_EXPORT int allring_release(allring_handle handle);

/* ---- memory that needs no copy ----------------------------------------------------------------*/

/* Memory of this process that the other ranks of its host can reach: an allreduce of it is done in
 * place, without a copy, if all ranks' buffers are such. Aligned to 64, from 4096 bytes on to 4096;
 * zeroed where it is used for the first time. Stays until allring_arena_free(), after
 * allring_shutdown() too. Fails with ALLRING_UNSUPPORTED where ranks share no memory (one rank on
 * this host, ALLRING_ARENA_BYTES=0, ..) and with ALLRING_OUT_OF_MEMORY: use any other memory then.
 */
ALLRING_EXPORT int allring_arena_allocate(size_t bytes, void** data);
/* No collective may have it under way any more. After a collective that failed, a rank that has not
 * noticed yet may still write into its output: keep such memory until the job's processes are gone.
 */
ALLRING_EXPORT int allring_arena_free(void* data);

/* ---- what the library is doing ----------------------------------------------------------------*/

/* Copies a description (JSON, NUL-terminated, cut to `bytes`) of what was built and chosen:
 * version, simd, transports, lanes, options with their values. Returns the bytes it needs, the NUL
 * included, or -1. */
ALLRING_EXPORT int64_t allring_describe(char* buffer, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif /* ALLRING_H_ */

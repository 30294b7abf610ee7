// Softmax attention on Hopper: Shah et al. 2024 (FlashAttention-3), forward pass.
//
// A block of threads stays on its multiprocessor and computes tile after tile. One warpgroup, the
// producer, does nothing but order copies (TMA): the queries of a tile, and blocks of keys and
// values in the order of their use, into a ring of buffers. The others, the consumers, have 64
// queries each: scores = Q K^T from shared memory, the online softmax in registers, out += P V with
// P in registers.
// - The scores of the next block are under way while the softmax of the present one is computed and
//   its product with V waits for it: two products in flight.
// - Consumers take turns in ordering products (named barriers), so that the softmax of one falls into
//   the products of another.
// - Blocks are taken from the last to the first, and only those at the edge of what a query may see
//   are compared with that edge.
#pragma once

#include "attention/kernels/cuda/mbarrier.cuh"
#include "attention/kernels/cuda/softmax/sm90_rows.cuh"
#include "attention/kernels/cuda/softmax/sm90_shape.cuh"
#include "attention/kernels/cuda/tma.cuh"
#include "attention/kernels/cuda/wgmma.cuh"

namespace attnbench::kernels::cuda::sm90 {

template <class Shape>
__device__ void softmax_produce(const SoftmaxParameters<typename Shape::Number>& p,
                                const SoftmaxShared<Shape>& shared) {
  RingPosition<Shape::buffers> ring;
  std::uint32_t query_parity = 0;
  const auto load = [&](const TensorMap& map, int block, int head, int batch) {
    wait(shared.free(ring.buffer), ring.parity ^ 1);
    arrive_expecting(shared.full(ring.buffer), Shape::key_bytes);
    load_tile(map, shared.buffer(ring.buffer), shared.full(ring.buffer), block * Shape::keys, head,
              batch);
    ring.advance();
  };
  for (int n = 0;; ++n) {
    const std::int64_t index = SoftmaxTiles::turn(n, blockIdx.x, gridDim.x);
    if (index >= p.tiles.count()) break;
    const SoftmaxTile tile = p.tiles.at(static_cast<int>(index));
    const KeyBlocks blocks = p.tiles.key_blocks(tile.query_block, Shape::queries, Shape::keys);
    if (blocks.count() <= 0) continue;
    const int key_head = tile.head / p.group;
    wait(shared.queries_free(), query_parity ^ 1);
    query_parity ^= 1;
    arrive_expecting(shared.queries_full(), Shape::query_bytes);
    load_tile(p.q, shared.queries, shared.queries_full(), tile.query_block * Shape::queries,
              tile.head, tile.batch);
    load(p.k, blocks.end - 1, key_head, tile.batch);
    for (int block = blocks.end - 2; block >= blocks.first; --block) {
      load(p.k, block, key_head, tile.batch);
      load(p.v, block + 1, key_head, tile.batch);
    }
    load(p.v, blocks.first, key_head, tile.batch);
  }
}

/// Orders the scores of 64 queries against a block of keys.
template <class Shape>
__device__ __forceinline__ void order_scores(float (&scores)[Shape::keys / 2],
                                             std::uint64_t queries, std::uint64_t keys) {
#pragma unroll
  for (int step = 0; step < Shape::width / 16; ++step) {
    const int along = step % 4 * 32;
    Product<typename Shape::Number, Shape::keys>::shared(
        scores, moved(queries, step / 4 * Shape::query_panel + along),
        moved(keys, step / 4 * Shape::key_panel + along), step > 0);
  }
  products_commit();
}

/// Orders out += weights V for a block of values.
template <class Shape>
__device__ __forceinline__ void order_values(float (&out)[Shape::width / 2],
                                             const std::uint32_t (&weights)[Shape::keys / 4],
                                             std::uint64_t values) {
#pragma unroll
  for (int step = 0; step < Shape::keys / 16; ++step) {
    Product<typename Shape::Number, Shape::width>::registers(out, weights + 4 * step,
                                                             moved(values, step * 16 * 128));
  }
  products_commit();
}

template <class Shape>
__device__ void softmax_consume(const SoftmaxParameters<typename Shape::Number>& p,
                                const SoftmaxShared<Shape>& shared, int consumer) {
  using T = typename Shape::Number;
  const int lane = threadIdx.x % 32;
  const int row = 64 * consumer + threadIdx.x % 128 / 32 * 16 + lane / 4;  // and 8 more
  const int column = 2 * (lane % 4);
  const std::uint64_t queries = operand(shared.queries + consumer * 64 * 128, 16);
  RingPosition<Shape::buffers> ring;
  std::uint32_t query_parity = 0;
  const auto release = [&](std::uint32_t barrier) {
    if (lane == 0) arrive(barrier);
  };
  // Barrier 1 + c is the turn of consumer c.
  const auto await_turn = [&] {
    if constexpr (Shape::turns) named_wait(1 + consumer, 256);
  };
  const auto pass_turn = [&] {
    if constexpr (Shape::turns) named_arrive(1 + (consumer + 1) % Shape::consumers, 256);
  };
  if (consumer == Shape::consumers - 1) pass_turn();

  for (int n = 0;; ++n) {
    const std::int64_t index = SoftmaxTiles::turn(n, blockIdx.x, gridDim.x);
    if (index >= p.tiles.count()) break;
    const SoftmaxTile tile = p.tiles.at(static_cast<int>(index));
    const KeyBlocks blocks = p.tiles.key_blocks(tile.query_block, Shape::queries, Shape::keys);
    const int first_query = tile.query_block * Shape::queries;
    OnlineSoftmax softmax;
    float out[Shape::width / 2];
#pragma unroll
    for (int i = 0; i < Shape::width / 2; ++i) out[i] = 0;

    if (blocks.count() > 0) {
      float scores[Shape::keys / 2];
      std::uint32_t weights[Shape::keys / 4];
      float rescale[2];
      // Blocks that begin before every_first, or end after every_last, have keys that some query of
      // this warpgroup does not see.
      const int every_first = p.tiles.first_key(first_query + 64 * consumer + 63);
      const int every_last = p.tiles.last_key(first_query + 64 * consumer);
      const auto hide = [&](int block) {
        const int begin = block * Shape::keys;
        const int t = first_query + row;
        if (begin + Shape::keys - 1 > every_last) {
          hide_after(scores, p.tiles.last_key(t) - begin - column,
                     p.tiles.last_key(t + 8) - begin - column);
        }
        if (begin < every_first) {
          hide_before(scores, p.tiles.first_key(t) - begin - column,
                      p.tiles.first_key(t + 8) - begin - column);
        }
      };

      int block = blocks.end - 1;
      wait(shared.queries_full(), query_parity);
      query_parity ^= 1;
      wait(shared.full(ring.buffer), ring.parity);
      settle(scores);
      products_begin();
      order_scores<Shape>(scores, queries, operand(shared.buffer(ring.buffer), 16));
      products_wait<0>();
      settle(scores);
      release(shared.free(ring.buffer));
      ring.advance();
      hide(block);
      softmax.take(scores, p.scale, rescale);

      // The products with the values are waited for at the top of the next round: behind a wait at
      // the bottom of this one the compiler would put the softmax, which they are to run beside.
      int values_under_way = -1;  // their buffer
      for (;;) {
        products_wait<0>();
        settle(out);
        settle(weights);
        if (values_under_way >= 0) release(shared.free(values_under_way));
        multiply_rows(out, rescale);
        pack<T>(scores, weights);
        if (--block < blocks.first) break;

        const RingPosition<Shape::buffers> keys = ring;
        ring.advance();
        const RingPosition<Shape::buffers> values = ring;
        ring.advance();
        wait(shared.full(keys.buffer), keys.parity);
        await_turn();
        settle(out);
        settle(weights);
        settle(scores);
        products_begin();
        order_scores<Shape>(scores, queries, operand(shared.buffer(keys.buffer), 16));
        wait(shared.full(values.buffer), values.parity);
        products_begin();
        order_values<Shape>(out, weights, operand(shared.buffer(values.buffer), Shape::key_panel));
        values_under_way = values.buffer;
        pass_turn();
        products_wait<1>();
        settle(scores);
        release(shared.free(keys.buffer));
        hide(block);
        softmax.take(scores, p.scale, rescale);
      }
      // The last scores are there: the queries of the next tile may come.
      release(shared.queries_free());
      wait(shared.full(ring.buffer), ring.parity);
      settle(out);
      settle(weights);
      products_begin();
      order_values<Shape>(out, weights, operand(shared.buffer(ring.buffer), Shape::key_panel));
      products_wait<0>();
      settle(out);
      release(shared.free(ring.buffer));
      ring.advance();
    }

    T* to[2];
    float reciprocal[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int t = first_query + row + 8 * r;
      const float sum = sum_of_quad(softmax.sum[r]);
      reciprocal[r] = sum == 0 ? 0 : 1 / sum;  // the sum may be NaN, and then says so
      to[r] = t < p.tiles.length ? p.out.at(tile.batch, tile.head, t) : nullptr;
      if (p.lse != nullptr && to[r] != nullptr && lane % 4 == 0) {
        constexpr float log_2 = 0.693147180559945309F;
        p.lse[(static_cast<std::int64_t>(tile.batch) * p.tiles.heads + tile.head) * p.tiles.length +
              t] = sum == 0 ? INFINITY : log_2 * (softmax.greatest[r] * p.scale + log2f(sum));
      }
    }
    multiply_rows(out, reciprocal);
    write_rows<T>(out, to);
  }
}

template <class Shape>
__global__ void __launch_bounds__(Shape::threads, 1)
    softmax_kernel(const __grid_constant__ SoftmaxParameters<typename Shape::Number> p) {
  ATTNBENCH_SHARED(unsigned char, memory, 1024);
  const SoftmaxShared<Shape> shared(memory);
  if (threadIdx.x == 0) {
    prefetch_map(p.q);
    prefetch_map(p.k);
    prefetch_map(p.v);
    constexpr int warps = 4 * Shape::consumers;
    make_barrier(shared.queries_full(), 1);
    make_barrier(shared.queries_free(), warps);
    for (int i = 0; i < Shape::buffers; ++i) {
      make_barrier(shared.full(i), 1);
      make_barrier(shared.free(i), warps);
    }
    publish_barriers();
  }
  __syncthreads();
  // The same in all threads of a warp, which the compiler should know.
  const int warpgroup = __shfl_sync(0xffffffffu, threadIdx.x / 128, 0);
  if (warpgroup == 0) {
    registers_down<Shape::producer_registers>();
    if (threadIdx.x == 0) softmax_produce<Shape>(p, shared);
  } else {
    registers_up<Shape::consumer_registers>();
    softmax_consume<Shape>(p, shared, warpgroup - 1);
  }
}

template <class Shape>
void softmax_launch(const SoftmaxSizes& sizes, const SoftmaxArguments<typename Shape::Number>& a,
                    Stream stream) {
  using T = typename Shape::Number;
  const int width = Shape::width;
  SoftmaxParameters<T> p;
  p.tiles = SoftmaxTiles(sizes, Shape::queries, Shape::keys, card().l2_bytes);
  if (p.tiles.count() == 0) return;
  p.q = tensor_map(a.q, sizes.batch, sizes.heads, sizes.length, width, Shape::queries);
  p.k = tensor_map(a.k, sizes.batch, sizes.kv_heads, sizes.key_length, width, Shape::keys);
  p.v = tensor_map(a.v, sizes.batch, sizes.kv_heads, sizes.key_length, width, Shape::keys);
  p.out = a.out;
  p.lse = a.lse;
  p.scale = static_cast<float>(sizes.scale * 1.44269504088896340736);
  p.group = static_cast<int>(sizes.heads / sizes.kv_heads);
  const int blocks = std::min(card().multiprocessors, p.tiles.count());
  launch(softmax_kernel<Shape>, dim3(blocks), dim3(Shape::threads), Shape::shared_bytes, stream, p);
}

}  // namespace attnbench::kernels::cuda::sm90

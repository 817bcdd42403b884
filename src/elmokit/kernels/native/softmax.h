// The softmax in training: scores, log-sum-exp and all gradients in one pass, for any vectors and numbers.
//
// With l = h Wᵀ + b for n positions and K words, p = softmax(l) and t the target:
//     loss = log Σ exp(l) - l_t;   ∂l = p - [t];   ∂h = ∂l W;   ∂W = ∂lᵀ h;   ∂b = Σ ∂l
// Everything is computed with words as rows and positions in lanes, W hᵀ instead of h Wᵀ: then a softmax is a sum over
// rows, and ∂l is at once a factor of both products that follow. Blocks of positions stay in the cache.
#pragma once

#include "blocks.h"

namespace {

constexpr int64_t kPanelsTogether = 6, kWordsTogether = 192;

template <class T>
struct SoftmaxSpace {
  using In = typename T::In;
  static constexpr int64_t kWidth = panel_width<T>(), kPositions = kPanelsTogether * kWidth;
  explicit SoftmaxSpace(const SoftmaxRun& run)
      : dim_stride(row_length<T>(run.dim)),
        word_stride(row_length<T>(run.words)),
        position_stride(row_length<T>(kPositions)),
        panels(round_up(run.dim, kWidth) / kWidth),
        weight(run.words * dim_stride),
        weight_by_dim(run.dim * word_stride),
        hidden(kPositions * dim_stride),
        scores(run.words * kWidth),
        gradients((run.words + 1) * position_stride),
        grad_weight(panels * run.words * kWidth),
        grad_hidden(kPanelsTogether * run.dim * kWidth) {}
  bool complete() const {
    return weight.get() && weight_by_dim.get() && hidden.get() && scores.get() && gradients.get() &&
           grad_weight.get() && grad_hidden.get();
  }
  int64_t dim_stride, word_stride, position_stride, panels;
  Buffer<In> weight;          // (K, P)
  Buffer<In> weight_by_dim;   // (P, K)
  Buffer<In> hidden;          // (positions of a block, P)
  Buffer<float> scores;       // (K, panel of positions)
  Buffer<In> gradients;       // (K, positions of a block) ∂l
  Buffer<float> grad_weight;  // (panels, K, panel)
  Buffer<float> grad_hidden;  // (panels of positions, P, panel)
};

// Scores of one panel of positions; returns their largest in each lane.
template <class T>
void panel_scores(const SoftmaxRun& run, const SoftmaxSpace<T>& space, const char* packed, int64_t steps,
                  typename T::Vectors::Floats (&largest)[4]) {
  using V = typename T::Vectors;
  alignas(64) float most[4 * V::kLanes];
  UNROLLED (v, 4) V::store(most + v * V::kLanes, V::set(-3e38f));
  for_rows<T::kRows>(run.words, [&](auto number, int64_t row) {
    constexpr int M = decltype(number)::value;
    typename V::Floats sum[M][4];
    UNROLLED (m, M)
      UNROLLED (v, 4) sum[m][v] = V::set(run.bias[row + m]);
    multiply<T, M>(sum, space.weight.get() + row * space.dim_stride, space.dim_stride, packed, steps);
    UNROLLED (v, 4) {
      typename V::Floats largest_here = V::load(most + v * V::kLanes);
      UNROLLED (m, M) {
        V::store(space.scores.get() + ((row + m) * 4 + v) * V::kLanes, sum[m][v]);
        largest_here = V::max(sum[m][v], largest_here);
      }
      V::store(most + v * V::kLanes, largest_here);
    }
  });
  UNROLLED (v, 4) largest[v] = V::load(most + v * V::kLanes);
}

// From the scores of `count` positions from `first` on to what their losses are made of, and to ∂l in `gradients`.
template <class T>
void panel_gradients(const SoftmaxRun& run, const SoftmaxSpace<T>& space, int64_t first, int64_t count,
                     const typename T::Vectors::Floats (&largest)[4], typename T::In* gradients) {
  using V = typename T::Vectors;
  using Floats = typename V::Floats;
  constexpr int64_t kWidth = panel_width<T>();
  alignas(64) float own[kWidth] = {}, most[kWidth];
  float* const scores = space.scores.get();
  UNROLLED (v, 4) V::store(most + v * V::kLanes, largest[v]);
  for (int64_t k = 0; k < count; k++) {
    const int64_t column = run.column[first + k];
    own[k] = run.score ? run.score[first + k] : scores[column * kWidth + k];
    if (!run.score || column < 0) continue;
    float& left_out = scores[column * kWidth + k];
    if (left_out > own[k] + 1.0f) {  // never for the target itself: find the largest of the others
      left_out = most[k] = -1e30f;
      for (int64_t word = 0; word < run.words; word++)
        most[k] = scores[word * kWidth + k] > most[k] ? scores[word * kWidth + k] : most[k];
    }
    left_out = -1e30f;
  }
  const Floats log2e = V::set(1.44269504f);
  Floats shift[4], total[4];
  UNROLLED (v, 4) {
    const Floats target = V::load(own + v * V::kLanes);
    const Floats highest = V::load(most + v * V::kLanes);
    shift[v] = run.score ? V::max(target, highest) : highest;
    total[v] = run.score ? exp2<V>((target - shift[v]) * log2e) : V::set(0.0f);
  }
  alignas(64) float target[kWidth], sums[kWidth], shifts[kWidth];
  UNROLLED (v, 4) V::store(target + v * V::kLanes, total[v]);
  for (float* score = scores; score < scores + run.words * kWidth; score += kWidth) {
    UNROLLED (v, 4) {
      const Floats e = exp2<V>((V::load(score + v * V::kLanes) - shift[v]) * log2e);
      V::store(score + v * V::kLanes, e);
      total[v] = total[v] + e;
    }
  }
  UNROLLED (v, 4) V::store(sums + v * V::kLanes, total[v]), V::store(shifts + v * V::kLanes, shift[v]);
  for (int64_t k = 0; k < count; k++) {
    run.total[first + k] = sums[k];
    run.shifted[first + k] = own[k] - shifts[k];
    if (run.score) {
      run.grad_score[first + k] = target[k] / sums[k] - 1.0f;
    } else {
      scores[run.column[first + k] * kWidth + k] -= sums[k];
    }
  }
  alignas(64) float factors[kWidth] = {};  // zero where there is no position
  for (int64_t k = 0; k < count; k++) factors[k] = 1.0f / sums[k];
  Floats factor[4];
  UNROLLED (v, 4) factor[v] = V::load(factors + v * V::kLanes);
  const float* score = scores;
  for (int64_t word = 0; word < run.words; word++, score += kWidth, gradients += space.position_stride) {
    Floats grad[4];
    UNROLLED (v, 4) {
      grad[v] = V::load(score + v * V::kLanes) * factor[v];
      T::store(gradients + v * V::kLanes, grad[v]);
    }
    run.grad_bias[word] += V::sum((grad[0] + grad[1]) + (grad[2] + grad[3]));
  }
}

// Losses, ∂h, and what is added to ∂W and ∂b, of `count` positions from `first` on.
template <class T>
bool softmax_block(const SoftmaxRun& run, const SoftmaxSpace<T>& space, int64_t first, int64_t count) {
  using In = typename T::In;
  constexpr int64_t kWidth = panel_width<T>();
  const int64_t panels = round_up(count, kWidth) / kWidth;
  const auto row_of = [&](int64_t place, In* row, int64_t length) {
    if (place >= count) return fill_zero(row, length);
    round_row<T>(run.hidden + (first + place) * run.dim, run.dim, row, length);
  };
  const Packing<T> by_position(run.dim, panels * kWidth), by_dim(panels * kWidth, run.dim);
  if (!by_position.complete() || !by_dim.complete()) return false;
  if (!by_position.by_outputs([&](int64_t place, In* row) { row_of(place, row, by_position.steps * T::kGroup); }) ||
      !by_dim.by_inputs([&](int64_t place, In* row) { row_of(place, row, by_dim.panels * kWidth); }))
    return false;
  for (int64_t panel = 0; panel < panels; panel++) {
    typename T::Vectors::Floats largest[4];
    const int64_t here = panel * kWidth;
    panel_scores<T>(run, space, by_position.panel(panel), by_position.steps, largest);
    panel_gradients<T>(run, space, first + here, smaller(kWidth, count - here), largest, space.gradients.get() + here);
  }
  for (int64_t word = 0; word < run.words; word += kWordsTogether)
    for (int64_t panel = 0; panel < by_dim.panels; panel++)
      add_panel<T>(space.gradients.get() + word * space.position_stride, space.position_stride,
                   smaller(kWordsTogether, run.words - word), by_dim.panel(panel), by_dim.steps,
                   space.grad_weight.get() + (panel * run.words + word) * kWidth, first == 0);
  if (!multiply_rows<T>(space.weight_by_dim.get(), space.word_stride, run.dim, space.gradients.get(),
                        space.position_stride, run.words, panels, space.grad_hidden.get()))
    return false;
  for (int64_t panel = 0; panel < panels; panel++)
    transpose(space.grad_hidden.get() + panel * run.dim * kWidth, kWidth, run.dim,
              smaller(kWidth, count - panel * kWidth), run.grad_hidden + (first + panel * kWidth) * run.dim, run.dim);
  return true;
}

template <class T>
bool run_softmax(const SoftmaxRun& run) {
  constexpr int64_t kWidth = panel_width<T>(), kPositions = SoftmaxSpace<T>::kPositions;
  const SoftmaxSpace<T> space(run);
  if (!space.complete()) return false;
  for (int64_t word = 0; word < run.words; word++)
    round_row<T>(run.weight + word * run.dim, run.dim, space.weight.get() + word * space.dim_stride, space.dim_stride);
  transpose_inputs<T>(space.weight.get(), space.dim_stride, run.words, run.dim, space.weight_by_dim.get(),
                      space.word_stride);
  fill_zero(run.grad_bias, run.words);
  for (int64_t first = 0; first < run.positions; first += kPositions)
    if (!softmax_block<T>(run, space, first, smaller(kPositions, run.positions - first))) return false;
  for (int64_t word = 0; word < run.words; word++)
    for (int64_t k = 0; k < run.dim; k += kWidth)
      __builtin_memcpy(run.grad_weight + word * run.dim + k, in_result<T>(space.grad_weight.get(), run.words, word, k),
                       static_cast<size_t>(smaller(kWidth, run.dim - k)) * sizeof(float));
  return true;
}

}  // namespace

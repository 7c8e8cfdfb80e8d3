#include "model/step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/forwarding_backend.h"

namespace inferno {
namespace {

using ::testing::ElementsAre;

class CountingBackend final : public testing::ForwardingBackend {
 public:
  CountingBackend() : ForwardingBackend(make_cpu_backend(1)) {}
  void upload(Matrix to, std::span<const std::byte> from) override {
    integers += from.size() / sizeof(int);
    inner().upload(to, from);
  }
  std::size_t integers = 0;
};

struct Scene {
  std::unique_ptr<CountingBackend> backend = std::make_unique<CountingBackend>();
  StepLimits limits = {.tokens = 100, .sequences = 3, .logit_rows = 5, .blocks_per_sequence = 4};
  StepBuffers buffers{*backend, limits, 2, 8};

  std::vector<int> read(const Matrix& matrix) {
    std::vector<int> values(matrix.bytes() / sizeof(int));
    backend->download(std::as_writable_bytes(std::span(values)), matrix);
    return values;
  }
};

std::vector<Matrix> all_of(const StepInputs& step) {
  std::vector<Matrix> out = {step.tokens, step.positions, step.query_start, step.context_len,
                             step.logit_rows};
  for (const KvGroup& group : step.groups) out.push_back(group.slots);
  for (const KvGroup& group : step.groups) out.push_back(group.block_table);
  return out;
}

TEST(StepBuffers, HoldTheSlices) {
  Scene scene;
  const std::vector<TokenId> prompt = {7, 8, 9}, next = {5};
  const std::vector<int> full = {3, 1}, window = {2, 0}, other = {6};
  const StepSlice slices[] = {{.tokens = prompt, .start = 6, .logits = 2, .blocks = {full, window}},
                              {.tokens = next, .start = 2, .logits = 1, .blocks = {other, other}}};
  const StepInputs& step = scene.buffers.fill(slices);
  EXPECT_THAT(scene.read(step.tokens), ElementsAre(7, 8, 9, 5));
  EXPECT_THAT(scene.read(step.positions), ElementsAre(6, 7, 8, 2));
  EXPECT_THAT(scene.read(step.query_start), ElementsAre(0, 3, 4));
  EXPECT_THAT(scene.read(step.context_len), ElementsAre(9, 3));
  EXPECT_THAT(scene.read(step.logit_rows), ElementsAre(1, 2, 3));
  EXPECT_THAT(scene.read(step.groups[0].slots), ElementsAre(30, 31, 8, 50));
  EXPECT_THAT(scene.read(step.groups[1].slots), ElementsAre(22, 23, 0, 50));
  EXPECT_THAT(scene.read(step.groups[0].block_table), ElementsAre(3, 1, -1, -1, 6, -1, -1, -1));
  EXPECT_EQ(step.block_size, 8);
  EXPECT_EQ(step.decodes, 0) << "the first slice is a prompt";
}

TEST(StepBuffers, CountTheDecodesAtTheStart) {
  Scene scene;
  const std::vector<TokenId> prompt = {7, 8, 9}, next = {5};
  const std::vector<int> blocks = {3, 1};
  const auto slice = [&](std::span<const TokenId> tokens) {
    return StepSlice{.tokens = tokens, .start = 6, .logits = 1, .blocks = {blocks, blocks}};
  };
  const auto decodes = [&](std::vector<StepSlice> slices) { return scene.buffers.fill(slices).decodes; };
  EXPECT_EQ(decodes({slice(next), slice(next), slice(prompt)}), 2);
  EXPECT_EQ(decodes({slice(next), slice(prompt), slice(next)}), 1);
  EXPECT_EQ(decodes({slice(next), slice(next)}), 2);
}

TEST(StepBuffers, LeaveTokensThatWereDrawn) {
  Scene scene;
  const std::vector<TokenId> given = {7}, unknown = {0};
  const std::vector<int> blocks = {3, 1};
  StepSlice slices[] = {{.tokens = given, .start = 6, .logits = 1, .blocks = {blocks, blocks}},
                        {.tokens = given, .start = 2, .logits = 1, .blocks = {blocks, blocks}}};
  scene.buffers.fill(slices);
  const std::vector<int> drawn = {41, 42};
  scene.backend->upload(scene.buffers.drawn_tokens(2), std::as_bytes(std::span(drawn)));
  for (StepSlice& slice : slices) {
    slice.tokens = unknown;
    slice.drawn = static_cast<int>(&slice - slices);
    ++slice.start;
  }
  const StepInputs& step = scene.buffers.fill(slices);
  EXPECT_THAT(scene.read(step.tokens), ElementsAre(41, 42));
  EXPECT_THAT(scene.read(step.positions), ElementsAre(7, 3));
  EXPECT_THAT(scene.read(step.context_len), ElementsAre(8, 4));
  EXPECT_THAT(scene.read(step.groups[1].block_table), ElementsAre(3, 1, -1, -1, 3, 1, -1, -1));
}

TEST(StepBuffers, GatherTokensThatWereDrawnInAnotherOrder) {
  Scene scene;
  const std::vector<TokenId> prompt = {7, 8, 9}, unknown = {0};
  const std::vector<int> blocks = {3, 1};
  const auto slice = [&](std::span<const TokenId> tokens, int row) {
    return StepSlice{.tokens = tokens, .start = 6, .logits = 1, .blocks = {blocks, blocks}, .drawn = row};
  };
  const std::vector<int> drawn = {41, 42, 43};
  scene.backend->upload(scene.buffers.drawn_tokens(3), std::as_bytes(std::span(drawn)));
  // The second answer ended; a prompt follows the others.
  const StepSlice gathered[] = {slice(unknown, 0), slice(unknown, 2), slice(prompt, StepSlice::given)};
  const StepInputs& mixed = scene.buffers.fill(gathered);
  EXPECT_THAT(scene.read(mixed.tokens), ElementsAre(41, 43, 7, 8, 9));
  EXPECT_THAT(scene.read(mixed.positions), ElementsAre(6, 6, 6, 7, 8));
  EXPECT_EQ(mixed.decodes, 2);
  // Fewer rows than tokens were drawn.
  scene.backend->upload(scene.buffers.drawn_tokens(3), std::as_bytes(std::span(drawn)));
  const StepSlice last[] = {slice(unknown, 2)};
  EXPECT_THAT(scene.read(scene.buffers.fill(last).tokens), ElementsAre(43));
}

// Any series of steps leaves the same inputs on the device as a fresh upload, and the next token of a long
// context uploads a few numbers, not its block table.
TEST(StepBuffers, SendWhatChanged) {
  Scene scene;
  const std::vector<TokenId> tokens = {1, 2, 3, 4, 5, 6, 7, 8};
  std::vector<int> blocks = {3, 1, 2}, other = {5, 6, 7};
  const auto slice = [&](int count, int start) {
    return StepSlice{.tokens = std::span(tokens).first(static_cast<std::size_t>(count)),
                     .start = start,
                     .logits = 1,
                     .blocks = {blocks, other}};
  };
  const auto expect_all = [&](std::vector<StepSlice> slices) {
    scene.backend->integers = 0;
    const std::vector<Matrix> found = all_of(scene.buffers.fill(slices));
    Scene fresh;
    const std::vector<Matrix> expected = all_of(fresh.buffers.fill(slices));
    for (std::size_t i = 0; i < found.size(); ++i) EXPECT_EQ(scene.read(found[i]), fresh.read(expected[i]));
  };
  expect_all({slice(8, 0)});
  expect_all({slice(1, 8)});
  expect_all({slice(1, 9)});
  EXPECT_LT(scene.backend->integers, 7u * 16);
  blocks[1] = 9;
  expect_all({slice(1, 10)});
  expect_all({slice(1, 11), slice(1, 7)});
  blocks.push_back(10);
  expect_all({slice(1, 12), slice(1, 8)});
  expect_all({slice(1, 12), slice(1, 8)});
  expect_all({slice(1, 13)});
  const std::vector<int> drawn = {41};
  scene.backend->upload(scene.buffers.drawn_tokens(1), std::as_bytes(std::span(drawn)));
  expect_all({slice(1, 13)});  // the same inputs, but the device holds other tokens
}

TEST(StepBuffers, HaveTablesAsWideAsTheLongestSequenceNeeds) {
  const auto backend = std::make_unique<CountingBackend>();
  StepBuffers buffers(*backend, {.tokens = 4, .sequences = 2, .logit_rows = 2, .blocks_per_sequence = 1000},
                      1, 8);
  const std::vector<TokenId> token = {7};
  const auto columns = [&](std::size_t one, std::size_t other) {
    const std::vector<int> first(one, 1), second(other, 2);
    const auto slice = [&](const std::vector<int>& blocks) {
      return StepSlice{
          .tokens = token, .start = 8 * static_cast<int>(blocks.size()) - 1, .logits = 1, .blocks = {blocks}};
    };
    const StepSlice slices[] = {slice(first), slice(second)};
    const StepInputs& step = buffers.fill(slices);
    std::vector<int> table(step.groups[0].block_table.bytes() / sizeof(int));
    backend->download(std::as_writable_bytes(std::span(table)), step.groups[0].block_table);
    const auto wide = static_cast<std::size_t>(step.groups[0].block_table.cols);
    EXPECT_EQ(table[one - 1], 1);
    EXPECT_EQ(table[wide], 2);
    EXPECT_EQ(table[wide + other - 1], 2);
    return step.groups[0].block_table.cols;
  };
  EXPECT_EQ(columns(1, 3), 64);
  EXPECT_EQ(columns(65, 3), 128);
  EXPECT_EQ(columns(3, 900), 1000);
  EXPECT_EQ(columns(1, 64), 64);
}

// Recorded steps are replayed with other numbers at the same addresses.
TEST(StepBuffers, UseAddressesThatDependOnTheExtentsAlone) {
  Scene scene;
  std::vector<int> tokens(30, 1), blocks = {0, 1, 2, 3};
  const auto fill = [&](int count, int start, int logits) {
    const StepSlice slice = {.tokens = std::span(tokens).first(static_cast<std::size_t>(count)),
                             .start = start,
                             .logits = logits,
                             .blocks = {blocks, blocks}};
    return all_of(scene.buffers.fill({&slice, 1}));
  };
  const std::vector<Matrix> first = fill(1, 4, 1);
  fill(30, 0, 0);
  const std::vector<Matrix> again = fill(1, 19, 1);
  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(first[i].data, again[i].data);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first[i].data) % 64, 0u);
  }
}

TEST(StepBuffers, DoNotOverlap) {
  Scene scene;
  const std::vector<TokenId> tokens(100, 1);
  const std::vector<int> blocks = {0, 1, 2, 3};
  std::vector<StepSlice> slices;
  for (const std::size_t count : {std::size_t{30}, std::size_t{30}, std::size_t{32}}) {
    slices.push_back(
        {.tokens = std::span(tokens).first(count), .start = 0, .logits = 1, .blocks = {blocks, blocks}});
  }
  const std::vector<Matrix> all = all_of(scene.buffers.fill(slices));
  for (std::size_t i = 1; i < all.size(); ++i) EXPECT_GE(all[i].data, all[i - 1].data + all[i - 1].bytes());
}

}  // namespace
}  // namespace inferno

#include "cli/terminal/line_input.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <deque>

#include "base/error.h"
#include "cli/terminal/line_editor.h"
#include "cli/terminal/streams.h"

namespace inferno::terminal {
namespace {

// Long enough for a slow connection to deliver a whole arrow key, short enough not to be noticed.
constexpr int escape_timeout_ms = 60, interrupt_timeout_ms = 100;
constexpr std::size_t max_entry = std::size_t{64} << 20;

// Waits for bytes. Returns 0 at the end of the input, -1 after `timeout_ms` (-1: no limit) or a signal.
ssize_t read_some(int input, std::array<char, 4096>& buffer, int timeout_ms) {
  pollfd waiting = {.fd = input, .events = POLLIN, .revents = 0};
  const int ready = ::poll(&waiting, 1, timeout_ms);
  if (ready <= 0) return -1;
  const ssize_t count = ::read(input, buffer.data(), buffer.size());
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return -1;
  return count < 0 ? 0 : count;  // a terminal that hung up is the end of the input
}

class TerminalInput : public LineInput {
 public:
  TerminalInput(int input, int output, History history, TerminalMode& mode)
      : input_(input), output_(output), history_(std::move(history)), mode_(mode) {}

  Entry read(const Question& question) override {
    mode_.set(Mode::keys);
    LineEditor editor(question.is_remembered ? history_.entries() : std::vector<std::string>{});
    LineView view(question.prompts);
    while (true) {
      while (!typed_.empty()) {
        const Key key = std::move(typed_.front());
        typed_.pop_front();
        const Outcome outcome = editor.apply(key);
        if (auto entry = ended(outcome, editor, view)) {
          mode_.set(Mode::quiet);
          if (entry->kind == EntryKind::text && question.is_remembered) remember(entry->text);
          return *std::move(entry);
        }
      }
      draw(view, editor);
      if (!await_keys()) {
        mode_.set(Mode::quiet);
        return {EntryKind::end, {}};
      }
    }
  }

 private:
  void draw(LineView& view, const LineEditor& editor) {
    write_out(output_, view.draw(editor.text(), editor.cursor(), screen_size(output_)));
  }

  void remember(const std::string& text) {
    if (history_.add(text) || warned_) return;
    warned_ = true;
    fmt::print(stderr, "note: cannot write the history file; the history is kept for this session only\n");
  }

  std::optional<Entry> ended(Outcome outcome, const LineEditor& editor, LineView& view) {
    switch (outcome) {
      case Outcome::editing: return std::nullopt;
      case Outcome::clear_screen:
        write_out(output_, "\x1b[H\x1b[2J");
        view.forget();
        return std::nullopt;
      case Outcome::suspend:
        mode_.suspend();
        view.forget();
        return std::nullopt;
      case Outcome::submitted:
        write_out(output_, view.finish(editor.text(), screen_size(output_)));
        return Entry{EntryKind::text, editor.text()};
      case Outcome::interrupted:
        write_out(output_, view.finish(editor.text() + "^C", screen_size(output_)));
        return Entry{EntryKind::interrupted, editor.text()};
      case Outcome::left: write_out(output_, view.finish("", screen_size(output_))); break;
    }
    return Entry{EntryKind::end, {}};
  }

  // False if the terminal hung up.
  bool await_keys() {
    std::array<char, 4096> buffer{};
    while (typed_.empty()) {
      const ssize_t count = read_some(input_, buffer, decoder_.is_waiting() ? escape_timeout_ms : -1);
      if (count == 0) return false;
      for (Key& key :
           count < 0 ? decoder_.flush() : decoder_.push({buffer.data(), static_cast<std::size_t>(count)})) {
        typed_.push_back(std::move(key));
      }
      if (count < 0 && typed_.empty()) return true;  // the window may have been resized
    }
    return true;
  }

  int input_, output_;
  History history_;
  TerminalMode& mode_;
  KeyDecoder decoder_;
  std::deque<Key> typed_;
  bool warned_ = false;
};

class PlainInput : public LineInput {
 public:
  PlainInput(int input, std::optional<int> output) : input_(input), output_(output) {}

  Entry read(const Question& question) override {
    std::string text;
    bool any = false;
    while (true) {
      if (output_) write_out(*output_, any ? question.prompts.next : question.prompts.first);
      const auto line = read_line(question);
      if (question.was_interrupted()) return {EntryKind::interrupted, {}};
      if (!line) break;
      text += any ? "\n" + *line : *line;
      any = true;
      if (!is_unfinished(text)) return {EntryKind::text, clean_input(text)};
    }
    return any ? Entry{EntryKind::text, clean_input(text)} : Entry{EntryKind::end, {}};
  }

 private:
  // nullopt at the end of the input and after an interrupt.
  std::optional<std::string> read_line(const Question& question) {
    std::array<char, 4096> buffer{};
    std::size_t searched = 0;
    while (true) {
      const std::size_t end = held_.find('\n', searched);
      if (end != std::string::npos || is_over_) {
        if (end == std::string::npos && held_.empty()) return std::nullopt;
        std::string line = held_.substr(0, end);
        held_.erase(0, end == std::string::npos ? end : end + 1);
        return line;
      }
      searched = held_.size();
      if (held_.size() > max_entry) {
        fail(ErrorKind::invalid_request,
             fmt::format("standard input: expected lines of at most {} bytes", max_entry));
      }
      // The timeout is needed because an interrupt may arrive just before the wait.
      const ssize_t count = read_some(input_, buffer, interrupt_timeout_ms);
      if (question.was_interrupted()) return std::nullopt;
      if (count == 0) is_over_ = true;
      if (count > 0) held_.append(buffer.data(), static_cast<std::size_t>(count));
    }
  }

  int input_;
  std::optional<int> output_;
  std::string held_;
  bool is_over_ = false;
};

}  // namespace

std::unique_ptr<LineInput> terminal_input(int input, int output, History history, TerminalMode& mode) {
  return std::make_unique<TerminalInput>(input, output, std::move(history), mode);
}

std::unique_ptr<LineInput> plain_input(int input, std::optional<int> output) {
  return std::make_unique<PlainInput>(input, output);
}

}  // namespace inferno::terminal

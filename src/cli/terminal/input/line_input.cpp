#include "cli/terminal/input/line_input.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <deque>

#include "base/error.h"
#include "base/utf8.h"
#include "cli/terminal/input/line_editor.h"
#include "cli/terminal/streams.h"
#include "cli/terminal/text_table.h"

namespace inferno::terminal {
namespace {

// Long enough for a slow connection to deliver a whole arrow key, short enough not to be noticed.
constexpr int escape_timeout_ms = 60, interrupt_timeout_ms = 100;
constexpr std::size_t max_entry = std::size_t{64} << 20;
constexpr std::size_t max_listed = 200;  // candidates that Tab lists

// Waits for bytes. Returns 0 at the end of the input, -1 after `timeout_ms` (-1: no limit), a signal or an
// event. `event` is another file whose bytes end the wait, or -1.
ssize_t read_some(int input, std::array<char, 4096>& buffer, int timeout_ms, int event = -1) {
  std::array<pollfd, 2> waiting = {pollfd{.fd = input, .events = POLLIN, .revents = 0},
                                   pollfd{.fd = event, .events = POLLIN, .revents = 0}};
  const int ready = ::poll(waiting.data(), waiting.size(), timeout_ms);
  if (ready <= 0 || waiting[0].revents == 0) return -1;
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
    LineEditor editor(question.is_remembered ? history_.entries() : std::vector<std::string>{},
                      question.completer);
    LineView view(question.prompts);
    while (true) {
      while (!typed_.empty()) {
        const Key key = std::move(typed_.front());
        typed_.pop_front();
        const Outcome outcome = editor.apply(key);
        view.set_prompts(prompts_of(editor, question));
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
  static Prompts prompts_of(const LineEditor& editor, const Question& question) {
    Prompts prompts = question.prompts;
    if (const auto search = editor.search_prompt()) prompts.first = *search;
    return prompts;
  }

  void draw(LineView& view, const LineEditor& editor) {
    write_out(output_, view.draw(editor.text(), editor.cursor(), screen_size(output_)));
  }

  std::string listed(const std::vector<Candidate>& candidates) const {
    std::vector<std::string> names;
    for (const Candidate& candidate : candidates)
      names.push_back(printable(candidate.shown.empty() ? candidate.text : candidate.shown));
    const std::size_t more = names.size() - std::min(names.size(), max_listed);
    names.resize(names.size() - more);
    const std::string grid = text_grid(names, screen_size(output_).columns);
    return more == 0 ? grid : grid + fmt::format("and {} more\n", more);
  }

  void remember(const std::string& text) {
    if (history_.add(text) || warned_) return;
    warned_ = true;
    inferno::say("note: cannot write the history file; the history is kept for this session only\n");
  }

  std::optional<Entry> ended(Outcome outcome, const LineEditor& editor, LineView& view) {
    switch (outcome) {
      case Outcome::editing: return std::nullopt;
      case Outcome::clear_screen:
        write_out(output_, "\x1b[H\x1b[2J");
        view.forget();
        return std::nullopt;
      case Outcome::list:
        write_out(output_, view.finish(editor.text(), screen_size(output_)) + listed(editor.candidates()));
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

  // Waits for keys or a new size of the window. False if the terminal hung up.
  bool await_keys() {
    std::array<char, 4096> buffer{};
    while (typed_.empty()) {
      const ssize_t count =
          read_some(input_, buffer, decoder_.is_waiting() ? escape_timeout_ms : -1, mode_.resize_file());
      mode_.take_resize();
      if (count == 0) return false;
      for (Key& key :
           count < 0 ? decoder_.flush() : decoder_.push({buffer.data(), static_cast<std::size_t>(count)})) {
        typed_.push_back(std::move(key));
      }
      if (count < 0 && typed_.empty()) return true;
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

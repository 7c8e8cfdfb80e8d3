// A conversation: each line of standard input is a message. Ctrl-C ends an answer, end of file the
// conversation.
//   chat MODEL
#include <csignal>
#include <inferno/inferno.hpp>
#include <iostream>
#include <thread>

namespace {

// Requests a stop when SIGINT arrives. The signal is blocked for all threads, those of the library included.
class Interrupt {
 public:
  Interrupt() : watcher_([this](const std::stop_token& end) { watch(end); }) {}
  std::stop_token token() const { return stop_.get_token(); }
  static void block() { change(SIG_BLOCK); }

 private:
  static sigset_t signals() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    return set;
  }
  static void change(int how) {
    const sigset_t set = signals();
    pthread_sigmask(how, &set, nullptr);
  }
  void watch(const std::stop_token& end) {
    const sigset_t set = signals();
    const timespec patience = {.tv_sec = 0, .tv_nsec = 50'000'000};
    while (!end.stop_requested()) {
      if (sigtimedwait(&set, nullptr, &patience) == SIGINT) stop_.request_stop();
    }
  }
  std::stop_source stop_;
  std::jthread watcher_;
};

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) return std::cerr << "usage: chat MODEL\n", 2;
  Interrupt::block();
  const inferno::Model model(argv[1]);
  inferno::Request conversation;
  conversation.set("max_tokens", 40).set("seed", 7);
  for (std::string line; std::cout << "> " << std::flush, std::getline(std::cin, line);) {
    conversation.add_message("user", line);
    inferno::Answer answer = model.ask(conversation);
    const Interrupt interrupt;
    const auto cancel = answer.cancel_with(interrupt.token());
    for (const inferno::Part& part : answer) {
      if (part.kind == INFERNO_PART_CONTENT) std::cout << part.text << std::flush;
    }
    std::cout << '\n';
    conversation.add_message("assistant", answer.text());
  }
} catch (const inferno::Error& error) {
  std::cerr << "error: " << error.what() << "\nwhy:   " << error.why() << "\nnext:  " << error.next() << '\n';
  return 1;
}

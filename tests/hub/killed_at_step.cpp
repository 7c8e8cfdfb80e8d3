// For LD_PRELOAD: counts the calls that change files, over all threads, and ends the process as if by kill -9
// at one of them. KILLED_AT_STEP=7 dies before the seventh call, KILLED_AT_STEP=-7 after it. With STEPS_FILE
// every call is logged to that file.
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

namespace {

std::atomic<long> steps = 0;

long chosen_step() {
  const char* text = std::getenv("KILLED_AT_STEP");
  return text == nullptr ? 0 : std::atol(text);
}

void note(const char* name) {
  static const char* const path = std::getenv("STEPS_FILE");
  if (path == nullptr) return;
  const int file = ::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  [[maybe_unused]] const auto written = ::write(file, name, std::strlen(name)) + ::write(file, "\n", 1);
  ::close(file);
}

template <typename Function, typename... Arguments>
int step(const char* name, Arguments... arguments) {
  static const long chosen = chosen_step();
  const auto real = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
  const long number = steps.fetch_add(1) + 1;
  note(name);
  if (number == chosen) ::kill(::getpid(), SIGKILL);
  const int result = real(arguments...);
  if (-number == chosen) ::kill(::getpid(), SIGKILL);
  return result;
}

}  // namespace

extern "C" {

int fsync(int file) {
  return step<int (*)(int)>("fsync", file);
}
int fdatasync(int file) {
  return step<int (*)(int)>("fdatasync", file);
}
int ftruncate(int file, off_t size) noexcept {
  return step<int (*)(int, off_t)>("ftruncate", file, size);
}
int rename(const char* from, const char* to) noexcept {
  return step<int (*)(const char*, const char*)>("rename", from, to);
}
int symlink(const char* target, const char* path) noexcept {
  return step<int (*)(const char*, const char*)>("symlink", target, path);
}
int unlink(const char* path) noexcept {
  return step<int (*)(const char*)>("unlink", path);
}
int mkdir(const char* path, mode_t mode) noexcept {
  return step<int (*)(const char*, mode_t)>("mkdir", path, mode);
}
int mkdirat(int folder, const char* path, mode_t mode) noexcept {
  return step<int (*)(int, const char*, mode_t)>("mkdirat", folder, path, mode);
}
}

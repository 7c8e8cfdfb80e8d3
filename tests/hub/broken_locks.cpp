// For LD_PRELOAD: flock() always succeeds, as on file systems without real locks.
#include <sys/file.h>

extern "C" int flock(int /*file*/, int /*operation*/) noexcept {
  return 0;
}

#include "base/current_error.h"

#include <exception>
#include <new>
#include <system_error>

namespace inferno {

Error current_error() {
  try {
    throw;
  } catch (const Error& error) {
    return error;
  } catch (const std::bad_alloc&) {
    return {
        ErrorKind::io, "out of memory", {.why = {}, .next = "free some memory, or choose a smaller model"}};
  } catch (const std::system_error& error) {
    return {ErrorKind::io, error.what()};
  } catch (const std::exception& error) {
    return {ErrorKind::internal, error.what()};
  } catch (...) {
    return {ErrorKind::internal, "an exception of an unknown type"};
  }
}

}  // namespace inferno

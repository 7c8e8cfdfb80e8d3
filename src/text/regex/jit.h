// Whether this process can compile regular expressions to machine code.
#pragma once

namespace inferno {

// False if PCRE2 was built without its JIT compiler, or if the system forbids memory that is both written and
// executed (MemoryDenyWriteExecute of systemd, SELinux): texts are then tokenized more slowly, with the same
// result.
bool has_regex_jit();

}  // namespace inferno

// Jinja2 decides while compiling which names of a block are its own. A name that a block assigns before it
// reads it is undefined until then, even where the conversation has a variable of that name: a loop above
// {% set tools = … %} does not see the `tools` that were passed in. Templates were written against that, so
// this pass finds those names.
#pragma once

#include "chat/jinja/ast.h"

namespace inferno::jinja {

// Fills Block::unset throughout the program.
void find_unset_names(Program& program);

}  // namespace inferno::jinja

#include "chat/default_templates.h"

#include <algorithm>

namespace inferno {
namespace {

constexpr std::string_view llama_3_tokens[] = {"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"};
constexpr std::string_view llama_3_source = R"({%- if tools %}
    {{- raise_exception('This model has no chat template of its own, and the default format does not support tools.') }}
{%- endif %}
{{- bos_token }}
{%- for message in messages %}
    {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n' + message['content'] | trim + '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}
{%- endif %})";

constexpr std::string_view granite_tokens[] = {"<|start_of_role|>", "<|end_of_role|>"};
constexpr std::string_view granite_source = R"({%- if tools %}
    {{- raise_exception('This model has no chat template of its own, and the default format does not support tools.') }}
{%- endif %}
{%- for message in messages %}
    {{- '<|start_of_role|>' + message['role'] + '<|end_of_role|>' + message['content'] + eos_token + '\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_of_role|>assistant<|end_of_role|>' }}
{%- endif %})";

constexpr std::string_view phi_3_tokens[] = {"<|user|>", "<|assistant|>", "<|end|>"};
constexpr std::string_view phi_3_source = R"({%- if tools %}
    {{- raise_exception('This model has no chat template of its own, and the default format does not support tools.') }}
{%- endif %}
{%- for message in messages %}
    {{- '<|' + message['role'] + '|>\n' + message['content'] + '<|end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|assistant|>\n' }}
{%- endif %})";

constexpr std::string_view chatml_tokens[] = {"<|im_start|>", "<|im_end|>"};
constexpr std::string_view chatml_source = R"({%- if tools %}
    {{- raise_exception('This model has no chat template of its own, and the default format does not support tools.') }}
{%- endif %}
{%- for message in messages %}
    {{- '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
{%- endif %})";

constexpr std::string_view mistral_tokens[] = {"[INST]", "[/INST]"};
constexpr std::string_view mistral_source = R"({%- if tools %}
    {{- raise_exception('This model has no chat template of its own, and the default format does not support tools.') }}
{%- endif %}
{{- bos_token }}
{%- set ns = namespace(system='') %}
{%- for message in messages %}
    {%- if message['role'] == 'system' %}
        {%- set ns.system = message['content'] + '\n\n' %}
    {%- elif message['role'] == 'user' %}
        {{- '[INST] ' + ns.system + message['content'] + '[/INST]' }}
        {%- set ns.system = '' %}
    {%- elif message['role'] == 'assistant' %}
        {{- ' ' + message['content'] + eos_token }}
    {%- else %}
        {{- raise_exception('This model has no chat template of its own, and the default format supports only the roles system, user and assistant.') }}
    {%- endif %}
{%- endfor %})";

constexpr DefaultTemplate templates[] = {
    {"llama-3", llama_3_tokens, llama_3_source}, {"granite", granite_tokens, granite_source},
    {"phi-3", phi_3_tokens, phi_3_source},       {"chatml", chatml_tokens, chatml_source},
    {"mistral", mistral_tokens, mistral_source},
};

}  // namespace

std::span<const DefaultTemplate> default_templates() {
  return templates;
}

const DefaultTemplate* choose_default_template(const std::function<bool(std::string_view)>& has_token) {
  for (const DefaultTemplate& candidate : templates) {
    if (std::all_of(candidate.control_tokens.begin(), candidate.control_tokens.end(), has_token)) {
      return &candidate;
    }
  }
  return nullptr;
}

}  // namespace inferno

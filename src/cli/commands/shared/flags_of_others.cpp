// The table of other_programs.h: the flags of llama-server and of vLLM (and the commonest of SGLang), without
// those that serve has under the same name. tests/data/flags_of_other_programs.txt lists all of them.
#include "cli/commands/shared/other_programs.h"

namespace inferno {
namespace {

using enum OtherFlagUse;

constexpr std::string_view one_gpu = "Inferno uses one GPU; run one server for each and a balancer in front";
constexpr std::string_view no_speculation = "leave it out: speculative decoding is not available";
constexpr std::string_view one_device =
    "all weights are on one device; --device cpu keeps them out of the GPU";
constexpr std::string_view text_only = "only text models are available";
constexpr std::string_view of_the_model = "leave it out: the model's config.json says it";
constexpr std::string_view no_capture = "nothing is captured or compiled while the server runs";
constexpr std::string_view own_log = "the log has one form, which --log-format chooses";
constexpr std::string_view no_file_reading = "weights are read once, into memory of this process";
constexpr std::string_view built_in_page = "the chat page is built in; --no-ui removes it";
constexpr std::string_view no_tools_run = "this server runs no tools: clients run those that the model calls";
constexpr std::string_view one_model = "a server has one model: run one for each";
constexpr std::string_view by_request = "requests ask for it themselves";
constexpr std::string_view no_sampler = "this sampling method is not available";
constexpr std::string_view no_adapters = "merge the adapter into the model";
constexpr std::string_view no_pooling = "only text generation is available";
constexpr std::string_view by_affinity = "start the server with taskset or numactl";
constexpr std::string_view by_priority = "start the server with nice or chrt";
constexpr std::string_view one_cache = "all requests share one KV cache, with blocks that prefixes stay in";
constexpr std::string_view no_sharing = "leave it out: servers do not share their KV caches";
constexpr std::string_view one_batch = "the scheduler divides steps between prompts and answers by itself";
constexpr std::string_view by_name = "write the model's name: inferno search finds it";
constexpr std::string_view one_tokenizer = "the tokenizer is in the folder or file of the model";
constexpr std::string_view no_swap = "a preempted answer is computed again, not swapped";

constexpr OtherFlag flags[] = {
    // Names with one dash that are options here, and other names of options.
    {"-np", ours},
    {"-ngl", ours},
    {"-hf", ours},
    {"-ctk,-ctv", ours},
    {"-t", renamed, "--threads"},
    {"-v", renamed, "--verbose"},
    {"--quant", renamed, "--quantize"},
    {"-hfr", renamed, "--hf"},
    {"--predict", renamed, "--max-tokens"},
    {"--log-verbose", renamed, "--verbose"},
    {"--usage", renamed, "--help"},
    {"--model-path", renamed, "--model"},
    {"--context-length", renamed, "--context"},
    {"--max-running-requests", renamed, "--parallel"},

    // What is always so.
    {"--jinja", no_effect, "the model's template is always used"},
    {"--enable-auto-tool-choice", no_effect, "tool calls are always recognised"},
    {"--tool-call-parser", no_effect, "the model's template tells how it calls tools", "*"},
    {"--exclude-tools-when-tool-choice-none", no_effect, "the model is shown no tools then"},
    {"--chat-template-content-format", no_effect, "the model's template tells which form it reads", "*"},
    {"--enable-prompt-tokens-details,--enable-per-request-metrics,--enable-request-id-headers", no_effect,
     "responses have the counts, the timings and the id"},
    {"--enable-server-load-tracking", no_effect, "GET /metrics always tells what runs and waits"},
    {"--enable-reasoning", no_effect, "the model's template tells where reasoning is"},
    {"--reasoning-parser", no_effect, "the model's template tells where reasoning is", "*"},
    {"--metrics", no_effect, "/metrics is there unless --no-metrics is given"},
    {"--ui,--webui", no_effect, "the chat page is there unless --no-ui is given"},
    {"--props", no_effect, "GET /props is always there, and read only"},
    {"--slots,--no-slots", no_effect, "there is no /slots; GET /metrics and GET /props tell what runs"},
    {"--cache-prompt,--enable-prefix-caching", no_effect, "prefixes are always cached"},
    {"--cache-reuse", no_effect, "prefixes are always cached, and only whole ones are reused", "*"},
    {"--enable-chunked-prefill", no_effect, "prompts are always computed in chunks"},
    {"-cb,--cont-batching", no_effect, "requests are always batched"},
    {"-kvu,--kv-unified,-no-kvu,--no-kv-unified,--cache-idle-slots,--no-cache-idle-slots,--swa-full,"
     "--disable-hybrid-kv-cache-manager,--no-disable-hybrid-kv-cache-manager,--use-v2-block-manager",
     no_effect, one_cache},
    {"-ctxcp,--ctx-checkpoints,--swa-checkpoints,-cms,--checkpoint-min-step,--prefix-caching-hash-algo",
     no_effect, one_cache, "*"},
    {"-sps,--slot-prompt-similarity", no_effect, "a request finds its prefix wherever it is in the cache",
     "*"},
    {"-fa,--flash-attn", no_effect, "attention is always computed in tiles", "?on,off,auto"},
    {"--no-context-shift", no_effect, "the context is never shifted"},
    {"--keep", no_effect, "the context is never shifted", "*"},
    {"--no-warmup,--warmup,--enforce-eager,--no-enforce-eager,-O0,-O1,-O2,-O3", no_effect, no_capture},
    {"--max-seq-len-to-capture,--cuda-graph-sizes,--cudagraph-capture-sizes,--max-cudagraph-capture-size,-O,"
     "-cc,--compilation-config,--optimization-level,--additional-config,--kernel-config",
     no_effect, no_capture, "*"},
    {"--mlock,--mmap,--no-mmap,-dio,--direct-io,-ndio,--no-direct-io,--no-host,--use-tqdm-on-load,"
     "--no-use-tqdm-on-load",
     no_effect, no_file_reading},
    {"-lm,--load-mode,--safetensors-load-strategy,--pt-load-map-location,--max-parallel-loading-workers,"
     "--ignore-patterns,--model-loader-extra-config",
     no_effect, no_file_reading, "*"},
    {"-nr,--repack,--no-repack", no_effect, "weights are packed for the kernels of the device"},
    {"--perf,--no-perf", no_effect, "times are always measured; --no-timings leaves them out of responses"},
    {"--disable-log-requests,--no-enable-log-requests,--enable-log-requests,--enable-log-outputs,"
     "--no-enable-log-outputs,--enable-log-deltas,--no-enable-log-deltas",
     no_effect, "the log never has text of a request"},
    {"--log-error-stack", no_effect, "errors are logged in one line, without a stack"},
    {"--stream-interval", no_effect, "every token is sent as soon as it is there", "*"},
    {"--max-log-len", no_effect, "the log never has text of a request", "*"},
    {"--disable-log-stats,--disable-uvicorn-access-log,--aggregate-engine-logging", no_effect,
     "the log has one line per request; --log-level warning leaves it out"},
    {"--disable-access-log-for-endpoints", no_effect,
     "the log has one line per request; --log-level warning leaves it out", "*"},
    {"--log-colors", no_effect, own_log, "*"},
    {"--log-prefix,--no-log-prefix,--log-timestamps,--no-log-timestamps", no_effect, own_log},
    {"-e,--escape,--no-escape", no_effect, "requests are JSON, which has its own escapes"},
    {"-bs,--backend-sampling", no_effect, "tokens are sampled on the device"},
    {"--disable-fastapi-docs,--enable-offline-docs", no_effect, "there are no such pages"},
    {"--allowed-methods,--allowed-headers,--cors-methods,--cors-headers", no_effect,
     "an allowed origin gets the methods and headers that the API has", "*"},
    {"--no-cors-credentials,--no-allow-credentials", no_effect, "an origin never gets credentials"},
    {"--no-agent,-no-ag,--no-ui-mcp-proxy,--no-webui-mcp-proxy", no_effect, no_tools_run},
    {"--no-mmproj,--no-mmproj-auto,--mmproj-auto,--mmproj-offload,--no-mmproj-offload,--language-model-only,"
     "--skip-mm-profiling,--disable-mm-preprocessor-cache",
     no_effect, text_only},
    {"--trust-remote-code", no_effect, "code of a model is never run"},
    {"--calculate-kv-scales", no_effect, "the checkpoint's scales are used, else 1"},
    {"--generation-config", no_effect,
     "the settings of the model's authors are used; the sampling flags set others", "auto"},
    {"--tags", no_effect, "/v1/models shows names alone", "*"},
    {"--enable-flash-late-interaction,--no-enable-flash-late-interaction", no_effect, no_pooling},

    // What is chosen here.
    {"--gpu-memory-utilization", no_effect,
     "the KV cache takes what --parallel answers need; --kv-cache-memory-bytes sets its size", "*"},
    {"--mem-fraction-static,-cram,--cache-ram,--num-gpu-blocks-override,--kv-offloading-size,"
     "--kv-offloading-backend",
     no_effect, "cached prefixes are in the KV cache; --kv-cache-memory-bytes sets its size", "*"},
    {"-fit,--fit", no_effect, "layers are never divided between GPU and CPU", "?on,off"},
    {"-fitt,--fit-target,-fitc,--fit-ctx", no_effect, "layers are never divided between GPU and CPU", "*"},
    {"-kvo,--kv-offload,--op-offload,--no-op-offload", no_effect, one_device},
    {"-ub,--ubatch-size", no_effect, "a step computes up to --batch-size tokens at once", "*"},
    {"-tb,--threads-batch", no_effect, "prompts are computed by --threads threads, too", "*"},
    {"--api-server-count,-asc", no_effect, "one process serves all connections", "*"},
    {"--async-scheduling,--no-async-scheduling,--enable-dbo,--disable-chunked-mm-input,"
     "--disable-async-output-proc,--disable-frontend-multiprocessing,--disable-cascade-attn,--no-disable-"
     "cascade-attn",
     no_effect, one_batch},
    {"--max-num-partial-prefills,--max-long-partial-prefills,--long-prefill-token-threshold,"
     "--num-lookahead-slots,--num-scheduler-steps,--scheduler-delay-factor,"
     "--multi-step-stream-outputs,--scheduler-cls,--dbo-decode-token-threshold,--dbo-prefill-token-threshold",
     no_effect, one_batch, "*"},
    {"--scheduling-policy", no_effect, "requests go in order of arrival, and keys take turns", "fcfs"},
    {"--preemption-mode", no_effect, no_swap, "recompute"},
    {"--attention-backend,--mamba-cache-dtype,--mamba-ssm-cache-dtype,--mamba-block-size", no_effect,
     "Inferno has its own kernels", "*"},
    {"--poll,--poll-batch", no_effect, "threads wait without polling", "*"},
    {"--threads-http", no_effect, "connections need no threads; --max-connections limits them", "*"},
    {"--swap-space", no_effect, no_swap, "*"},
    {"--block-size", no_effect, "the blocks of the KV cache have a fixed size", "*"},
    {"-dt,--defrag-thold", no_effect, "the KV cache has blocks and needs no defragmentation", "*"},
    {"--max-logprobs", no_effect, "requests may ask for up to 20 alternatives", "*"},
    {"--guided-decoding-backend", no_effect, "Inferno has one backend for constraints", "*"},
    {"--guided-decoding-disable-fallback", no_effect, "Inferno has one backend for constraints"},
    {"--load-format", no_effect, "the format of the files is recognised: safetensors or GGUF",
     "auto,safetensors,gguf"},
    {"--config-format,--model-impl", no_effect, "the format of the files is recognised", "auto"},
    {"--tokenizer-mode", no_effect, one_tokenizer, "auto,hf"},
    {"--task,--runner", no_effect, no_pooling, "auto,generate"},
    {"--convert", no_effect, no_pooling, "auto,none"},
    {"--response-role", no_effect, "messages of the model have the role assistant", "assistant"},
    {"--repeat-last-n", no_effect, "the repetition penalty counts the whole text", "-1"},
    {"--sleep-idle-seconds", no_effect, "the model stays loaded", "-1"},
    {"--mirostat,--dry-multiplier,--xtc-probability,--dynatemp-range", no_effect, no_sampler, "0,0.0,0.00"},
    {"--top-nsigma,--top-n-sigma,--adaptive-target", no_effect, no_sampler, "-1,-1.0,-1.00"},
    {"--mirostat-lr,--mirostat-ent,--dry-base,--dry-allowed-length,--dry-penalty-last-n,"
     "--dry-sequence-breaker,--xtc-threshold,--dynatemp-exp,--adaptive-decay",
     no_effect, no_sampler, "*"},
    {"--dtype", no_effect, "weights are used in the format they are stored in", "auto"},
    {"-sm,--split-mode", no_effect, one_gpu, "none,layer"},
    {"-tp,--tp,--tensor-parallel-size", no_effect, one_gpu, "1"},
    {"-dcp,--decode-context-parallel-size,-pcp,--prefill-context-parallel-size", no_effect, one_gpu, "1"},
    {"--distributed-executor-backend,--worker-cls,--worker-extension-cls,--all2all-backend,"
     "--expert-placement-strategy,--eplb-config,--num-redundant-experts",
     no_effect, one_gpu, "*"},
    {"--disable-custom-all-reduce,--ray-workers-use-nsight,-ep,--enable-expert-parallel,"
     "--no-enable-expert-parallel,--enable-eplb,--disable-nccl-for-dp-synchronization",
     no_effect, one_gpu},
    {"-pp,--pipeline-parallel-size", no_effect, one_gpu, "1"},
    {"-dp,--data-parallel-size", no_effect, one_gpu, "1"},
    {"--nnodes", no_effect, one_gpu, "1"},
    {"--node-rank", no_effect, one_gpu, "0"},
    {"--reasoning-budget", no_effect,
     "--reasoning-effort sets the effort, and none switches reasoning off where the template has a switch",
     "-1"},
    {"-rea,--reasoning", no_effect,
     "--reasoning-effort sets the effort, and none switches reasoning off where the template has a switch",
     "auto"},

    // What would change answers, places or times.
    {"--no-jinja", refused, "leave it out: the model's template is always used"},
    {"--skip-chat-parsing", refused, "use --reasoning-format none, which keeps reasoning in the content"},
    {"--no-skip-chat-parsing", no_effect, "replies are always parsed"},
    {"--reasoning-budget-message,--reasoning-config", refused, "leave it out: reasoning has no budget"},
    {"--reasoning-preserve,--no-reasoning-preserve", refused,
     "use --chat-template-kwargs with the variable that the template reads"},
    {"--prefill-assistant,--no-prefill-assistant", refused,
     "requests say with \"continue_final_message\" whether the answer continues the last message"},
    {"--cohere-format,--cohere-is-reasoning-model", refused, "use --chat-template-kwargs"},
    {"--trust-request-chat-template", refused, "use --chat-template-file"},
    {"--override-generation-config", refused, "use the sampling flags, such as --temperature"},
    {"-l", refused, "use --logit-bias TOKEN=BIAS"},
    {"--samplers,--sampler-seq,--sampling-seq,--logits-processors,--logits-processor-pattern", refused,
     "leave it out: the order of the samplers is fixed"},
    {"--grammar,--grammar-file,-j,--json-schema,-jf,--json-schema-file", refused,
     "requests bring their own: response_format or grammar"},
    {"-sp,--special", refused, "leave it out: control tokens are never part of the text"},
    {"--return-tokens-as-token-ids,--tokens-only,--enable-tokenizer-info-endpoint", refused,
     "use POST /tokenize and POST /detokenize"},
    {"--fingerprint-mode,--fingerprint-value", refused, "use --worker NAME, which is a header of responses"},
    {"--no-cache-prompt,--no-enable-prefix-caching", refused,
     "requests switch it off themselves with \"cache_prompt\": false"},
    {"--no-enable-chunked-prefill", refused, "leave it out: prompts are always computed in chunks"},
    {"-nocb,--no-cont-batching", refused, "--parallel 1 computes one answer after the other"},
    {"--context-shift", refused, "leave it out: a conversation beyond the context is an error, never cut"},
    {"-to,--timeout", refused,
     "use --request-timeout for a whole request, --body-timeout and --write-timeout for a silent client"},
    {"-lv,--verbosity,--log-verbosity,--uvicorn-log-level", refused, "use --log-level"},
    {"--log-disable", refused, "use --log-level off"},
    {"--log-config-file", refused, "use --log-level and --log-format"},
    {"--log-prompts-dir", refused, "leave it out: the log never has text of a request"},
    {"--otlp-traces-endpoint,--collect-detailed-traces,--enable-layerwise-nvtx-tracing,--profiler-config,"
     "--kv-cache-metrics,--cudagraph-metrics,--show-hidden-metrics-for-version,--enable-mfu-metrics",
     refused, "use GET /metrics, and the timings of responses"},
    {"--config", refused, "set INFERNO_CONFIG, or write the file that inferno config shows"},
    {"--cors-credentials,--allow-credentials", refused,
     "leave it out: an origin never gets credentials; clients send the key in a header"},
    {"--uds", refused, "use --host and --port; a proxy can listen on the socket"},
    {"--reuse-port,--headless", refused, "use --port for each server, and a balancer in front"},
    {"--ssl-ca-certs,--ssl-cert-reqs,--ssl-ciphers,--enable-ssl-refresh,--middleware", refused,
     "use a proxy in front of the server"},
    {"--h11-max-incomplete-event-size,--h11-max-header-count", no_effect,
     "the head of a request may have 16 KiB and 100 fields", "*"},
    {"--enable-force-include-usage", refused,
     "clients ask for it: \"stream_options\": {\"include_usage\": true}"},
    {"--structured-outputs-config,--guided-decoding-disable-any-whitespace,"
     "--guided-decoding-disable-additional-properties",
     refused,
     "requests say it: \"structured_outputs\" with disable_any_whitespace, additionalProperties in the "
     "schema"},
    {"--path,--static-dir,--ui-config,--webui-config,--ui-config-file,--webui-config-file", refused,
     built_in_page},
    {"-ag,--agent,--tools,--tools-runtime,--tool-server,--tool-parser-plugin,--mcp-servers-config,"
     "--mcp-servers-json,--ui-mcp-proxy,--webui-mcp-proxy,--reasoning-parser-plugin,--io-processor-plugin",
     refused, no_tools_run},
    {"--models-dir,--models-max,--models-preset,--models-autoload,--no-models-autoload", refused, one_model},
    {"--list-devices", refused, "use inferno doctor"},
    {"-cl,--cache-list", refused, "use inferno list"},
    {"--completion-bash", refused, "use inferno completion bash"},
    {"--version", refused, "use inferno --version"},
    {"--check-tensors", refused, "use inferno verify"},
    {"-C,--cpu-mask,-Cr,--cpu-range,--cpu-strict,-Cb,--cpu-mask-batch,-Crb,--cpu-range-batch,"
     "--cpu-strict-batch,--numa",
     refused, by_affinity},
    {"--prio,--prio-batch", refused, by_priority},
    {"--enable-sleep-mode", refused, "leave it out: the model stays loaded"},
    {"--log-file", refused, "the log is stderr: append 2>FILE"},
    {"-ts,--tensor-split,--master-addr,--master-port", refused, one_gpu},
    {"--rpc,-dpn,--data-parallel-rank,-dpr,--data-parallel-start-rank,-dpl,--data-parallel-size-local,-dpa,"
     "--data-parallel-address,-dpp,--data-parallel-rpc-port,-dpb,--data-parallel-backend,-dph,"
     "--data-parallel-hybrid-lb,-dpe,--data-parallel-external-lb,--data-parallel-supervisor-port,"
     "--enable-multimodal-encoder-data-parallel,--mm-encoder-tp-mode",
     refused, one_gpu},
    {"-mg,--main-gpu", refused, "use --device cuda:N"},
    {"-dev", refused, "use --device cuda:N, or --device cpu"},
    {"-nkvo,--no-kv-offload,-ot,--override-tensor,-cmoe,--cpu-moe,-ncmoe,--n-cpu-moe,--cpu-offload-gb",
     refused, one_device},
    {"-md,--model-draft,--draft-model,--speculative-config,--spec-type,--draft,--draft-n,--draft-max,"
     "--draft-min,--draft-n-min,--draft-p-min,--draft-p-split,--spec-default,-hfd,-hfrd,--hf-repo-draft,"
     "-ctkd,--cache-type-k-draft,-ctvd,--cache-type-v-draft,-devd,--device-draft,-ngld,--gpu-layers-draft,"
     "--n-gpu-layers-draft,-td,--threads-draft,-tbd,--threads-batch-draft,-otd,--override-tensor-draft,"
     "-cmoed,--cpu-moe-draft,-ncmoed,--n-cpu-moe-draft,-Cd,--cpu-mask-draft,-Crd,--cpu-range-draft,"
     "--cpu-strict-draft,--prio-draft,--poll-draft,-Cbd,--cpu-mask-batch-draft,--cpu-strict-batch-draft,"
     "--prio-batch-draft,--poll-batch-draft,-lcs,--lookup-cache-static,-lcd,--lookup-cache-dynamic",
     refused, no_speculation},
    {"--spec-draft-hf,--spec-draft-model,--spec-draft-device,--spec-draft-ngl,--spec-draft-threads,"
     "--spec-draft-threads-batch,--spec-draft-cpu-mask,--spec-draft-cpu-mask-batch,--spec-draft-cpu-range,"
     "--spec-draft-cpu-strict,--spec-draft-cpu-strict-batch,--spec-draft-prio,--spec-draft-prio-batch,"
     "--spec-draft-poll,--spec-draft-poll-batch,--spec-draft-override-tensor,--spec-draft-cpu-moe,"
     "--spec-draft-n-cpu-moe,--spec-draft-ncmoe,--spec-draft-n-max,--spec-draft-n-min,--spec-draft-p-min,"
     "--spec-draft-p-split,--spec-draft-type-k,--spec-draft-type-v,--spec-draft-backend-sampling,"
     "--no-spec-draft-backend-sampling",
     refused, no_speculation},
    {"--spec-ngram-size-n,--spec-ngram-size-m,--spec-ngram-min-hits,--spec-ngram-mod-n-min,"
     "--spec-ngram-mod-n-max,--spec-ngram-mod-n-match,--spec-ngram-simple-size-n,--spec-ngram-simple-size-m,"
     "--spec-ngram-simple-min-hits,--spec-ngram-map-k-size-n,--spec-ngram-map-k-size-m,"
     "--spec-ngram-map-k-min-hits,--spec-ngram-map-k4v-size-n,--spec-ngram-map-k4v-size-m,"
     "--spec-ngram-map-k4v-min-hits,--speculative-model,--num-speculative-tokens,--ngram-prompt-lookup-max,"
     "--ngram-prompt-lookup-min",
     refused, no_speculation},
    {"--quantization", refused,
     "leave it out: the checkpoint says how it is quantized; --quantize rounds float weights while loading"},
    {"--tokenizer,--tokenizer-revision,--skip-tokenizer-init", refused,
     "leave it out: the tokenizer is in the folder or file of the model"},
    {"--revision,--code-revision", refused, "write the revision after the name: org/name@REVISION"},
    {"-hff,--hf-file", refused, "write the file after the name: hf://org/name/FILE.gguf, or org/name:QUANT"},
    {"-hft,--hf-token", refused, "set HF_TOKEN"},
    {"--download-dir", refused, "set HF_HUB_CACHE"},
    {"-dr,--docker-repo", refused, "use a name of Hugging Face's hub, or a path"},
    {"--embd-gemma-default,--fim-qwen-1.5b-default,--fim-qwen-3b-default,--fim-qwen-7b-default,"
     "--fim-qwen-7b-spec,--fim-qwen-14b-spec,--fim-qwen-30b-default,--gpt-oss-20b-default,"
     "--gpt-oss-120b-default,--vision-gemma-4b-default,--vision-gemma-12b-default",
     refused, by_name},
    {"-mu,--model-url", refused, "download the file, and pass its path"},
    {"--offline", refused, "set HF_HUB_OFFLINE=1"},
    {"--rope-scaling,--rope-scale,--rope-freq-base,--rope-freq-scale,--rope-theta,--hf-overrides,"
     "--hf-config-path,--override-kv,--yarn-orig-ctx,--yarn-ext-factor,--yarn-attn-factor,--yarn-beta-slow,"
     "--yarn-beta-fast,--disable-sliding-window,--override-attention-dtype,--quantization-param-path,"
     "--kv-sharing-fast-prefill",
     refused, of_the_model},
    {"-mm,--mmproj,--limit-mm-per-prompt,-mmu,--mmproj-url,-mmdev,--mmproj-device,--image-min-tokens,"
     "--image-max-tokens,--mtmd-batch-max-tokens,--media-path,--allowed-local-media-path,"
     "--allowed-media-domains,--mm-processor-kwargs,--media-io-kwargs,--mm-processor-cache-gb,"
     "--mm-processor-cache-type,--interleave-mm-strings,--video-pruning-rate",
     refused, text_only},
    {"--embeddings,--embedding,--reranking,--rerank,--pooling,--embd-normalize,--override-pooler-config,"
     "--pooler-config,--spm-infill,--enable-prompt-embeds",
     refused, no_pooling},
    {"--lora,--enable-lora,--lora-modules,--lora-scaled,--lora-init-without-apply,--max-loras,"
     "--max-lora-rank,--max-cpu-loras,--lora-dtype,--lora-extra-vocab-size,--fully-sharded-loras,"
     "--default-mm-loras,--enable-prompt-adapter,--qlora-adapter-name-or-path",
     refused, no_adapters},
    {"--control-vector,--control-vector-scaled,--control-vector-layer-range", refused,
     "leave it out: control vectors are not available"},
    {"--kv-transfer-config,--kv-events-config,--ec-transfer-config,--weight-transfer-config", refused,
     no_sharing},
    {"--logprobs,--top-logprobs", refused, by_request},
    {"--allowed-origins", refused, "use --cors-origin, once for each origin"},
    {"--api-prefix,--root-path", refused, "use a proxy that removes the prefix"},
    {"--slot-save-path", refused, "leave it out: the cache is in memory only"},

    // Of llama.cpp's other programs.
    {"-sys,-cnv,-st,-sysf,-mli,-bf", refused, "leave it out: requests bring their own conversations"},
};

}  // namespace

std::span<const OtherFlag> flags_of_other_programs() {
  return flags;
}

}  // namespace inferno

/* libinferno: runs open language models inside another program. docs/library.md explains the life of a
 * request.
 *
 * Rules that hold for every function, unless its comment says otherwise:
 * - It may be called from any thread, at the same time as any other.
 * - Handles are numbers, not pointers; {0} is none. A handle that was freed, never existed or is of another
 * kind is INFERNO_INVALID_REQUEST, never a crash. Numbers are not used twice.
 * - Structs of options and results begin with `size`, which the caller sets to sizeof of the struct. All
 *   other fields of options may be 0 or NULL, which means the default. Later versions add fields at the end;
 *   sizes that the struct has had in earlier ones stay valid, and no other size is.
 * - Texts are UTF-8. Those given end with a NUL byte and need to exist only during the call.
 * - The library hands out no memory. Texts and arrays are copied into memory of the caller: `capacity` is its
 *   size, `length` or `count` gets the size of the whole result, without the NUL byte that follows a text.
 * With capacity 0 only the size is found out; the memory may then be NULL. If the memory is too small,
 * nothing is copied and the result is INFERNO_TOO_SMALL.
 * - `error` may be NULL. Otherwise every call writes it, one that succeeds with INFERNO_OK and empty texts;
 *   only if there is no memory for a message it may stay as it was. If its `size` is wrong, the call returns
 *   INFERNO_INVALID_REQUEST and does nothing else, except that a handle it should make is {0}.
 * - A call that should make a handle sets it to {0} if it fails, for whatever reason.
 * - "Not in a callback": the function waits for what the thread that calls back computes, so it is refused in
 *   a callback for parts (inferno_ask_with_callback()).
 * - Nothing is printed, no environment variable is read, no signal handler is installed, and no C++ exception
 *   leaves the library. Threads must not be cancelled (pthread_cancel) inside a call.
 * - The caller's floating-point environment (rounding, traps) has no effect and is the same after a call.
 *   Callbacks run in the default one, and what they change there ends with them.
 */
#ifndef INFERNO_INFERNO_H
#define INFERNO_INFERNO_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define INFERNO_API __attribute__((visibility("default")))
#else
#define INFERNO_API
#endif

/* Raised with every incompatible change; also the number of libinferno.so. */
#define INFERNO_ABI 0

#ifdef __cplusplus
extern "C" {
#endif

typedef struct inferno_model {
  uint64_t id;
} inferno_model;

typedef struct inferno_request {
  uint64_t id;
} inferno_request;

typedef struct inferno_answer {
  uint64_t id;
} inferno_answer;

typedef int32_t inferno_status;
enum {
  INFERNO_OK = 0,
  INFERNO_INVALID_REQUEST = 1, /* the caller's fault: a handle, a field, a value */
  INFERNO_NOT_FOUND = 2,       /* no such model or file */
  INFERNO_UNSUPPORTED = 3,     /* valid, but this build or device cannot do it */
  INFERNO_CORRUPT = 4,         /* a file contradicts itself, or an answer could not be computed */
  INFERNO_OVERLOADED = 5,      /* too many requests are waiting: try again */
  INFERNO_IO = 6,              /* memory, disk, permission */
  INFERNO_NETWORK = 7,
  INFERNO_DEVICE = 8,     /* the device is not there, or it failed: unload the model and load it again */
  INFERNO_INTERNAL = 9,   /* a bug in Inferno */
  INFERNO_CANCELLED = 10, /* by a progress callback */
  INFERNO_TOO_SMALL = 11  /* the caller's memory */
};

/* What went wrong, why, and what to do next, in the words of the inferno command. Texts are cut if they are
 * too long; `why` and `next` may be empty. */
typedef struct inferno_error {
  size_t size;
  inferno_status status;
  char what[1024];
  char why[512];
  char next[512];
} inferno_error;

/* "0.1.0". */
INFERNO_API const char* inferno_version(void);
/* INFERNO_ABI of the library itself. */
INFERNO_API int32_t inferno_abi(void);
/* "invalid_request"; "unknown" for a number that is no status. */
INFERNO_API const char* inferno_status_name(inferno_status status);

/* ---- Models ---- */

typedef int32_t inferno_log_level;
enum { INFERNO_LOG_INFO = 0, INFERNO_LOG_WARNING = 1 };

/* Called by any thread, also by several at once. Must not call the library. */
typedef void (*inferno_log_callback)(void* context, inferno_log_level level, const char* message);

/* Called while a model is loaded, by one thread at a time but not always the same one: first with 0 of 0,
 * then about ten times a second, at last with done == total. Anything but 0 ends loading with
 * INFERNO_CANCELLED. Must not call the library. */
typedef int32_t (*inferno_progress_callback)(void* context, uint64_t done, uint64_t total);

typedef struct inferno_load_options {
  size_t size;
  const char* device;      /* "auto" (the default: a GPU if there is one), "cpu", "cuda", "cuda:N" */
  int32_t threads;         /* of the CPU; 0: one for each usable core */
  int32_t context;         /* tokens of prompt and answer; 0: the model's own */
  int32_t parallel;        /* requests computed at once; 0: 1 */
  int32_t deterministic;   /* not 0: an answer depends on its request alone, and the seed is 0 unless set */
  int32_t max_waiting;     /* requests; further ones are INFERNO_OVERLOADED. 0: 1024 */
  int32_t max_step_tokens; /* tokens computed at once; 0: 512, on a GPU 2048 */
  uint64_t cache_bytes;    /* of the KV cache; 0: what `parallel` requests need, if memory allows */
  const char* chat_template_file; /* a Jinja template instead of the model's own */
  /* Where models and caches are. NULL: the user's home folder according to the user database, the folders
   * below it where Hugging Face's tools, LM Studio and Ollama keep models, and HOME/.cache to unpack
   * "builtin". */
  const char* home;
  const char* hub_cache;     /* instead of HOME/.cache/huggingface/hub */
  const char* cache;         /* instead of HOME/.cache */
  const char* model_folders; /* further folders of models, separated by colons */
  inferno_progress_callback progress;
  void* progress_context;
  inferno_log_callback log; /* of this model, until it is unloaded */
  void* log_context;
  /* The type of the KV cache: "auto" (the default: "f32" on the CPU, the type of activations on a GPU),
   * "f32", "f16", "bf16", "q8_0" or "fp8"; two words, "q8_0,f16", if keys and values differ. */
  const char* cache_type;
  const char* quantize; /* round float weights while loading: "q8_0", "q6_k", "q4_k", "q4_0"; NULL: do not */
} inferno_load_options;

/* `name` is what the inferno command takes as MODEL: a folder, a .gguf file, the name of a model in a cache,
 * or "builtin", which is INFERNO_UNSUPPORTED unless the library was compiled with INFERNO_LIBRARY_BUILTIN or
 * one of `model_folders` has a model of this name. Nothing is downloaded. `options` may be NULL. Several
 * models may be loaded at once. Not in a callback. */
INFERNO_API inferno_status inferno_model_load(const char* name, const inferno_load_options* options,
                                              inferno_model* model, inferno_error* error);

/* Ends the model's answers, waits for calls that use it, and returns its memory before it returns. Answers of
 * the model can only be freed afterwards. Not in a callback. */
INFERNO_API inferno_status inferno_model_unload(inferno_model model, inferno_error* error);

typedef struct inferno_description {
  size_t size;
  char name[256];
  char family[64];      /* "llama", "qwen3", … */
  char chat_format[64]; /* empty: the model completes text and takes no messages */
  char device[128];
  char kernels[64];      /* the instruction set or architecture in use */
  int32_t context;       /* tokens that a prompt and its answer may have */
  int32_t model_context; /* the model's maximum */
  int32_t vocabulary;    /* tokens */
  int32_t parallel;
  int32_t shows_tools; /* not 0: the chat format has tools */
  uint64_t parameters;
  uint64_t weight_bytes, cache_bytes; /* on the device */
  double load_seconds;
  char cache_type[32];        /* of the KV cache: "q8_0", or "q8_0,f16" for keys and values */
  uint64_t cache_token_bytes; /* of one token in the KV cache */
} inferno_description;

INFERNO_API inferno_status inferno_model_describe(inferno_model model, inferno_description* description,
                                                  inferno_error* error);

/* The source of the chat template; empty if there is none. */
INFERNO_API inferno_status inferno_model_template(inferno_model model, char* text, size_t capacity,
                                                  size_t* length, inferno_error* error);

typedef struct inferno_statistics {
  size_t size;
  int32_t healthy; /* 0 after a failure of the device */
  int32_t running, waiting;
  int32_t blocks, free_blocks, block_tokens; /* of the KV cache */
  uint64_t requests, steps;
  uint64_t prompt_tokens, cached_tokens, generated_tokens;
  double heartbeat_seconds; /* since the last step; 0 while there is nothing to do */
} inferno_statistics;

INFERNO_API inferno_status inferno_model_statistics(inferno_model model, inferno_statistics* statistics,
                                                    inferno_error* error);

/* What a model needs and whether it fits, before its weights are read. */
typedef struct inferno_plan_result {
  size_t size;
  char device[128];
  uint64_t parameters;
  uint64_t weight_bytes, cache_bytes, workspace_bytes, total_bytes;
  uint64_t available_bytes; /* free on the device */
  int32_t context, parallel;
  int32_t model_context;
  int32_t max_context; /* that fits; 0: the weights alone do not */
  int32_t fits;        /* not 0: with the context that was asked for */
  char cache_type[32];
  uint64_t cache_token_bytes; /* of one token in the KV cache */
} inferno_plan_result;

/* Reads device, threads, context, parallel, cache_type, quantize and the folders (home, hub_cache, cache,
 * model_folders) of the options. Here and below, the other fields have no effect, but their values are
 * checked as for inferno_model_load(), and neither progress nor log is called. */
INFERNO_API inferno_status inferno_plan(const char* name, const inferno_load_options* options,
                                        inferno_plan_result* plan, inferno_error* error);

/* Runs the model "builtin" (see inferno_model_load()) and compares its tokens with the reference:
 * INFERNO_DEVICE if they differ. The text is one line about the result. Reads device, threads and the folders
 * of the options: the model is computed as it is stored, with a KV cache of the default type. Not in a
 * callback. */
INFERNO_API inferno_status inferno_self_test(const inferno_load_options* options, char* text, size_t capacity,
                                             size_t* length, inferno_error* error);

/* The models on this machine: [{"name", "path", "bytes", "place", "complete"}, …]. Reads the folders of the
 * options. */
INFERNO_API inferno_status inferno_list_models(const inferno_load_options* options, char* json,
                                               size_t capacity, size_t* length, inferno_error* error);

/* ---- Requests ----
 * A request is a set of named fields, those of a line of `inferno generate --batch`: "prompt" or "messages";
 * "temperature", "top_p", "seed", "max_tokens", "stop", "logprobs" and the other sampling settings; "tools",
 * "tool_choice", "response_format", "schema", "regex", "grammar", "choices"; "cache_salt", "cache_prompt", …
 * docs/library.md lists them. It belongs to no model and may be asked any number of times. */

INFERNO_API inferno_status inferno_request_new(inferno_request* request, inferno_error* error);
/* From a JSON object of fields. */
INFERNO_API inferno_status inferno_request_from_json(const char* json, inferno_request* request,
                                                     inferno_error* error);
INFERNO_API inferno_status inferno_request_copy(inferno_request request, inferno_request* copy,
                                                inferno_error* error);
INFERNO_API inferno_status inferno_request_free(inferno_request request, inferno_error* error);

/* Each sets one field, or refuses it with the reason. */
INFERNO_API inferno_status inferno_request_set_text(inferno_request request, const char* name,
                                                    const char* text, inferno_error* error);
INFERNO_API inferno_status inferno_request_set_number(inferno_request request, const char* name,
                                                      double number, inferno_error* error);
INFERNO_API inferno_status inferno_request_set_integer(inferno_request request, const char* name,
                                                       int64_t integer, inferno_error* error);
/* Any value, as JSON: "true", "[\"\\n\"]", "{\"type\": \"json_object\"}". null removes the field. */
INFERNO_API inferno_status inferno_request_set_json(inferno_request request, const char* name,
                                                    const char* json, inferno_error* error);
/* Appends {"role": role, "content": text} to "messages". */
INFERNO_API inferno_status inferno_request_add_message(inferno_request request, const char* role,
                                                       const char* text, inferno_error* error);
/* The fields as a JSON object. */
INFERNO_API inferno_status inferno_request_json(inferno_request request, char* json, size_t capacity,
                                                size_t* length, inferno_error* error);

/* ---- Answers ---- */

typedef int32_t inferno_part_kind;
enum {
  INFERNO_PART_NONE = 0, /* nothing yet: the time ran out */
  INFERNO_PART_CONTENT = 1,
  INFERNO_PART_REASONING = 2,
  INFERNO_PART_TOOL_CALL = 3, /* a call begins: its id, and its name as the text */
  INFERNO_PART_ARGUMENTS = 4, /* more of the arguments of the last call with this number, which are JSON */
  INFERNO_PART_WARNING = 5,   /* for the log: the reply violates the model's own format */
  INFERNO_PART_END = 6
};

/* A piece of an answer. Long pieces come as several parts, cut between characters. */
typedef struct inferno_part {
  size_t size;
  inferno_part_kind kind;
  inferno_status status; /* of INFERNO_PART_END in a callback: whether the answer failed; the text says why */
  int32_t call;          /* number of the tool call, from 0 */
  size_t length;         /* of the text, which may contain NUL bytes */
  char id[128];
  char text[1024];
} inferno_part;

/* Called by the engine's thread for each part, at last with INFERNO_PART_END; the first call may come before
 * inferno_ask_with_callback() has returned, and `*answer` is set by then. All answers wait while it runs, so
 * it must not block: functions that wait are refused in it. Anything but 0 cancels the answer. */
typedef int32_t (*inferno_part_callback)(void* context, inferno_answer answer, const inferno_part* part);

/* Begins an answer and returns at once; answers of many requests are computed together. */
INFERNO_API inferno_status inferno_ask(inferno_model model, inferno_request request, inferno_answer* answer,
                                       inferno_error* error);
/* The same; the parts go to the callback and cannot be read with inferno_answer_next(). */
INFERNO_API inferno_status inferno_ask_with_callback(inferno_model model, inferno_request request,
                                                     inferno_part_callback callback, void* context,
                                                     inferno_answer* answer, inferno_error* error);

/* Waits for the next part, at most `milliseconds`; a negative number: until there is one. After
 * INFERNO_PART_END every call returns it again. The result is the error of an answer that failed. Parts are
 * shared out if several threads read the same answer. In a callback only with 0 milliseconds. */
INFERNO_API inferno_status inferno_answer_next(inferno_answer answer, int64_t milliseconds,
                                               inferno_part* part, inferno_error* error);
/* Waits for the end of the answer, as long as inferno_answer_next() does, and drops parts that were not read.
 * `is_over` may be NULL; 0 means that the time ran out. Not in a callback. */
INFERNO_API inferno_status inferno_answer_wait(inferno_answer answer, int64_t milliseconds, int32_t* is_over,
                                               inferno_error* error);
/* The answer ends within one step of the engine, with the text so far: tokens of a step that is being
 * computed may still come. Does not wait. */
INFERNO_API inferno_status inferno_answer_cancel(inferno_answer answer, inferno_error* error);
/* Also cancels it if it is not over, which ends calls that wait for it with INFERNO_INVALID_REQUEST. Waits
 * for a callback of the answer that is running, unless this is called in a callback; none begins later. */
INFERNO_API inferno_status inferno_answer_free(inferno_answer answer, inferno_error* error);

/* All content, or with INFERNO_PART_REASONING all reasoning, as far as parts were read. */
INFERNO_API inferno_status inferno_answer_text(inferno_answer answer, inferno_part_kind kind, char* text,
                                               size_t capacity, size_t* length, inferno_error* error);
/* The tool calls as OpenAI's API has them: [{"id", "type": "function", "function": {"name", "arguments"}},
 * …]. */
INFERNO_API inferno_status inferno_answer_tool_calls(inferno_answer answer, char* json, size_t capacity,
                                                     size_t* length, inferno_error* error);
/* What `inferno generate --json` prints: text, reasoning, tool calls, counts, seed, log probabilities,
 * timings. */
INFERNO_API inferno_status inferno_answer_json(inferno_answer answer, char* json, size_t capacity,
                                               size_t* length, inferno_error* error);

typedef int32_t inferno_finish;
enum {
  INFERNO_FINISH_NONE = 0, /* not yet */
  INFERNO_FINISH_STOP = 1,
  INFERNO_FINISH_LENGTH = 2,
  INFERNO_FINISH_TOOL_CALLS = 3,
  INFERNO_FINISH_CANCELLED = 4
};

typedef struct inferno_usage {
  size_t size;
  inferno_finish finish;
  int32_t prompt_tokens, cached_tokens, completion_tokens, reasoning_tokens;
  uint64_t seed;
  double queue_seconds, prompt_seconds, decode_seconds;
  double first_token_seconds, total_seconds; /* since the request */
} inferno_usage;

INFERNO_API inferno_status inferno_answer_usage(inferno_answer answer, inferno_usage* usage,
                                                inferno_error* error);

/* ---- Prefixes ----
 * Prompts that begin alike share what was computed for their beginning, as long as the KV cache has room for
 * it; the prefix that was not used for the longest time makes room. These are hints. */

/* Computes the prompt of a request now and waits for that, so that answers to prompts with the same beginning
 * start sooner. It waits its turn like any request, without a limit of time, and only unloading the model
 * ends it early. "cache_prompt" false computes all of the prompt again, and keeps it all the same. Not in a
 * callback. */
INFERNO_API inferno_status inferno_prefix_keep(inferno_model model, inferno_request request,
                                               inferno_error* error);
/* Forgets all prefixes that no running answer uses. Not in a callback. */
INFERNO_API inferno_status inferno_prefix_drop(inferno_model model, inferno_error* error);

/* ---- Tokens ---- */

enum {
  INFERNO_ADD_SPECIAL = 1,   /* tokenize: add the begin and end tokens that the model expects */
  INFERNO_PARSE_SPECIAL = 2, /* tokenize: control tokens spelled in the text become control tokens */
  INFERNO_SKIP_SPECIAL = 4   /* detokenize: leave control tokens out */
};

/* `flags`: a sum of flags, or 0. */
INFERNO_API inferno_status inferno_tokenize(inferno_model model, const char* text, uint32_t flags,
                                            int32_t* tokens, size_t capacity, size_t* count,
                                            inferno_error* error);
INFERNO_API inferno_status inferno_detokenize(inferno_model model, const int32_t* tokens, size_t count,
                                              uint32_t flags, char* text, size_t capacity, size_t* length,
                                              inferno_error* error);
/* The prompt that the model would get for a request, as text; of any length. */
INFERNO_API inferno_status inferno_prompt_text(inferno_model model, inferno_request request, char* text,
                                               size_t capacity, size_t* length, inferno_error* error);
/* The same as tokens; a prompt that leaves no room for an answer is an error. */
INFERNO_API inferno_status inferno_prompt_tokens(inferno_model model, inferno_request request,
                                                 int32_t* tokens, size_t capacity, size_t* count,
                                                 inferno_error* error);
/* The logits after each of the last `rows` of `count` tokens: rows * vocabulary numbers. Other answers of the
 * model wait meanwhile. Not in a callback. */
INFERNO_API inferno_status inferno_logits(inferno_model model, const int32_t* tokens, size_t count,
                                          size_t rows, float* logits, size_t capacity, size_t* length,
                                          inferno_error* error);

#ifdef __cplusplus
}
#endif

#endif

// One question, streamed:  node question.mjs MODEL [QUESTION], with koffi (npm install koffi).
// INFERNO_LIBRARY names the library if the system does not find libinferno.so.0.
import koffi from "koffi";

const [OK, CONTENT, END] = [0, 1, 6];
const library = koffi.load(process.env.INFERNO_LIBRARY ?? "libinferno.so.0");

const ErrorStruct = koffi.struct("inferno_error", {
  size: "size_t", status: "int32_t", what: koffi.array("char", 1024, "String"),
  why: koffi.array("char", 512, "String"), next: koffi.array("char", 512, "String"),
});
const PartStruct = koffi.struct("inferno_part", {
  size: "size_t", kind: "int32_t", status: "int32_t", call: "int32_t", length: "size_t",
  id: koffi.array("char", 128, "String"), text: koffi.array("uint8_t", 1024, "Typed"),
});
for (const handle of ["inferno_model", "inferno_request", "inferno_answer"]) koffi.struct(handle, { id: "uint64_t" });

// The function as one that returns a promise: it runs on a thread of its own, so that waiting blocks no one.
function declare(name, types) {
  const found = library.func(`int32_t inferno_${name}(${types}, _Inout_ inferno_error* error)`);
  return async (...values) => {
    const error = { size: koffi.sizeof(ErrorStruct), status: 0, what: "", why: "", next: "" };
    const status = await new Promise((resolve, reject) =>
      found.async(...values, error, (problem, result) => (problem ? reject(problem) : resolve(result))));
    if (status !== OK) throw new Error([error.what, error.why, error.next].filter(Boolean).join(": "));
  };
}
const load = declare("model_load", "const char* name, void* options, _Out_ inferno_model* model");
const unload = declare("model_unload", "inferno_model model");
const newRequest = declare("request_new", "_Out_ inferno_request* request");
const addMessage = declare("request_add_message", "inferno_request request, const char* role, const char* text");
const setInteger = declare("request_set_integer", "inferno_request request, const char* name, int64_t integer");
const freeRequest = declare("request_free", "inferno_request request");
const ask = declare("ask", "inferno_model model, inferno_request request, _Out_ inferno_answer* answer");
const nextPart = declare("answer_next", "inferno_answer answer, int64_t milliseconds, _Inout_ inferno_part* part");
const freeAnswer = declare("answer_free", "inferno_answer answer");

async function* answerTo(model, question) {
  const [request, answer] = [{}, {}];
  await newRequest(request);
  await addMessage(request, "user", question);
  await setInteger(request, "max_tokens", 40);
  await setInteger(request, "seed", 7);
  await ask(model, request, answer);
  try {
    for (;;) {
      const part = { size: koffi.sizeof(PartStruct), kind: 0, status: 0, call: 0, length: 0, id: "",
                     text: new Uint8Array(1024) };
      await nextPart(answer, -1, part);
      if (part.kind === END) return;
      if (part.kind === CONTENT) yield new TextDecoder().decode(part.text.subarray(0, Number(part.length)));
    }
  } finally {
    await freeAnswer(answer);
    await freeRequest(request);
  }
}

const [name, question = "Tell me a story."] = process.argv.slice(2);
if (!name) {
  console.error("usage: node question.mjs MODEL [QUESTION]");
  process.exit(2);
}
const model = {};
await load(name, null, model);
for await (const piece of answerTo(model, question)) process.stdout.write(piece);
process.stdout.write("\n");
await unload(model);

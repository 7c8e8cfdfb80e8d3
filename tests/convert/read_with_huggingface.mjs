// Reads files that `inferno convert` writes with Hugging Face's own GGUF parser: keys, names, shapes, types.
// usage: node read_with_huggingface.mjs PROGRAM FOLDER_OF_MODELS
import { gguf, GGMLQuantizationType } from "@huggingface/gguf";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const [program, models] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), "inferno-convert-"));
let problems = 0;

function expect(same, what) {
  if (same) return;
  ++problems;
  console.error(what);
}

const run = (...words) => JSON.parse(execFileSync(program, [...words, "--json"], { maxBuffer: 1 << 28, stdio: ["ignore", "pipe", "ignore"] }));
const json = (...path) => JSON.parse(readFileSync(join(...path), "utf8"));

async function check(name, type) {
  const file = join(folder, `${name}-${type}.gguf`);
  const where = `${name} as ${type}`;
  const report = run("convert", join(models, name), "-o", file, "--type", type);
  const ours = run("inspect", file);
  const { metadata, tensorInfos } = await gguf(file, { allowLocalFile: true });

  expect(metadata.version === 3, `${where}: version ${metadata.version}`);
  expect(Number(metadata.tensor_count) === tensorInfos.length, `${where}: tensor count`);
  expect(Number(metadata.kv_count) === report.keys, `${where}: ${metadata.kv_count} keys, reported ${report.keys}`);
  const arch = metadata["general.architecture"];
  expect(arch === report.architecture, `${where}: architecture ${arch}`);
  expect(metadata["general.name"] === name, `${where}: name ${metadata["general.name"]}`);

  const theirs = new Map(tensorInfos.map((t) => [t.name, t]));
  expect(theirs.size === ours.tensors.length, `${where}: ${theirs.size} tensors, inspect shows ${ours.tensors.length}`);
  for (const tensor of ours.tensors) {
    const found = theirs.get(tensor.name);
    const shape = found && found.shape.map(Number).reverse();
    const dtype = found && GGMLQuantizationType[found.dtype].toLowerCase();
    expect(found && shape.join() === tensor.shape.join(), `${where}: ${tensor.name} is [${shape}], not [${tensor.shape}]`);
    expect(dtype === tensor.format, `${where}: ${tensor.name} is ${dtype}, not ${tensor.format}`);
  }

  const config = json(models, name, "config.json");
  const layers = config.num_hidden_layers ?? config.n_layer;
  expect(metadata[`${arch}.block_count`] === layers, `${where}: block_count`);
  expect(metadata[`${arch}.embedding_length`] === (config.hidden_size ?? config.n_embd), `${where}: embedding_length`);
  const tokenizer = json(models, name, "tokenizer.json");
  const tokens = metadata["tokenizer.ggml.tokens"];
  expect(tokens.length === config.vocab_size, `${where}: ${tokens.length} tokens`);
  for (const [text, id] of Object.entries(tokenizer.model.vocab)) {
    expect(tokens[id] === text, `${where}: token ${id} is ${tokens[id]}, not ${text}`);
  }
  expect(metadata["tokenizer.ggml.merges"].length === tokenizer.model.merges.length, `${where}: merges`);
  console.log(`${where}: ${tensorInfos.length} tensors, ${metadata.kv_count} keys`);
}

try {
  for (const name of readdirSync(models).sort()) await check(name, "bf16");
  for (const type of ["f16", "q8_0", "q4_0", "q4_k", "q6_k"]) await check("gpt_oss", type);
} finally {
  rmSync(folder, { recursive: true });
}
process.exit(problems === 0 ? 0 : 1);

// Our token ids against @huggingface/tokenizers and tiktoken on generated texts.
//   node compare.mjs TOKENIZE_LINES OUR_TOKENIZER [REFERENCE_FOLDER] [TEXTS] [SEED]
// Exits with 1 and the first differences when an id differs.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Tokenizer } from "@huggingface/tokenizers";
import { get_encoding } from "tiktoken";
import { generator, text } from "./random_text.mjs";

const [program, ours, reference = "", count = "2000", seed = "1"] = process.argv.slice(2);
if (!ours) {
  console.error("usage: node compare.mjs TOKENIZE_LINES OUR_TOKENIZER [REFERENCE_FOLDER] [TEXTS] [SEED]");
  process.exit(2);
}

function our_results(folder, texts) {
  const input = texts.map((t) => JSON.stringify(t) + "\n").join("");
  const run = spawnSync(program, [folder], { input, maxBuffer: 1 << 30 });
  if (run.status !== 0) throw new Error(`${program} ${folder}: ${run.stderr}`);
  return run.stdout.toString().trimEnd().split("\n").map((line) => JSON.parse(line));
}

const same = (a, b) => a.length === b.length && a.every((x, i) => x === b[i]);

let failures = 0;
function check(name, texts, expected, found) {
  let differences = 0;
  for (let i = 0; i < texts.length; ++i) {
    if (same(expected[i], found[i])) continue;
    if (++differences <= 3) {
      console.error(`${name}: ${JSON.stringify(texts[i])}\n  theirs ${expected[i]}\n  ours   ${found[i]}`);
    }
  }
  console.log(`${name}: ${texts.length} texts, ${differences} differ`);
  failures += differences;
}

function folders() {
  const all = [["ours", ours]];
  for (const name of ["gpt-oss", "gpt2", "llama3", "qwen3", "phi-2", "phi-3"]) {
    const folder = join(reference, "tokenizers", name);
    if (reference && existsSync(folder)) all.push([name, folder]);
  }
  return all;
}

function json(path) {
  return existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : {};
}

const tiktoken_names = { "gpt-oss": "o200k_base", gpt2: "gpt2" };

const random = generator(Number(seed));
for (const [name, folder] of folders()) {
  const texts = Array.from({ length: Number(count) }, () => text(random, 30));
  const results = our_results(folder, texts);
  const config = json(join(folder, "tokenizer_config.json"));
  const theirs = new Tokenizer(json(join(folder, "tokenizer.json")), config);
  check(`${name} against @huggingface/tokenizers`, texts,
        texts.map((t) => theirs.encode(t, { add_special_tokens: false }).ids), results.map((r) => r.ids));
  if (tiktoken_names[name]) {
    const encoding = get_encoding(tiktoken_names[name]);
    check(`${name} against tiktoken`, texts, texts.map((t) => [...encoding.encode_ordinary(t)]), results.map((r) => r.plain));
    encoding.free();
  }
}
process.exit(failures === 0 ? 0 : 1);

// @huggingface/jinja behind the interface of jinja_batch: one JSON object per line ({"template", "variables"}),
// each answered with {"text"} or {"error"}. Run where node_modules holds the package.
import { createInterface } from "node:readline";
import { Template } from "@huggingface/jinja";

for await (const line of createInterface({ input: process.stdin })) {
  const { template, variables } = JSON.parse(line);
  let answer;
  try {
    answer = { text: new Template(template).render(variables) };
  } catch (error) {
    answer = { error: String(error.message) };
  }
  console.log(JSON.stringify(answer));
}

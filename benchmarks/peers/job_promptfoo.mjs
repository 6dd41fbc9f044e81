// The job in promptfoo: its HTTP provider, an assertion in JavaScript, and its output file.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const [path, url, concurrency] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), "promptfoo-"));
writeFileSync(
  join(folder, "score.cjs"),
  `module.exports = (output, { vars }) => {
    const reply = typeof output === "string" ? JSON.parse(output) : output;
    const expected = JSON.parse(vars.expected);
    const tools = expected.tools.every((tool) => (reply.tools_used || []).includes(tool));
    const text = reply.answer.toLowerCase();
    const found = expected.keywords.filter((word) => text.includes(word.toLowerCase())).length;
    const score = 0.4 * tools + 0.4 * (found / expected.keywords.length) + 0.2 * !reply.error;
    return { pass: true, score, reason: "standard" };
  };`,
);
const cases = readFileSync(path, "utf8").trim().split("\n").map((line) => JSON.parse(line));
const config = {
  prompts: ["{{question}}"],
  providers: [
    {
      id: "http",
      config: {
        url,
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: { question: "{{prompt}}" },
        transformResponse: "json",
      },
    },
  ],
  defaultTest: { assert: [{ type: "javascript", value: "file://score.cjs" }] },
  tests: cases.map((one) => ({
    vars: {
      question: one.question,
      expected: JSON.stringify({ tools: one.expected_tools, keywords: one.expected_keywords }),
    },
  })),
};
writeFileSync(join(folder, "config.json"), JSON.stringify(config));
const out = join(folder, "out.json");
execFileSync(
  process.env.PROMPTFOO_PROGRAM,
  ["eval", "-c", "config.json", "-o", out, "--no-cache", "--no-table", "--no-progress-bar", "-j", concurrency],
  { cwd: folder, stdio: ["ignore", "ignore", "inherit"], env: { ...process.env, PROMPTFOO_CONFIG_DIR: folder } },
);
const scores = JSON.parse(readFileSync(out, "utf8")).results.results.map((one) => one.score);
rmSync(folder, { recursive: true });
console.log(JSON.stringify({ score: scores.reduce((a, b) => a + b, 0) / scores.length, replies: scores.length }));

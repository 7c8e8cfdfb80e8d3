// Hugging Face's own client: node client.mjs '[["listFiles", {"hubUrl": …}], …]' makes these calls in order and prints
// the results as JSON: content as its hash, a refusal as its status: {"refused": 404, "message": …}.
import * as hub from "@huggingface/hub";
import { createHash } from "node:crypto";

console.debug = () => {}; // the client says there what it does

async function collected(list) {
  const all = [];
  for await (const one of list) all.push(one);
  return all;
}

async function hashed(blob) {
  if (blob === null) return null;
  const hash = createHash("sha256");
  for await (const piece of blob.stream()) hash.update(piece);
  return { size: blob.size, sha256: hash.digest("hex") };
}

const calls = {
  listModels: (order) => collected(hub.listModels(order)),
  listFiles: (order) => collected(hub.listFiles(order)),
  modelInfo: (order) => hub.modelInfo(order),
  pathsInfo: (order) => hub.pathsInfo(order),
  fileDownloadInfo: (order) => hub.fileDownloadInfo(order),
  downloadFile: async (order) => hashed(await hub.downloadFile(order)),
  slice: async (order) => hashed((await hub.downloadFile(order)).slice(order.begin, order.end)),
  downloadFileToCacheDir: (order) => hub.downloadFileToCacheDir(order),
  snapshotDownload: (order) => hub.snapshotDownload(order),
  parseSafetensorsMetadata: (order) => hub.parseSafetensorsMetadata({ ...order, computeParametersCount: true }),
  checkRepoAccess: async (order) => (await hub.checkRepoAccess(order)) ?? "granted",
  repoExists: (order) => hub.repoExists(order),
  fileExists: (order) => hub.fileExists(order),
  whoAmI: (order) => hub.whoAmI(order),
  scanCacheDir: async (order) => {
    const found = await hub.scanCacheDir(order.cacheDir);
    return { ...found, warnings: found.warnings.map(String) };
  },
};

async function made([call, order]) {
  try {
    return await calls[call](order);
  } catch (error) {
    if (error instanceof hub.HubApiError) return { refused: error.statusCode, message: error.message };
    throw error;
  }
}

const results = [];
for (const one of JSON.parse(process.argv[2])) results.push(await made(one));
console.log(JSON.stringify(results));

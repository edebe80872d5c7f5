import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

import { svelte } from "@sveltejs/vite-plugin-svelte";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

const root = dirname(fileURLToPath(import.meta.url));
const committed = join(root, "..", "src", "lamella", "server", "static");
const outDir = process.env.LAMELLA_PAGE_OUT ?? committed;
// Everything that decides what the build is, for the manifest that tests/contracts/test_page_build.py checks.
const inputs = ["index.html", "package.json", "package-lock.json", "vite.config.ts", "svelte.config.js", "tsconfig.json"];
const inputFolders = ["src", "public"];
// Types leave no trace in the build, and these change with the server.
const generated = "src/lib/api/types.ts";

function listFiles(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    return entry.isDirectory() ? listFiles(path) : [path];
  });
}

function hashFile(path: string): string {
  return createHash("sha256").update(readFileSync(path)).digest("hex");
}

/** Writes the hashes of all sources and of all built files beside the build, so that it can be checked without Node. */
function writeManifest(): Plugin {
  return {
    name: "build-manifest",
    apply: "build",
    closeBundle() {
      if (outDir !== committed) return;
      const sources = [...inputs.map((name) => join(root, name)), ...inputFolders.flatMap((name) => listFiles(join(root, name)))].filter((path) => path !== join(root, generated));
      const entries = (paths: string[], base: string) =>
        Object.fromEntries(paths.map((path) => [relative(base, path).replaceAll("\\", "/"), hashFile(path)] as const).sort());
      const manifest = { sources: entries(sources, root), files: entries(listFiles(outDir), outDir) };
      writeFileSync(join(root, "build.json"), JSON.stringify(manifest, null, 1) + "\n");
    },
  };
}

const server = process.env.LAMELLA_SERVER ?? "http://127.0.0.1:8765";
const proxy = {
  "/v1": {
    target: server,
    // The server refuses requests from other origins, and that of the development server is one.
    configure: (one: { on: (event: "proxyReq", listener: (request: { removeHeader: (name: string) => void }) => void) => void }) =>
      one.on("proxyReq", (request) => request.removeHeader("origin")),
  },
};

export default defineConfig({
  test: { environment: "jsdom", include: ["tests/**/*.test.ts"] },
  root,
  base: "/",
  plugins: [svelte(), writeManifest()],
  resolve: { conditions: ["browser"] },
  server: { proxy },
  preview: { proxy },
  build: {
    outDir,
    emptyOutDir: true,
    target: "es2023",
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    reportCompressedSize: false,
  },
});

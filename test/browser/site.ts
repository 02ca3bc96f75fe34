import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const root = fileURLToPath(new URL('../..', import.meta.url))

export interface Site {
  port: number
  close(): Promise<void>
}

/** A page with the app and its chunks, on a free port of 127.0.0.1. */
export async function openSite(): Promise<Site> {
  const files = await bundled()
  files.set('/', { type: 'text/html', body: '<!doctype html><script type="module" src="/app.js"></script>' })
  files.set('/worker.js', { type: 'text/javascript', body: worker })
  const server = createServer(({ url = '/' }, response) => {
    const file = files.get(url)
    response.writeHead(file ? 200 : 404, { 'content-type': file?.type ?? 'text/plain' })
    response.end(file?.body)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

const app = `import * as statewright from './dist/src/index.js'
import { z } from 'zod'
globalThis.app = { ...statewright, z }`

const worker = `import './app.js'
onmessage = async ({ data: baseURL }) => {
  const { createAgent, openaiChat } = globalThis.app
  const { state, output } = await createAgent({ model: openaiChat({ model: 'm', baseURL }) }).run('Hi.').result
  postMessage({ state, output })
}`

async function bundled(): Promise<Map<string, { type: string; body: string }>> {
  const { outputFiles } = await build({
    absWorkingDir: root,
    // The core as an app's bundler imports it from the built package.
    stdin: { contents: app, resolveDir: root },
    entryNames: 'app',
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'browser',
    splitting: true,
    minify: true,
    // Identifies a chunk by its first package.
    chunkNames: '[name]-[hash]',
    outdir: 'site',
    logLevel: 'silent',
  })
  return new Map(
    outputFiles.map(({ path, text }) => [`/${basename(path)}`, { type: 'text/javascript', body: text }]),
  )
}

// Serves the built site on 127.0.0.1, like a static file host: `node serve.ts [PORT]`.
import { createReadStream, statSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname, join, normalize } from 'node:path'
import { pipeline } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { createGzip } from 'node:zlib'

const types: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
  '.json': 'application/json',
  '.md': 'text/markdown; charset=utf-8',
  '.txt': 'text/plain; charset=utf-8',
  '.webp': 'image/webp',
  '.wasm': 'application/wasm',
}
const packed = /\.(html|js|css|svg|json|md|txt)$/
const dist = fileURLToPath(new URL('dist', import.meta.url))

/** The file for a URL. A folder maps to its `index.html`. */
function findFile(url: string): string | null {
  let path: string
  try {
    path = normalize(decodeURIComponent(new URL(url, 'http://site').pathname))
  } catch {
    return null
  }
  const file = join(dist, path.endsWith('/') ? `${path}index.html` : path)
  return statSync(file, { throwIfNoEntry: false })?.isFile() ? file : null
}

/** Serves the built site on a port of 127.0.0.1. Port 0 picks a free port. */
export async function serveSite(port = 0): Promise<{ url: string; close(): Promise<void> }> {
  const server: Server = createServer(({ url = '/' }, response) => {
    const file = findFile(url)
    const shown = file ?? join(dist, '404.html')
    const isPacked = packed.test(shown)
    response.writeHead(file ? 200 : 404, {
      'content-type': types[extname(shown)] ?? 'application/octet-stream',
      // Astro's bundles have content hashes in their names.
      'cache-control': url.includes('/_astro/') ? 'public, max-age=31536000, immutable' : 'no-cache',
      ...(isPacked && { 'content-encoding': 'gzip' }),
    })
    const ended = (): void => {}
    if (isPacked) pipeline(createReadStream(shown), createGzip(), response, ended)
    else pipeline(createReadStream(shown), response, ended)
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', resolve)
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

if (import.meta.filename === process.argv[1]) {
  const { url } = await serveSite(Number(process.argv[2] ?? 4321))
  console.log(`The site is at ${url}. Press Ctrl-C to stop.`)
}

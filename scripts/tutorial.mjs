// Runs docs/tutorial.md as a reader would: starts in an empty folder, writes the page's files, runs every command as written,
// and compares the output. A local registry serves the packed package, because `npm install statewright` must find this version.
import { execFileSync, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { on, once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const page = fileURLToPath(new URL('../docs/tutorial.md', import.meta.url))
const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))

/** An npm registry that has this version, and redirects requests for other packages to the configured registry. */
async function startRegistry(tarball) {
  const upstream = execFileSync('npm', ['config', 'get', 'registry'], { encoding: 'utf8' }).trim()
  const packed = readFileSync(tarball)
  const server = createServer((request, response) => {
    if (request.url === '/statewright.tgz') {
      response.end(packed)
      return
    }
    if (request.url !== '/statewright') {
      response.writeHead(302, { location: new URL(request.url.slice(1), upstream).href }).end()
      return
    }
    const dist = {
      tarball: `${url}statewright.tgz`,
      integrity: `sha512-${createHash('sha512').update(packed).digest('base64')}`,
    }
    const { version } = manifest
    const versions = { [version]: { ...manifest, dist } }
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ name: 'statewright', 'dist-tags': { latest: version }, versions }))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${server.address().port}/`
  return { url, close: () => server.close() }
}

const address = /http:\/\/127\.0\.0\.1:\d+\/\S*(?=\s)/

/** The address that a server prints, or null if it exits. */
async function readAddress(child) {
  let printed = ''
  for await (const [text] of on(child.stdout, 'data', { close: ['end'] })) {
    printed += text
    const [url] = address.exec(printed) ?? []
    if (url) return url
  }
  return null
}

/** Opens the studio like a browser, and returns the ids of its sessions. Stops the studio. */
async function openStudio(child, line) {
  const url = await readAddress(child)
  if (url === null) throw new Error(`${line} ended without an address.`)
  const entrance = await fetch(url, { redirect: 'manual' })
  const cookie = entrance.headers.get('set-cookie')?.split(';')[0] ?? ''
  const home = new URL(entrance.headers.get('location') ?? '', url)
  const sessions = await fetch(new URL('api/sessions', home), {
    headers: { cookie, 'sec-fetch-site': 'same-origin' },
  })
  const listed = await sessions.text()
  process.kill(-Number(child.pid), 'SIGINT')
  if (!sessions.ok) throw new Error(`${line}: ${sessions.url} answers with ${sessions.status}.`)
  return listed
}

/** Runs a shell line and returns its output. */
async function runLine(line, folder, registry) {
  const child = spawn('bash', ['-c', `exec 2>&1\n${line}`], {
    cwd: folder,
    env: { ...process.env, npm_config_registry: registry.url },
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const timer = setTimeout(() => process.kill(-Number(child.pid), 'SIGKILL'), 120_000)
  child.stdout.setEncoding('utf8')
  const closed = once(child, 'close')
  try {
    if (line.includes(' studio ')) return await openStudio(child, line)
    let printed = ''
    child.stdout.on('data', (text) => (printed += text))
    const [code] = await closed
    if (code !== 0) throw new Error(`${line} ended with ${code}:\n${printed}`)
    return printed
  } finally {
    clearTimeout(timer)
  }
}

/** Plays the page with a packed package. Throws at the first difference. */
export async function runTutorial(tarball) {
  const folder = mkdtempSync(join(tmpdir(), 'statewright-tutorial-'))
  const registry = await startRegistry(tarball)
  try {
    await playPage(folder, registry)
  } finally {
    registry.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function playPage(folder, registry) {
  let printed = ''
  const blocks = readFileSync(page, 'utf8').matchAll(/^```(\w+)\n([^]*?)^```$/gm)
  for (const [, lang, code] of blocks) {
    if (lang === 'js') writeFileSync(join(folder, /^\/\/ (\S+)\n/.exec(code)[1]), code)
    if (lang === 'sh') {
      printed = ''
      for (const line of code.trim().split('\n')) printed += await runLine(line, folder, registry)
    }
    if (lang !== 'text') continue
    const missing = code
      .trim()
      .split('\n')
      .filter((line) => !printed.includes(line))
    if (missing.length > 0)
      throw new Error(`docs/tutorial.md: the output has no ${JSON.stringify(missing)}:\n${printed}`)
  }
}

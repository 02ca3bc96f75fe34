// Runs docs/tutorial.md as a reader would: writes its files, runs its commands, and compares the output.
import { spawn } from 'node:child_process'
import { on, once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const page = fileURLToPath(new URL('../docs/tutorial.md', import.meta.url))

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

/** Opens a server's page, then stops the server. */
async function openPage(child, line) {
  const url = await readAddress(child)
  if (url === null) throw new Error(`${line} ended without an address.`)
  const { status } = await fetch(url, { redirect: 'manual' })
  process.kill(-Number(child.pid), 'SIGINT')
  if (status >= 400) throw new Error(`${line}: ${url} answers with ${status}.`)
}

/** Runs a shell line and returns its output. */
async function runLine(line, folder) {
  const child = spawn('bash', ['-c', `exec 2>&1\n${line}`], {
    cwd: folder,
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const timer = setTimeout(() => process.kill(-Number(child.pid), 'SIGKILL'), 120_000)
  child.stdout.setEncoding('utf8')
  const closed = once(child, 'close')
  try {
    if (line.includes(' studio ')) {
      await openPage(child, line)
      return ''
    }
    let printed = ''
    child.stdout.on('data', (text) => (printed += text))
    const [code] = await closed
    if (code !== 0) throw new Error(`${line} ended with ${code}:\n${printed}`)
    return printed
  } finally {
    clearTimeout(timer)
  }
}

/** Plays the page in a folder with the installed package. Throws at the first difference. */
export async function runTutorial(folder) {
  let printed = ''
  const blocks = readFileSync(page, 'utf8').matchAll(/^```(\w+)\n([^]*?)^```$/gm)
  for (const [, lang, code] of blocks) {
    if (lang === 'js') writeFileSync(join(folder, /^\/\/ (\S+)\n/.exec(code)[1]), code)
    if (lang === 'sh') {
      printed = ''
      for (const line of code.trim().split('\n')) {
        // The folder has the packed package already.
        // oxlint-disable-next-line no-await-in-loop -- one command after the other
        if (!line.startsWith('npm ')) printed += await runLine(line, folder)
      }
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

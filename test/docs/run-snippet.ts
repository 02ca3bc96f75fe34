import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { format } from 'node:util'
import { z } from 'zod'
import * as core from '../../src/index.js'
import { startRehearsal } from '../../src/rehearsal/index.js'
import { fromEntries } from './prelude.js'
import type { Scene } from './scenes.js'
import { root, type Snippet } from './snippets.js'

/** The package's entry modules, by their import names in documents. */
export type Modules = Record<string, Record<string, unknown>>

let count = 0

/** Runs a snippet unchanged, in a temporary folder, with the scene's scripted model. */
export async function runSnippet({ code }: Snippet, scene: Scene, modules: Modules): Promise<void> {
  const { turns = [{ text: 'Nobody was to ask.' }], own, instead = {}, shows = [], expect } = scene
  const rehearsal = await startRehearsal({ scenario: { turns }, strict: true })
  const folder = await mkdtemp(join(tmpdir(), 'statewright-docs-'))
  const written = join(root, 'test/docs', `.running-${process.pid}`)
  await mkdir(written, { recursive: true })
  const before = { cwd: process.cwd(), env: { ...process.env }, globals: new Set(Object.keys(globalThis)) }
  let output = ''
  try {
    process.chdir(folder)
    for (const name of ['OPENAI', 'ANTHROPIC'])
      Object.assign(process.env, { [`${name}_BASE_URL`]: rehearsal.url, [`${name}_API_KEY`]: 'rehearsal' })
    const model = core.openaiChat({ model: 'm', baseURL: rehearsal.url })
    const others = Object.entries(fromEntries).map(([name, entry]) => [name, modules[entry]?.[name]])
    Object.assign(globalThis, core, Object.fromEntries(others), {
      z,
      model,
      tools: [],
      agent: core.createAgent({ model }),
      say: (text: string) => (output += text),
      log: (...what: unknown[]) => (output += `${format(...what)}\n`),
    })
    Object.assign(globalThis, await own?.({ model, folder }))
    const file = join(written, `${(count += 1)}.ts`)
    await writeFile(file, `${runnable(code, instead)}\nexport { ${shows.join(', ')} }\n`)
    const values = { ...((await import(file)) as Record<string, unknown>) }
    const bodies = () => rehearsal.requests.map(({ body }) => JSON.stringify(body))
    await expect?.({ output, values, bodies })
  } finally {
    close(globalThis as { site?: { close(): void } })
    await rehearsal.close()
    process.chdir(before.cwd)
    process.env = before.env
    for (const name of Object.keys(globalThis)) {
      if (!before.globals.has(name)) Reflect.deleteProperty(globalThis, name)
    }
    await rm(folder, { recursive: true, force: true })
    await rm(written, { recursive: true, force: true })
  }
}

/** The code with redirected paths, and with the scene's replacements for the network. */
function runnable(code: string, instead: Record<string, string>): string {
  let changed = code.replaceAll('process.stdout.write(', 'say(').replaceAll('console.log(', 'log(')
  for (const [from, to] of Object.entries(instead)) {
    if (!changed.includes(from)) throw new Error(`The snippet has no ${from} any more.`)
    changed = changed.replace(from, () => to)
  }
  return changed
}

function close({ site }: { site?: { close(): void } }): void {
  site?.close()
}

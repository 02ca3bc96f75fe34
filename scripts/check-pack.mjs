// The package as a user gets it: packed, installed into an empty folder, and the README's first program run there
// against the rehearsal that ships with it.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'statewright-pack-'))
const npm = (args, cwd) =>
  execFileSync('npm', args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })

try {
  const [{ filename, size }] = JSON.parse(
    npm(['pack', '--json', '--silent', '--pack-destination', folder], root),
  )
  writeFileSync(join(folder, 'package.json'), '{ "type": "module", "private": true }')
  npm(['install', '--silent', '--no-audit', '--no-fund', join(folder, filename), 'zod'], folder)

  const [, program] =
    /```ts\n(import \{ createAgent[\s\S]*?)```/.exec(readFileSync(join(root, 'README.md'), 'utf8')) ?? []
  if (!program) throw new Error('README.md has no program to run')
  // A rehearsal has no price, and the program sets a cost limit: take OpenAI's.
  const priced = program.replace("model: 'gpt-5-mini'", "model: 'gpt-5-mini', provider: 'openai'")
  writeFileSync(
    join(folder, 'program.mjs'),
    `${priced}\nconsole.log('\\n' + JSON.stringify({ state, reason, output }))\n`,
  )
  writeFileSync(
    join(folder, 'main.mjs'),
    `import { startRehearsal } from 'statewright/rehearsal'
const rehearsal = await startRehearsal({
  turns: [
    { toolCalls: [{ name: 'add', arguments: { a: 19, b: 23 } }] },
    { text: '19 + 23 is 42.', expect: { toolResultsInclude: ['42'] } },
  ],
})
process.env.OPENAI_BASE_URL = rehearsal.url
process.env.OPENAI_API_KEY = 'rehearsal'
await import('./program.mjs')
await rehearsal.close()
`,
  )
  const out = execFileSync(process.execPath, ['main.mjs'], { cwd: folder, encoding: 'utf8', timeout: 30_000 })
  const result = JSON.parse(out.trim().split('\n').at(-1) ?? '')
  if (result.state !== 'COMPLETED' || result.output !== '19 + 23 is 42.')
    throw new Error(`The README's program said: ${out}`)
  const version = execFileSync(join(folder, 'node_modules/.bin/statewright'), ['--version'], {
    encoding: 'utf8',
  })
  console.log(
    `packed ${(size / 1024).toFixed(0)} KiB, installed, and the README's program ran (${version.trim()})`,
  )
} finally {
  rmSync(folder, { recursive: true, force: true })
}

// Checks the starters like a user: packs both packages, creates each template in an empty folder, and installs,
// type-checks, tests and starts it without a key. Usage: npm run suite -- starters [TEMPLATE …]
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { templates } from '../packages/create-statewright/src/templates.mjs'
import { freePort } from './own-postgres.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'statewright-starters-'))
const variables = Object.entries(process.env).filter(
  ([name]) => !/^(OPENAI|STATEWRIGHT|DATABASE)_/.test(name),
)
const env = Object.fromEntries(variables)

/** Runs a command, and prints its output if it fails. */
function run(command, args, cwd) {
  const { status, stdout, stderr } = spawnSync(command, args, {
    cwd,
    env,
    encoding: 'utf8',
    timeout: 180_000,
  })
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${status}:\n${stdout}${stderr}`)
  return stdout
}

function pack(from, ...options) {
  const args = ['pack', '--json', '--silent', '--pack-destination', folder, ...options]
  const [{ filename }] = JSON.parse(execFileSync('npm', args, { cwd: from, encoding: 'utf8' }))
  return join(folder, filename)
}

/** Expectations for `npm start` of each template. */
const starts = {
  agent: (cwd) => {
    const output = run('npm', ['start'], cwd)
    for (const words of ['find_order', 'refund', 'I did not refund anything.', 'COMPLETED'])
      if (!output.includes(words)) throw new Error(`npm start did not say '${words}':\n${output}`)
  },
  chat: async (cwd) => {
    run('npm', ['run', 'build'], cwd)
    const port = `${await freePort()}`
    const server = spawn('npm', ['run', 'serve'], { cwd, env: { ...env, PORT: port }, detached: true })
    try {
      let output = ''
      for await (const text of server.stdout.setEncoding('utf8'))
        if ((output += text).includes('Open http')) break
      const response = await fetch(`http://127.0.0.1:${port}/`)
      const [cookie] = (response.headers.get('set-cookie') ?? '').split(';')
      const page = await response.text()
      if (!page.includes('<div id="root">') || !cookie) throw new Error(`The page is not there: ${page}`)
      const chats = await fetch(`http://127.0.0.1:${port}/api/chats`, { headers: { cookie } })
      if (JSON.stringify(await chats.json()) !== '[]') throw new Error('A new user has chats.')
    } finally {
      if (server.pid !== undefined) process.kill(-server.pid)
    }
  },
  service: (cwd) => {
    const { status, stderr } = spawnSync('npm', ['start'], { cwd, env, encoding: 'utf8' })
    if (status !== 2 || !stderr.includes('Set a Postgres URL'))
      throw new Error(`npm start without DATABASE_URL ended with ${status}:\n${stderr}`)
  },
}

try {
  const statewright = pack(root, '--ignore-scripts')
  const creator = pack(join(root, 'packages/create-statewright'))
  run('npm', ['install', '--silent', '--no-audit', '--no-fund', '--prefix', folder, creator], folder)
  const names = process.argv.slice(2)
  for (const name of names.length > 0 ? names : Object.keys(templates)) {
    const cwd = join(folder, name)
    const create = join(folder, 'node_modules/.bin/create-statewright')
    run(create, [name, '--template', name, '--package', `file:${statewright}`], folder)
    run('npm', ['install', '--silent', '--no-audit', '--no-fund'], cwd)
    run('npm', ['run', 'check'], cwd)
    const output = run('npm', ['test'], cwd)
    // Sequential, so that errors are separate.
    await starts[name](cwd)
    const count = (word) => Number(new RegExp(`^# ${word} (\\d+)`, 'm').exec(output)?.[1] ?? Number.NaN)
    if (!(count('pass') + count('skipped') > 0)) throw new Error(`${name} has no tests:\n${output}`)
    const why = /# SKIP (.*)/.exec(output)?.[1]
    console.log(
      `${name}: installs, types hold, ${count('pass')} tests pass, starts${why ? `; skipped: ${why}` : ''}`,
    )
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}

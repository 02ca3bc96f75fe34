import { fork } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

/**
 * The programs, each bundled with its packages into one file, because resolving hundreds of files took a fifth of
 * the process time, and compiling them another fifth. Built once, also for child processes that run children.
 */
const folder = (process.env.STATEWRIGHT_CRASH_CHILDREN ??= await buildChild())

async function buildChild() {
  // Inside the project, so that unbundled packages resolve from there.
  const outdir = fileURLToPath(
    new URL(`../../node_modules/.cache/statewright-crash-${process.pid}`, import.meta.url),
  )
  process.on('exit', () => rmSync(outdir, { recursive: true, force: true }))
  const names = ['child', 'vote-process', 'expiry-process', 'grant-process', 'claim-process']
  await build({
    entryPoints: names.map((name) => fileURLToPath(new URL(`${name}.mjs`, import.meta.url))),
    outdir: join(outdir, 'bundles'),
    outExtension: { '.js': '.cjs' },
    bundle: true,
    platform: 'node',
    format: 'cjs',
    target: 'node20',
    external: ['libsql', 'pg-native'],
    define: { 'import.meta.url': 'bundleUrl' },
    banner: { js: `const bundleUrl = require('node:url').pathToFileURL(__filename).href` },
    logLevel: 'warning',
    logOverride: { 'ignored-bare-import': 'silent' },
  })
  const cached = JSON.stringify(fileURLToPath(new URL('cached.cjs', import.meta.url)))
  for (const name of names) {
    const start = `require(${cached})(require.resolve('./bundles/${name}.cjs'))`
    writeFileSync(join(outdir, `${name}.cjs`), start)
  }
  return outdir
}

export const findProgram = (name) => join(folder, `${name}.cjs`)

/** Longer than any healthy process takes, even on a busy machine. */
const hangsAfterMs = 180_000

/**
 * Runs one process of a session until it ends or is killed. `killAfterMs` counts from the start of the agent.
 * Resolves with its report (null if it was killed) and its duration.
 */
export function runProcess(task, { killAfterMs, program = 'child' } = {}) {
  return new Promise((resolve, reject) => {
    const process = fork(findProgram(program), [JSON.stringify(task)], { serialization: 'json' })
    let outcome = null
    let readyAt = 0
    let isHung = false
    const timers = [
      setTimeout(() => {
        isHung = true
        process.kill('SIGKILL')
      }, hangsAfterMs),
    ]
    process.on('message', (message) => {
      if (message.type === 'outcome') {
        outcome = message
        outcome.ms = performance.now() - readyAt
        return
      }
      readyAt = performance.now()
      if (killAfterMs !== undefined) timers.push(setTimeout(() => process.kill('SIGKILL'), killAfterMs))
    })
    process.once('error', reject)
    process.once('close', (code, signal) => {
      for (const timer of timers) clearTimeout(timer)
      if (isHung) reject(new Error(hung(outcome)))
      else if (signal === 'SIGKILL') resolve(null)
      else if (outcome === null) reject(new Error(`A process ended with ${code ?? signal} and said nothing.`))
      else resolve(outcome)
    })
  })
}

function hung(outcome) {
  const seconds = `${hangsAfterMs / 1000} seconds`
  return outcome === null
    ? `A process said nothing for ${seconds}.`
    : `A process told its outcome, but something has kept it from ending for ${seconds}.`
}

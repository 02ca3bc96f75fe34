import { fork } from 'node:child_process'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

/**
 * The programs and their packages, bundled into a few files, because resolving hundreds of files took a fifth of
 * the process time. Built once, also for child processes that run children.
 */
const folder = (process.env.STATEWRIGHT_CRASH_CHILDREN ??= await buildChild())

async function buildChild() {
  // Inside the project, so that unbundled packages resolve from there.
  const outdir = fileURLToPath(
    new URL(`../../node_modules/.cache/statewright-crash-${process.pid}`, import.meta.url),
  )
  process.on('exit', () => rmSync(outdir, { recursive: true, force: true }))
  await build({
    entryPoints: ['child', 'vote-process', 'expiry-process', 'grant-process'].map((name) =>
      fileURLToPath(new URL(`${name}.mjs`, import.meta.url)),
    ),
    outdir,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    splitting: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    external: ['libsql'],
    // CommonJS packages load Node built-ins through `require`.
    banner: {
      js: `import { createRequire as createBundleRequire } from 'node:module'; const require = createBundleRequire(import.meta.url)`,
    },
    logLevel: 'warning',
    logOverride: { 'ignored-bare-import': 'silent' },
  })
  return outdir
}

/** Longer than any healthy process takes, even on a busy machine. */
const hangsAfterMs = 180_000

/**
 * Runs one process of a session until it ends or is killed. `killAfterMs` counts from the start of the agent.
 * Resolves with its report (null if it was killed) and its duration.
 */
export function runProcess(task, { killAfterMs, program = 'child' } = {}) {
  return new Promise((resolve, reject) => {
    const process = fork(join(folder, `${program}.mjs`), [JSON.stringify(task)], { serialization: 'json' })
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

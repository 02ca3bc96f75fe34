import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const child = fileURLToPath(new URL('child.mjs', import.meta.url))

/** Longer than any healthy process takes, also on a machine that has much else to do. */
const hangsAfterMs = 180_000

/**
 * Runs one process of a session until it ends or is killed; `killAfterMs` counts from when it begins to run the agent.
 * Resolves with what it reported, null for one that was killed, and with how long it ran.
 */
export function runProcess(task, { killAfterMs } = {}) {
  return new Promise((resolve, reject) => {
    const process = fork(child, [JSON.stringify(task)], { serialization: 'json' })
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

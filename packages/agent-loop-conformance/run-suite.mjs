// Runs adapters in child processes. Restarts a dead process without the cases that already have a result.
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const worker = fileURLToPath(new URL('worker.mjs', import.meta.url))
const control = new URL('control/adapter.mjs', import.meta.url).href

async function runProcess(task, onMessage) {
  const printed = []
  const child = fork(worker, [JSON.stringify(task)], { stdio: ['ignore', 'pipe', 'pipe', 'ipc'] })
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (data) => {
      printed.push(String(data))
      if (printed.length > 50) printed.shift()
    })
  }
  child.on('message', onMessage)
  await new Promise((resolve) => child.once('close', resolve))
  return { printed: printed.join('').trim().slice(-600) }
}

/** The names of the adapter's variants. Throws when the adapter does not load. */
export async function readVariants(adapter) {
  let loaded
  const { printed } = await runProcess({ adapter }, (message) => {
    loaded ??= message
  })
  if (loaded?.variants) return loaded.variants
  throw new Error(`The adapter cannot be loaded. ${loaded?.problem ?? (printed || 'The process ended.')}`)
}

/** Runs one variant: `{ results: Map of case id → { result, evidence }, loose: uncaught errors }`, or `{ error }`. */
export async function runVariant({ adapter, variant, cases, seed, repeats = true, mistakes = false }) {
  const results = new Map()
  const loose = new Set()
  const task = { adapter, variant, seed, repeats, mistakes, ids: cases.map(({ id }) => id), width: 8 }
  while (task.ids.length > 0) {
    const started = []
    const { printed } = await runProcess(task, (message) => {
      if (message.started) started.push(message.started)
      if (message.id) results.set(message.id, { result: message.result, evidence: message.evidence })
      if (message.loose) loose.add(message.loose)
    })
    if (started.length === 0) return { error: printed || 'the process ended before the first case' }
    const unfinished = started.find((id) => !results.has(id))
    // With one case at a time, the unfinished case is the one that ended the process.
    if (task.width === 1 && unfinished)
      results.set(unfinished, { result: 'fail', evidence: `the process died: ${printed}` })
    task.width = 1
    task.ids = task.ids.filter((id) => !results.has(id))
  }
  return { results, loose: [...loose] }
}

/** The cases that do not distinguish a correct loop from one with a mistake: `[{ case, why }]`. Empty when all cases do. */
export async function runControls({ cases, seed }) {
  const task = { adapter: control, variant: 'defaults', cases, seed, repeats: false }
  const [right, wrong] = await Promise.all([runVariant(task), runVariant({ ...task, mistakes: true })])
  if (right.error || wrong.error) throw new Error(`The controls do not run: ${right.error ?? wrong.error}`)
  return cases.flatMap(({ id, mistake }) => {
    const [good, bad] = [right.results.get(id), wrong.results.get(id)]
    const why = []
    if (good.result !== 'pass') why.push(`the correct loop: ${good.result}, ${good.evidence}`)
    if (bad.result !== 'fail')
      why.push(`the loop with a mistake (${mistake}): ${bad.result}, ${bad.evidence}`)
    return why.length > 0 ? [{ case: id, why: why.join('; ') }] : []
  })
}

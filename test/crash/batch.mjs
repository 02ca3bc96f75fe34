// A batch whose process is killed repeatedly gives the same results as an uninterrupted batch. Usage: npm run
// build && node test/crash/batch.mjs [LINES] [KILLS] (default: 200 lines, 3 kills)
import { fork } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const command = fileURLToPath(new URL('../../dist/src/cli/main.js', import.meta.url))
const agent = fileURLToPath(new URL('batch-agent.mjs', import.meta.url))
const concurrency = 8
/** Requests per line. */
const requests = 2

/** Runs the command until it ends or has made this many requests. Resolves with its reports. */
function runBatch({ dir, input, out, generation, answerMs }, killAfter = Infinity) {
  return new Promise((resolve, reject) => {
    const args = [
      'batch',
      input,
      '--agent',
      agent,
      '--out',
      out,
      '--id',
      'squares',
      '--concurrency',
      `${concurrency}`,
    ]
    const task = JSON.stringify({ dir, generation, answerMs })
    const child = fork(command, args, {
      execArgv: ['--expose-gc'],
      env: { ...process.env, BATCH_TASK: task, STATEWRIGHT_STORE: `file:${dir}` },
      stdio: ['ignore', 'inherit', 'pipe', 'ipc'],
    })
    const report = { asked: 0, memory: [], code: null, said: '' }
    child.stderr.on('data', (piece) => {
      report.said += piece
    })
    child.on('message', ({ type, ...message }) => {
      if (type === 'memory') report.memory.push(message)
      else if (++report.asked === killAfter) child.kill('SIGKILL')
    })
    child.once('error', reject)
    child.once('close', (code, signal) => resolve({ ...report, code, isKilled: signal === 'SIGKILL' }))
  })
}

/** Plays the batch once without kills and once with kills. Returns the problems and the measurements. */
export async function playBatch({ lines, kills, answerMs = 2 }) {
  const folder = mkdtempSync(join(tmpdir(), 'statewright-batch-'))
  const input = join(folder, 'numbers.jsonl')
  const items = Array.from({ length: lines }, (_, i) => JSON.stringify({ id: `n${i}`, input: `${i}` }))
  writeFileSync(input, `${items.join('\n')}\n`)
  const of = (name) => ({ dir: join(folder, name), input, out: join(folder, `${name}.jsonl`), answerMs })
  const problems = []
  const startedAt = performance.now()
  const reference = await runBatch({ ...of('peace'), generation: 0 })
  const peaceMs = performance.now() - startedAt
  if (reference.code !== 0)
    problems.push(`The batch without a kill ended with ${reference.code}: ${reference.said}`)
  if (reference.asked !== requests * lines)
    problems.push(
      `The batch without a kill asked the model ${reference.asked} times, not ${requests * lines}.`,
    )

  let requestCount = 0
  let met = 0
  const killedAt = performance.now()
  for (let generation = 0; generation <= kills; generation += 1) {
    // A fixed share of the remaining work, so that the kills spread over the whole batch.
    const left = requests * lines - requestCount
    const share = Math.max(1, Math.floor(left / (kills - generation + 1)))
    const report = await runBatch({ ...of('killed'), generation }, generation < kills ? share : Infinity)
    requestCount += report.asked
    if (report.isKilled) met += 1
    if (generation === kills && report.code !== 0)
      problems.push(`The batch that was killed ended with ${report.code}: ${report.said}`)
  }
  const killedMs = performance.now() - killedAt
  if (met !== kills) problems.push(`${met} of ${kills} kills met the batch.`)
  const [first, second] = ['peace', 'killed'].map((name) => readFileSync(of(name).out, 'utf8'))
  if (first.split('\n').length - 1 !== lines)
    problems.push(`There are ${first.split('\n').length - 1} results.`)
  if (first !== second) problems.push('The results of the batch that was killed are others.')
  // Only work in progress at a kill is requested again.
  const most = requests * lines + kills * concurrency
  if (requestCount > most)
    problems.push(`The model was asked ${requestCount} times; ${most} would be enough.`)
  if (problems.length === 0) rmSync(folder, { recursive: true, force: true })
  return { problems, folder, asked: requestCount, kills: met, peaceMs, killedMs, memory: reference.memory }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [lines = 200, kills = 3] = process.argv.slice(2).map(Number)
  const {
    problems,
    folder,
    memory,
    asked: requestCount,
    peaceMs,
    killedMs,
  } = await playBatch({ lines, kills })
  for (const problem of problems) console.log(`WRONG: ${problem}`)
  if (problems.length > 0) console.log(`Left in ${folder}`)
  const mb = (bytes) => (bytes / 2 ** 20).toFixed(1)
  for (const { asked: at, heap, rss } of memory)
    console.log(`${at / requests} lines: heap ${mb(heap)} MB, resident ${mb(rss)} MB`)
  console.log(
    `${lines} lines in ${(peaceMs / 1000).toFixed(1)} s; killed ${kills} times in ${(killedMs / 1000).toFixed(1)} s, ` +
      `the model was asked ${requestCount - requests * lines} times more. Results: ${problems.length === 0 ? 'equal' : 'WRONG'}.`,
  )
  process.exitCode = problems.length === 0 ? 0 : 1
}

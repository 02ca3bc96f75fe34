// Claims in a durable machine. Its processes are killed around each record of the claim and of its agents, and around
// its payment. Each claim must be paid once and end like a claim without kills.
// Usage: npm run build && node test/crash/claim.mjs [POSTGRES_URL]
import { fork } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { openClaimStore } from './claim-store.mjs'
import { inParallel } from './pool.mjs'
import { findProgram } from './process.mjs'

const ownProgram = fileURLToPath(new URL('claim-process.mjs', import.meta.url))
/** Longer than any healthy process takes, even on a busy machine. */
const hangsAfterMs = 120_000

/** Runs one process of a claim. Returns its result, or null if it was killed. */
const runProcess = (task) =>
  new Promise((resolve, reject) => {
    // A bundle with cached code cannot load the driver of Postgres, which is a dynamic import.
    const program = task.place.url === undefined ? findProgram('claim-process') : ownProgram
    const child = fork(program, [JSON.stringify(task)])
    let result
    const timer = setTimeout(() => child.kill('SIGKILL'), hangsAfterMs)
    child.on('message', (message) => (result = message))
    child.once('error', reject)
    child.once('close', (code, signal) => {
      clearTimeout(timer)
      if (result !== undefined) resolve(result)
      else if (task.fault !== undefined && signal === 'SIGKILL') resolve(null)
      else reject(new Error(`A process of ${task.id} ended with ${code ?? signal} and sent nothing.`))
    })
  })

/** Two processes with the same fault. When the first dies, a third without a fault starts. */
async function runProcesses(task) {
  const third = []
  const run = async () => {
    const result = await runProcess(task)
    if (result === null && third.length === 0) third.push(runProcess({ ...task, fault: undefined }))
    return result
  }
  const results = await Promise.all([run(), run()])
  return {
    kills: results.filter((result) => result === null).length,
    results: [...results, ...(await Promise.all(third))],
  }
}

/** The effective events of a claim's log, and the state of all its sessions. */
async function look(store, id) {
  const session = await store.get(id)
  if (session === null) return { children: [], length: 0, events: [], left: ['no session'] }
  const records = await store.read(id)
  const children = []
  for (const { id: child, summary } of await store.list({ parent: id }))
    children.push({ id: child, state: summary?.state, length: (await store.read(child)).length })
  return {
    children,
    length: records.length,
    events: records
      .map(({ data }) => JSON.parse(data))
      .filter(({ refused }) => !refused)
      .map(({ event }) => event),
    left: [
      ...(await store.inbox.read(id)).map(({ text }) => `the message ${text}`),
      ...(session.holder === null ? [] : ['a holder']),
    ],
  }
}

const findPayments = (bank, id) =>
  existsSync(bank)
    ? readFileSync(bank, 'utf8')
        .split('\n')
        .filter((line) => line.startsWith(`${id}:`))
    : []

/** An actor that ran again after a kill has another outcome in the log, but no event is there twice. */
function problemsOf({ results, payments, found, kills }) {
  const problems = []
  if (kills === 0) problems.push('no process was killed')
  for (const result of results.filter(Boolean)) {
    const { value, output } = result
    if (result.error) problems.push(result.error)
    else if (value !== 'closed' || output?.letter !== 'Dear customer, your claim is paid.')
      problems.push(`it ends ${JSON.stringify(result)}`)
    else if (output.payment !== payments[0]) problems.push(`it names the payment ${output.payment}`)
  }
  if (payments.length !== 1) problems.push(`it was paid ${payments.length} times: ${payments.join(', ')}`)
  const types = found.events.map(({ type }) => type)
  for (const type of ['xstate.init', 'xstate.done.actor.triage', 'APPROVE', 'xstate.done.actor.write'])
    if (types.filter((one) => one === type).length !== 1) problems.push(`${type} is in ${types.join(', ')}`)
  for (const { id, state } of found.children)
    if (state !== 'COMPLETED') problems.push(`the agent ${id} is ${state}`)
  return [...problems, ...found.left.map((left) => `${left} is left`)]
}

/** Before and after each append, and around the payment. */
function listFaults(id, { length, children }) {
  const logs = [{ id, length }, ...children]
  const appends = logs.flatMap((log) =>
    Array.from({ length: log.length }, (_, i) => ({ on: 'append', session: log.id, seq: i + 1 })),
  )
  return [...appends, { on: 'effect', callId: 'pay' }].flatMap((fault) =>
    ['before', 'after'].map((when) => ({ ...fault, when })),
  )
}

/** `only` decides which of the cases are played, by their names. */
export async function playClaims({ url, only = () => true } = {}) {
  const dir = mkdtempSync(join(tmpdir(), 'statewright-claims-'))
  const bank = join(dir, 'bank.txt')
  const place = url === undefined ? { dir } : { url, schema: `claims_${process.pid}` }
  const store = openClaimStore(place)
  const createTask = (id, fault) => ({ id, place, bank, fault })
  const reference = 'claim-0'
  const result = await runProcess(createTask(reference))
  const found = await look(store, reference)
  const plain = problemsOf({ results: [result], payments: findPayments(bank, reference), found, kills: 1 })
  if (plain.length > 0) throw new Error(`The claim without a kill is wrong: ${plain.join('; ')}.`)
  const cases = listFaults(reference, found)
    .map((fault) => ({ fault, name: nameFault(fault) }))
    .filter(only)
  const played = await inParallel(cases, 2, async ({ fault, name }, index) => {
    const id = `claim-${index + 1}`
    const session = fault.session?.replace(reference, id)
    const { kills, results } = await runProcesses(createTask(id, { ...fault, ...(session && { session }) }))
    const end = await look(store, id)
    return {
      name,
      kills,
      problems: problemsOf({ results, payments: findPayments(bank, id), found: end, kills }),
    }
  })
  await store.close()
  if (played.every(({ problems }) => problems.length === 0)) rmSync(dir, { recursive: true, force: true })
  return played.map((each) => ({ ...each, dir }))
}

const nameFault = ({ on, when, session, seq }) =>
  on === 'effect' ? `claim killed ${when} its payment` : `claim killed ${when} record ${seq} of ${session}`

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const played = await playClaims({ url: process.argv[2] })
  for (const { name, problems } of played)
    for (const problem of problems) console.error(`${name}: ${problem}`)
  const wrong = played.filter(({ problems }) => problems.length > 0).length
  const kills = played.reduce((sum, each) => sum + each.kills, 0)
  console.log(`${played.length} claims, ${kills} kills, ${wrong} wrong`)
  process.exitCode = wrong === 0 && played.length > 0 ? 0 : 1
}

// One process of a session. It resumes the session, or starts it if the log is empty, and approves requests
// unless it `rests`. With `tells` it only sends the session a message. `tellsAt` makes another process send
// it during a call. The task is JSON in the first argument, and the results go back as messages.
import { spawnSync } from 'node:child_process'
import { fileStore } from 'statewright/stores/file'
import { createCrashAgent } from './agent.mjs'
import { doomed, freeDisk, striker } from './faults.mjs'
import { prompt } from './script.mjs'

const { dir, baseURL, fault, isSlow, withoutRights, tryAgain, tells, tellsAt, rests } = JSON.parse(
  process.argv[2],
)

/** A session without records has no run. */
const isNew = (error) => ['unknown_session', 'nothing_to_resume'].includes(error.code)

async function goOn(agent) {
  try {
    return await agent.resume('s')
  } catch (error) {
    if (!isNew(error)) throw error
    return agent.run(prompt, { session: 's' })
  }
}

async function finish(agent) {
  const run = await goOn(agent)
  let ended = 0
  run.events$.subscribe(({ type }) => {
    if (type === 'run_ended') ended += 1
  })
  let result = await run.result
  if (rests) return { result, ended }
  while (result.state === 'WAITING_FOR_INPUT') {
    for (const { callId } of result.pending) run.approve(callId)
    result = await run.result
  }
  return { result, ended }
}

/** Blocks this process until the message is sent. */
function sendFromElsewhere() {
  const task = JSON.stringify({ dir, baseURL, tells: tellsAt.message })
  const { status, stderr } = spawnSync(process.execPath, [process.argv[1], task], { encoding: 'utf8' })
  if (status !== 0) throw new Error(`Nothing could be told: ${stderr}`)
}

async function main() {
  const strikes = striker(fault, dir)
  const strike = (on, when, place) => {
    if (on === 'effect' && when === 'before' && place.callId === tellsAt?.callId) sendFromElsewhere()
    strikes(on, when, place)
  }
  // File modes do not restrict root.
  if (withoutRights && process.getuid() === 0) process.setuid(65_534)
  const store = doomed(fileStore({ dir }), strike, isSlow)
  const agent = createCrashAgent({ dir, baseURL, store, strike })
  process.send?.({ type: 'ready' })
  if (tells) return { receipt: await agent.send('s', tells) }
  let outcome = await finish(agent)
  if (tryAgain) {
    // Imported only here, because the reference model takes half of a process's startup time.
    const { look } = await import('./look.mjs')
    const first = { outcome, found: await look(dir) }
    freeDisk(dir)
    outcome = { ...(await finish(agent)), first }
  }
  store.close()
  return outcome
}

function report(outcome) {
  if (process.send) process.send({ type: 'outcome', ...outcome }, () => process.disconnect())
  else if (outcome.error) throw new Error(outcome.error.stack)
}

main().then(report, ({ name, code, message, stack }) => report({ error: { name, code, message, stack } }))

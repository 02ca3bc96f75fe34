// A process of the approvers of a payment. Each starts or resumes the session and approves, through a handle of the run
// or through the inbox. The task is JSON in the first argument, and the outcome goes back as a message.
import { appendFileSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import { createAgent, defineTool } from 'statewright'
import { fileStore } from 'statewright/stores/file'
import { effectsFile } from './agent.mjs'
import { doomed, striker } from './faults.mjs'

const { dir, fault, votes, needed } = JSON.parse(process.argv[2])
const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2, cachedInputTokens: 0, reasoningTokens: 0 }
const call = { id: 'pay-1', type: 'function', function: { name: 'pay', arguments: '{"amount":500}' } }

/** Pays, then ends. */
const model = {
  provider: 'scripted',
  model: 'scripted',
  request: ({ messages }) => {
    const isPaid = messages.some(({ role }) => role === 'tool')
    return Promise.resolve({
      text: isPaid ? 'Paid.' : '',
      reasoning: '',
      refusal: null,
      toolCalls: isPaid ? [] : [call],
      finishReason: isPaid ? 'stop' : 'tool_calls',
      complete: true,
      usage,
      model: 'scripted',
    })
  },
}

const pay = defineTool({
  name: 'pay',
  description: 'Pays.',
  input: { type: 'object' },
  idempotent: true,
  execute: (_input, { callId, idempotencyKey }) => {
    appendFileSync(effectsFile(dir), `${JSON.stringify({ callId, idempotencyKey })}\n`)
    return 'paid'
  },
})

const isNew = (error) => ['unknown_session', 'nothing_to_resume'].includes(error.code)
/** Someone else has done it. */
const isDone = (error) =>
  ['already_answered', 'run_ended', 'wrong_state', 'unknown_call'].includes(error.code)

async function goOn(agent) {
  for (;;) {
    try {
      // oxlint-disable-next-line no-await-in-loop -- one attempt after the other
      const run = await agent.resume('s').catch((error) => {
        if (!isNew(error)) throw error
        return agent.run('Pay invoice 17.', { session: 's', by: 'zoe' })
      })
      // oxlint-disable-next-line no-await-in-loop -- see above
      return { run, result: await run.result }
    } catch (error) {
      if (error.code !== 'session_busy') throw error
      // oxlint-disable-next-line no-await-in-loop -- the other process has it for a moment, or has died
      await wait(20)
    }
  }
}

async function vote(agent, { by, via }) {
  const { run, result } = via === 'inbox' ? {} : await goOn(agent)
  const [question] = result?.pending ?? [{ callId: call.id }]
  if (!question) return
  try {
    if (via === 'inbox') await agent.send('s', { type: 'approve', callId: call.id, by })
    else {
      run.approve(question, undefined, { by })
      await run.result
    }
  } catch (error) {
    if (error.code === 'session_busy') await vote(agent, { by, via })
    else if (!isDone(error)) throw error
  }
}

async function main() {
  const store = doomed(fileStore({ dir }), striker(fault, dir))
  const agent = createAgent({
    model,
    store,
    tools: [pay],
    policy: { id: 'payments', decide: () => ({ decision: 'ask', approvers: { count: needed } }) },
  })
  process.send({ type: 'ready' })
  if (votes.length === 0) await goOn(agent)
  // oxlint-disable-next-line no-await-in-loop -- one vote after the other
  for (const each of votes) await vote(agent, each)
  store.close()
  return {}
}

main().then(
  () => process.send({ type: 'outcome' }, () => process.disconnect()),
  ({ name, code, message, stack }) =>
    process.send({ type: 'outcome', error: { name, code, message, stack } }, () => process.disconnect()),
)

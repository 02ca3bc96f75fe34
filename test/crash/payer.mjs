// The parts of processes whose user asks for payments that people must approve.
import { appendFileSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import { defineTool } from 'statewright'
import { effectsFile } from './agent.mjs'

const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2, cachedInputTokens: 0, reasoningTokens: 0 }

/** A payment whose effect is a line with its call, its key and `place`. */
export const createPayTool = ({ dir, strike, place, onPaid, ...options }) =>
  defineTool({
    name: 'pay',
    description: 'Pays.',
    input: { type: 'object' },
    ...options,
    async execute(_input, { callId, idempotencyKey }) {
      strike('effect', 'before', { callId })
      appendFileSync(effectsFile(dir), `${JSON.stringify({ callId, idempotencyKey, ...place })}\n`)
      strike('effect', 'after', { callId })
      await onPaid?.(callId)
      return 'paid'
    },
  })

/** Makes these payments, `atOnce` in each answer, then ends. */
export const createPayerModel = (callIds, atOnce = callIds.length) => ({
  provider: 'scripted',
  model: 'scripted',
  request: ({ messages }) => {
    const paid = messages.filter(({ role }) => role === 'tool').length
    const isPaid = paid === callIds.length
    const createCall = (id) => ({
      id,
      type: 'function',
      function: { name: 'pay', arguments: '{"amount":500}' },
    })
    return Promise.resolve({
      text: isPaid ? 'Paid.' : '',
      reasoning: '',
      refusal: null,
      toolCalls: callIds.slice(paid, paid + atOnce).map(createCall),
      finishReason: isPaid ? 'stop' : 'tool_calls',
      complete: true,
      usage,
      model: 'scripted',
    })
  },
})

const isNew = (error) => ['unknown_session', 'nothing_to_resume'].includes(error.code)
/** Someone else has done it. */
export const isDone = (error) =>
  ['already_answered', 'run_ended', 'wrong_state', 'unknown_call'].includes(error.code)

/** Resumes the session, or starts it. */
export async function goOn(agent) {
  try {
    const run = await agent.resume('s').catch((error) => {
      if (!isNew(error)) throw error
      return agent.run('Pay invoice 17.', { session: 's', by: 'zoe' })
    })
    return { run, result: await run.result }
  } catch (error) {
    if (error.code !== 'session_busy') throw error
    // The other process has it for a moment, or has died.
    await wait(20)
    return goOn(agent)
  }
}

/** Reports the end of a process to its parent. */
export function report(work) {
  process.send({ type: 'ready' })
  work.then(
    () => process.send({ type: 'outcome' }, () => process.disconnect()),
    ({ name, code, message, stack }) =>
      process.send({ type: 'outcome', error: { name, code, message, stack } }, () => process.disconnect()),
  )
}

// The parts of processes whose user asks for payments that people must approve.
import { setTimeout as wait } from 'node:timers/promises'

const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2, cachedInputTokens: 0, reasoningTokens: 0 }

/** Makes these payments at once, then ends. */
export const createPayerModel = (callIds) => ({
  provider: 'scripted',
  model: 'scripted',
  request: ({ messages }) => {
    const isPaid = messages.some(({ role }) => role === 'tool')
    const createCall = (id) => ({
      id,
      type: 'function',
      function: { name: 'pay', arguments: '{"amount":500}' },
    })
    return Promise.resolve({
      text: isPaid ? 'Paid.' : '',
      reasoning: '',
      refusal: null,
      toolCalls: isPaid ? [] : callIds.map(createCall),
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

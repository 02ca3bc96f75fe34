// The controls with their state in a file. They are a minimal loop that another process can continue, and the same loop with one mistake.
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { readAnswer } from '../control/read-answer.mjs'

export function openStored({ baseURL, folder, tools, writing, mistake }) {
  const file = join(folder, 'state.json')
  let state = { messages: [], started: [], approved: [] }
  const save = () =>
    writing(() => {
      writeFileSync(`${file}.new`, JSON.stringify(state))
      renameSync(`${file}.new`, file)
    })
  const ask = async () => {
    const answer = { text: '', calls: [], finish: null, usage: null }
    const response = await fetch(`${baseURL}/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'scripted', messages: state.messages, stream: true }),
    })
    await readAnswer(response, answer, undefined, () => undefined)
    return answer
  }
  /** A call that was running when the process died may have had its effect. Its result states this, and the call is not repeated. */
  const execute = ({ id, function: { arguments: input } }) => {
    let content = 'Interrupted: it may have been sent.'
    if (!state.started.includes(id) || mistake === 'repeatsEffects') {
      state.started.push(id)
      if (mistake !== 'repeatsEffects') save()
      content = tools[0].execute(JSON.parse(input))
    }
    state.messages.push({ role: 'tool', tool_call_id: id, content })
    save()
  }
  const openCalls = () => {
    const results = state.messages.flatMap(({ tool_call_id: id }) => id ?? [])
    return state.messages
      .flatMap(({ tool_calls: calls }) => calls ?? [])
      .filter(({ id }) => !results.includes(id))
  }
  const go = async () => {
    for (;;) {
      const open = mistake === 'leavesCallsOpen' && state.isRestored ? [] : openCalls()
      const pending = open.filter(({ id }) => tools[0].asks && !state.approved.includes(id))
      if (pending.length > 0) return { text: '', ok: false, ended: 'a person is asked', pending }
      for (const call of open) execute(call)
      const { text, calls } = await ask()
      const toolCalls = calls.map(({ id, name, input }) => ({
        id,
        type: 'function',
        function: { name, arguments: input },
      }))
      state.messages.push({
        role: 'assistant',
        content: text || null,
        ...(toolCalls.length > 0 && { tool_calls: toolCalls }),
      })
      save()
      if (toolCalls.length === 0) return { text, ok: true, ended: 'stop' }
    }
  }
  const start = (text) => {
    state.messages.push({ role: 'user', content: text })
    save()
    return go()
  }
  return {
    start,
    approve(pending) {
      state.approved.push(...pending.map(({ id }) => id))
      save()
      return go()
    },
    async goOn() {
      if (!existsSync(file) || mistake === 'startsAnew') return start('Go.')
      state = { ...JSON.parse(readFileSync(file, 'utf8')), isRestored: true }
      if (mistake === 'endsAtDeath') return { text: '', ok: false, ended: 'the process had died' }
      const last = state.messages.at(-1)
      if (last.role === 'assistant' && !last.tool_calls)
        return { text: last.content, ok: true, ended: 'stop' }
      return go()
    },
  }
}

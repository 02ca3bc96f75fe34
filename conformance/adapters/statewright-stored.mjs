// Statewright with its sessions in files. Another process continues with `agent.resume`.
import { createAgent, defineTool, openaiChat } from '../../dist/src/index.js'
import { fileStore } from '../../dist/src/stores/file/index.js'
import { toSchema } from './schema.mjs'

const session = 'conformance'

export function openStored({ baseURL, folder, tools, writing }) {
  const files = fileStore({ dir: folder })
  const store = { ...files, append: (...args) => writing(() => files.append(...args)) }
  const agent = createAgent({
    model: openaiChat({ model: 'scripted', baseURL, apiKey: 'none' }),
    tools: tools.map(({ name, description, fields, execute, asks }) =>
      defineTool({ name, description, input: toSchema(fields), execute, needsApproval: asks === true }),
    ),
    store,
  })
  let run
  const rest = async (begun) => {
    run = begun
    const { state, reason, output, pending } = await run.result
    return {
      pending,
      text: output ?? '',
      ok: state === 'COMPLETED' && reason === 'end_turn',
      ended: `${state}, ${reason}`,
    }
  }
  const start = (text) => rest(agent.run(text, { session }))
  return {
    start,
    approve(pending) {
      for (const call of pending) run.approve(call)
      return rest(run)
    },
    async goOn() {
      if (files.get(session) === null) return start('Go.')
      return rest(await agent.resume(session))
    },
  }
}

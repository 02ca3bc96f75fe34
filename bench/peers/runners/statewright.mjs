// The current build of Statewright. Settings: the step limit. Every guard has its default.
import { z } from 'zod'
import { createAgent, defineTool, openaiChat } from '../../../dist/src/index.js'

export default function ({ baseURL, model, stream, read }) {
  const agent = createAgent({
    model: openaiChat({ model, baseURL, apiKey: 'bench' }),
    tools: [
      defineTool({
        name: 'read',
        description: 'Reads a file.',
        input: z.object({ path: z.string(), note: z.string() }),
        execute: read,
      }),
    ],
    stream,
    limits: { maxSteps: 1000 },
  })
  return async () => {
    const run = agent.run('Go.')
    let text = ''
    run.text$.subscribe((piece) => {
      text += piece
    })
    const { state, error } = await run.result
    if (state !== 'COMPLETED') throw new Error(`${state}: ${error?.message}`)
    return text
  }
}

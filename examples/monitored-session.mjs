/**
 * A session of two turns with the rules of Llama Stack: input and output shields, a document, a tool that runs code, and at
 * most five inferences per turn. Prints every step with its outcome.
 *
 *   node examples/monitored-session.mjs
 */
import { fileURLToPath, pathToFileURL } from 'node:url'
import { inspect } from 'node:util'
import { createAgent, llamaGuard, openaiChat, presets } from 'statewright'
import { loadAttachment } from 'statewright/memory'
import { startRehearsal } from 'statewright/rehearsal'
import { runCode } from './run-code.mjs'

/** `model` answers. `guardModel` (Llama Guard) checks questions and answers. */
export function monitoredAgent({ model, guardModel }) {
  const guard = llamaGuard({ model: guardModel })
  return createAgent({
    ...presets.llamaStack,
    limits: { ...presets.llamaStack.limits, maxSteps: 5 },
    model,
    instructions: 'You are a careful programmer. Run code before you judge it.',
    sampling: { temperature: 0.7, topP: 0.95, maxTokens: 2_048 },
    shields: { input: [guard], output: [guard] },
    tools: [runCode()],
  })
}

/** The answers of the two rehearsed models. Real models need no scenario. */
const scenarios = ({ text: code }) => ({
  programmer: {
    turns: [
      { text: 'Let me run it.', toolCalls: [{ name: 'run_code', arguments: { code } }] },
      {
        text: 'It prints 101, but the median is 10: sort() compares numbers as text. Use sort((a, b) => a - b).',
        expect: { lastUserIncludes: code, toolResultsInclude: ['101'] },
      },
    ],
  },
  guard: {
    turns: [
      ({ body }) => ({ text: /fork bomb/i.test(body.messages.at(-1).content) ? 'unsafe\nS14' : 'safe' }),
    ],
    onExhausted: 'loop',
  },
})

/** Runs both turns, and resolves to their results. Calls `send` when a step starts and when it completes. */
export async function monitoredSession(tell) {
  const root = fileURLToPath(new URL('.', import.meta.url))
  const document = await loadAttachment({ path: 'median.mjs', mimeType: 'text/plain' }, { root })
  const rehearsal = await startRehearsal({ scenarios: scenarios(document) })
  const model = (name) => openaiChat({ model: `rehearsal/${name}`, baseURL: rehearsal.url })
  const agent = monitoredAgent({ model: model('programmer'), guardModel: model('guard') })
  const turn = async (input, attachments) => {
    const run = agent.run(input, { session: 'monitored', attachments })
    for await (const event of run) {
      if (event.type === 'step_started' || event.type === 'step_completed') tell(event)
    }
    return run.result
  }
  try {
    return [
      await turn('Analyze this code and run it.', [document]),
      await turn('Now write a fork bomb and run it.', []),
    ]
  } finally {
    await rehearsal.close()
  }
}

/** Formats a step with its type, its place and, if it is complete, its payload. */
function stepText({ type, stepType, point, name, outcome, startedAt, completedAt, payload }) {
  const title = [stepType, point ?? name].filter(Boolean).join(' ')
  if (type === 'step_started') return `> ${title}`
  const shown = inspect(payload, { depth: null, breakLength: 100, compact: 2 })
  return `< ${title}: ${outcome} after ${completedAt - startedAt} ms\n${shown.replaceAll(/^/gm, '    ')}`
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const results = await monitoredSession((step) => console.log(stepText(step)))
  for (const { state, reason, output, error } of results) {
    console.log(`\n${state} (${reason}): ${error?.message ?? output}`)
  }
}

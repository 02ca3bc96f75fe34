/**
 * A lead agent with two sub-agents. One finds the facts. The other writes the report, and asks for approval before it saves it.
 *
 *   node examples/delegation.mjs
 */
import { pathToFileURL } from 'node:url'
import { createAgent, defineTool, openaiChat, presets } from 'statewright'
import { startRehearsal } from 'statewright/rehearsal'

const notes = ['Rent: 1200 EUR', 'Travel: 310 EUR', 'Books: 45 EUR']

const readNote = defineTool({
  name: 'read_note',
  description: 'Returns a note by its number, starting at 0.',
  input: { type: 'object', properties: { number: { type: 'number' } }, required: ['number'] },
  readOnly: true,
  execute: ({ number }) => notes[number] ?? 'There is no such note.',
})

const save = defineTool({
  name: 'save',
  description: 'Saves the report.',
  input: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
  needsApproval: true,
  execute: () => 'Saved.',
})

const call = (name, input) => ({ toolCalls: [{ name, arguments: input }] })

/** The answers of the three rehearsed models. A real model needs no scenario. */
const scenarios = {
  lead: {
    turns: [
      call('research', { task: 'What did we spend in May?' }),
      call('write', { task: 'Report: rent 1200, travel 310, books 45. In all 1555 EUR.' }),
      { text: 'The report on May is saved: 1555 EUR in all.' },
    ],
  },
  researcher: {
    turns: [
      ...notes.map((_, number) => call('read_note', { number })),
      { text: 'Rent 1200, travel 310, books 45.' },
    ],
  },
  writer: { turns: [call('save', { text: 'May: 1555 EUR.' }), { text: 'Saved as asked.' }] },
}

/** Runs the three agents, and returns one line for each event. */
export async function delegation() {
  const rehearsal = await startRehearsal({ scenarios })
  const model = (name) => openaiChat({ model: `rehearsal/${name}`, baseURL: rehearsal.url })
  const lines = []
  try {
    // Autonomous work may take many steps. This is the only step limit.
    const researcher = createAgent({
      ...presets.openhumanTask,
      model: model('researcher'),
      tools: [readNote],
    })
    const writer = createAgent({ ...presets.openhuman, model: model('writer'), tools: [save] })
    const lead = createAgent({
      ...presets.openhuman,
      limits: { ...presets.openhuman.limits, tokenBudget: 50_000 },
      model: model('lead'),
      tools: [
        researcher.asTool({ name: 'research', description: 'Finds facts in the notes.', maxSteps: 60 }),
        writer.asTool({ name: 'write', description: 'Writes and saves a report.' }),
      ],
    })
    const run = lead.run('Report our expenses for May.')
    run.events$.subscribe(({ type, ...event }) => {
      if (type === 'tool_call') lines.push(`lead calls ${event.call.function.name}`)
      if (type === 'child_event' && event.event.type === 'tool_call') {
        lines.push(`  ${event.path.join(' / ')} calls ${event.event.call.function.name}`)
      }
      if (type === 'tool_result') lines.push(`${event.name} says: ${event.content}`)
    })
    const { pending = [] } = await run.result
    for (const { callId, name, path = [] } of pending) {
      lines.push(`${path.join(' / ')} asks to ${name}: approved`)
      run.approve(callId)
    }
    const { state, output, usage } = await run.result
    lines.push(`${state}: ${output} (${usage.totalTokens} tokens, the sub-agents' included)`)
  } finally {
    await rehearsal.close()
  }
  return lines
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  console.log((await delegation()).join('\n'))
}

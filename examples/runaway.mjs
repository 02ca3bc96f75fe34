/**
 * Shows the cost of a model that repeats one call forever, under each preset.
 *
 *   node examples/runaway.mjs
 */
import { pathToFileURL } from 'node:url'
import { createAgent, defineTool, openaiChat, presets } from 'statewright'
import { startRehearsal } from 'statewright/rehearsal'

/** A limit for configurations without one. */
const hardCap = 200

const noGuards = {
  limits: { maxSteps: hardCap },
  guardrails: {
    progress: null,
    repeatedCall: null,
    repeatedOutput: null,
    cycle: null,
    failing: null,
    terminalDelegation: null,
  },
}

/** The unchanged presets. Strands has no limit, so the caller sets one. */
const configurations = {
  'no guards': noGuards,
  defaults: {},
  aar: presets.aar,
  openhuman: presets.openhuman,
  openhumanTask: presets.openhumanTask,
  llamaStack: presets.llamaStack,
  strands: { ...presets.strands, limits: { ...presets.strands.limits, tokenBudget: 20_000 } },
}

const search = (onSearch) =>
  defineTool({
    name: 'search',
    description: 'Searches the notes.',
    input: { type: 'object', properties: { query: { type: 'string' } } },
    readOnly: true,
    execute: () => {
      onSearch()
      return 'No results.'
    },
  })

/** Runs the same model under each configuration, and returns one row for each. */
export async function runaway() {
  const turn = {
    text: 'Let me search again.',
    toolCalls: [{ name: 'search', arguments: { query: 'budget' } }],
  }
  const rows = []
  for (const [guards, configuration] of Object.entries(configurations)) {
    let searches = 0
    const rehearsal = await startRehearsal({ turns: [turn], onExhausted: 'loop' })
    const agent = createAgent({
      ...configuration,
      model: openaiChat({ model: 'runaway', baseURL: rehearsal.url }),
      tools: [search(() => searches++)],
    })
    const { state, reason, usage } = await agent.run('What was our budget?').result
    rows.push({
      guards,
      requests: rehearsal.requests.length,
      searches,
      tokens: usage.totalTokens,
      state,
      reason,
    })
    await rehearsal.close()
  }
  return rows
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  console.table(await runaway())
}

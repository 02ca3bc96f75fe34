import type { AgentContext } from '../../../machines/agent/context.js'
import { applyPlan } from '../../../src/core/effects/apply-plan.js'
import type { AgentParts } from '../../../src/core/live/agent-parts.js'
import { createToolSet } from '../../../src/core/tools/tool-set.js'
import { defineTool, toolSearch } from '../../../src/index.js'

test('a step with fewer tools keeps the search of the provider that a source has added since', () => {
  const weather = defineTool({
    name: 'weather',
    description: 'The weather.',
    input: { type: 'object' },
    defer: true,
    execute: () => 'Sunny.',
  })
  const source = { name: 'server', tools: [] as unknown[] }
  const tools = createToolSet([source as never])
  source.tools = [weather, toolSearch({ hosted: true })]
  const context = { plan: { step: 1, tools: ['weather'] }, steps: 0 } as unknown as AgentContext
  const planned = applyPlan({ tools } as AgentParts, context)
  expect(planned.tools.offered.map(({ name }) => name)).toEqual(['weather'])
  expect(planned.tools.isHosted?.('weather')).toBe(true)
})
